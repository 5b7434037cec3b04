/** The entry points of the package. */

/** The source of each below `src`, without its extension, by its name in `dist/lib`. */
export const ENTRIES = {
  index: 'index',
  client: 'client/client',
  testing: 'testing/testing',
  inspector: 'inspector/inspector',
  oauth: 'features/oauth/oauth',
  otel: 'features/telemetry/otel',
  webhooks: 'webhooks',
};
