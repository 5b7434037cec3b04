/** 2026-07-28 removes sessions. Results describe themselves, carry caching hints, and may be any JSON value. */
import { ErrorCode } from '../errors.ts';
import { dialect20251125 } from './2025-11-25.ts';
import { type Dialect, extend } from './dialect.ts';

export const dialect20260728: Dialect = extend(dialect20251125, {
  revision: '2026-07-28',
  era: 'modern',
  structured: 'any',
  selfDescribing: true,
  elicitationIds: false,
  tasks: 'extension',
  resourceNotFound: ErrorCode.InvalidParams,
  resumableStreams: false,
  primesStreams: false,
  drops: { capabilities: ['tasks'], tool: ['execution'] },
});
