/** 2025-11-25 adds icons, fuller descriptions, errors without an unreadable id, streams for polling, and tasks. */
import { dialect20250618 } from './2025-06-18.ts';
import { type Dialect, extend } from './dialect.ts';

export const dialect20251125: Dialect = extend(dialect20250618, {
  revision: '2025-11-25',
  forms: 'full',
  errorWithoutId: 'absent',
  primesStreams: true,
  sampledBlocks: 'many',
  samplingContext: 'declared',
  elicitationIds: true,
  tasks: 'asked',
  adds: {
    implementation: ['description', 'icons', 'websiteUrl'],
    capabilities: ['tasks'],
    tool: ['icons', 'execution'],
    resource: ['icons'],
    resourceTemplate: ['icons'],
    prompt: ['icons'],
  },
});
