/** 2025-03-26 adds batches, tool annotations, audio, progress messages, completions, and resumable streams. */
import { dialect20241105 } from './2024-11-05.ts';
import { type Dialect, extend } from './dialect.ts';

export const dialect20250326: Dialect = extend(dialect20241105, {
  revision: '2025-03-26',
  batching: true,
  resumableStreams: true,
  content: ['audio'],
  progressResetsDeadline: true,
  adds: { capabilities: ['completions'], tool: ['annotations'], progress: ['message'] },
});
