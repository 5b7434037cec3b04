/**
 * The messages between a pool and its threads. A thread runs one call at a time, so messages do not name the call.
 * Types only.
 */

import type { Context } from '../../core/execution/context.ts';
import type { JsonValue } from '../../core/protocol/json.ts';
import type { LogLevel } from '../../core/protocol/types.ts';
import type { ThreadSource } from '../../core/registry/define.ts';

/** The parts of the context that need no message. */
export type CallFacts = Pick<
  Context,
  'client' | 'session' | 'principal' | 'auth' | 'approval' | 'requestId' | 'meta' | 'elapsedMs'
>;

export interface Thrown {
  readonly message: string;
  readonly stack: string;
  /** The code of a `ProtocolError`, which is sent to the client unchanged. */
  readonly code: number | undefined;
  readonly data: JsonValue | undefined;
  /** True for a `ToolError`, whose message is for the model. */
  readonly forModel: boolean;
}

/** The result of a call or step. */
export type TransferredResult =
  | {
      readonly ok: true;
      readonly value: unknown /** True for a `toolResult`, whose symbol cannot be cloned. */;
      readonly envelope: boolean;
    }
  | { readonly ok: false; readonly thrown: Thrown };

export type PoolMail =
  | { readonly type: 'run'; readonly source: ThreadSource; readonly args: unknown; readonly facts: CallFacts }
  | { readonly type: 'abort'; readonly reason: string }
  /** Run this step; it has no recorded result. */
  | { readonly type: 'run step'; readonly step: number }
  | { readonly type: 'step over'; readonly step: number; readonly given: TransferredResult };

export type ThreadMail =
  /** The module is loaded and the handler is running. */
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
  /** Asks whether this step has a recorded result. */
  | { readonly type: 'step'; readonly step: number; readonly name: string }
  | { readonly type: 'step ran'; readonly step: number; readonly given: TransferredResult };
