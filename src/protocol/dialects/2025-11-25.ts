/** 2025-11-25: icons, a fuller description of each side, and errors that leave out an id that could not be read, event streams that can be polled. */
import { dialect20250618 } from './2025-06-18.ts';
import { type Dialect, extend } from './dialect.ts';

export const dialect20251125: Dialect = extend(dialect20250618, {
  revision: '2025-11-25',
  errorWithoutId: 'absent',
  primesStreams: true,
  adds: {
    implementation: ['description', 'icons', 'websiteUrl'],
    tool: ['icons'],
    resource: ['icons'],
    resourceTemplate: ['icons'],
    prompt: ['icons'],
  },
});
