/** What is said between a pool and its threads. A thread runs one call at a time, so that nothing needs to name the call. Types only. */
import type { Context } from '../input/context.ts';
import type { JsonValue } from '../protocol/json.ts';
import type { LogLevel } from '../protocol/types.ts';
import type { ThreadSource } from '../registry/thread-module.ts';

/** What a handler can know of its call without asking. */
export type CallFacts = Pick<Context, 'client' | 'session' | 'principal' | 'requestId' | 'meta' | 'elapsedMs'>;

export interface Thrown {
  readonly message: string;
  readonly stack: string;
  /** Of a `ProtocolError`, which is shown as it is. */
  readonly code: number | undefined;
  readonly data: JsonValue | undefined;
}

/** What something came to. */
export type TransferredResult =
  | {
      readonly ok: true;
      readonly value: unknown /** It is a `toolResult`, whose mark cannot be sent. */;
      readonly envelope: boolean;
    }
  | { readonly ok: false; readonly thrown: Thrown };

export type PoolMail =
  | { readonly type: 'run'; readonly source: ThreadSource; readonly args: unknown; readonly facts: CallFacts }
  | { readonly type: 'abort'; readonly reason: string }
  /** Run this step: it was not recorded. */
  | { readonly type: 'run step'; readonly step: number }
  | { readonly type: 'step over'; readonly step: number; readonly given: TransferredResult };

export type ThreadMail =
  /** Its module is loaded, and its handler runs. */
  | { readonly type: 'began' }
  | { readonly type: 'done'; readonly given: TransferredResult }
  | {
      readonly type: 'progress';
      readonly done: number;
      readonly total: number | undefined;
      readonly message: string | undefined;
    }
  | { readonly type: 'log'; readonly level: LogLevel; readonly data: unknown; readonly logger: string | undefined }
  | { readonly type: 'close stream'; readonly retryMs: number | undefined }
  /** Is this step recorded? */
  | { readonly type: 'step'; readonly step: number; readonly name: string }
  | { readonly type: 'step ran'; readonly step: number; readonly given: TransferredResult };
