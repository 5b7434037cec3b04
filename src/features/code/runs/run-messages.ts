/** The messages to the run of a script, and what it is given. Types only. */
import type { Context } from '../../../core/execution/context.ts';
import type { Reply } from '../../../core/messages/client-input.ts';
import type { Outcome } from '../../../core/messages/results.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import type { CallableFunctions } from '../functions/code-functions.ts';
import type { Delivery, Script, ScriptSlice } from '../sandbox/script.ts';

/** Runs scripts. `Sandboxes` is one. */
export interface ScriptEngine {
  /** Name and version, for the record of a run. */
  readonly id: string;
  /** Begins a script, or runs it again up to its last delivery. */
  begin(run: string, principal: string, script: Script, deliveries: readonly Delivery[]): Promise<ScriptSlice>;
  /** Continues it; undefined if the engine does not have it any more: begin again. */
  proceed(run: string, deliveries: readonly Delivery[]): Promise<ScriptSlice | undefined>;
  /** Forgets a script, and interrupts it if it runs. */
  drop(run: string): void;
}

/** The request that waits for a run. */
export interface Attachment {
  readonly ctx: Context;
  readonly functions: CallableFunctions;
  resolve(result: CallToolResult): void;
  reject(error: unknown): void;
}

/** The end of an attachment before its result. */
export type Departure =
  /** The client has cancelled the request, or the time of the request is over. */
  | 'cancelled'
  /** The client has not returned in time, or there was no room for its request. It may return. */
  | 'lost'
  /** Another process continues the request, and the run with it. */
  | 'moved';

/** The reason for which a process lets go of a run. */
export type LettingGo =
  /** The server stops, and nothing outlives the process. */
  | 'end'
  /** The server stops. The signal of the request that waits ends it, and the next process continues both. */
  | 'stop'
  /** Another node continues the run. This node stays, and answers the request that waits. */
  | 'move'
  /** The same, and this node may write nothing more. */
  | 'discard';

export type RunMail =
  | { readonly type: 'begin' }
  /** A slice of the script. `whole`: from its beginning. Undefined: the engine has lost the script. */
  | { readonly type: 'sliced'; readonly slice: ScriptSlice | undefined; readonly whole: boolean }
  | { readonly type: 'engine failed'; readonly error: unknown }
  /** The start of a call is durable. */
  | { readonly type: 'start stored'; readonly number: number }
  /** The functions of its caller are listed, or it is time to list them again. */
  | { readonly type: 'listed'; readonly number: number }
  | { readonly type: 'not listed'; readonly number: number; readonly error: unknown }
  /** Its question is durable. */
  | { readonly type: 'question stored'; readonly number: number }
  /** The answers to it are durable. */
  | { readonly type: 'answers stored'; readonly number: number; readonly responses: Readonly<Record<string, unknown>> }
  /** It is durable that it waits for an approval or a time. */
  | { readonly type: 'wait stored'; readonly number: number }
  /** The results that the script learns next are durable. */
  | { readonly type: 'deliveries stored'; readonly deliveries: readonly Delivery[] }
  | { readonly type: 'end stored' }
  | { readonly type: 'store failed'; readonly error: unknown }
  /** An attempt of a call has its outcome. */
  | { readonly type: 'outcome'; readonly number: number; readonly attempt: number; readonly outcome: Outcome }
  | {
      readonly type: 'replied';
      readonly number: number;
      readonly round: number;
      readonly replies: Readonly<Record<string, Reply>>;
    }
  | {
      readonly type: 'unanswered';
      readonly number: number;
      readonly round: number;
      readonly by: Attachment;
      readonly error: unknown;
    }
  /** People have decided. `state`: that of the approval; undefined if it is gone. */
  | { readonly type: 'decided'; readonly number: number; readonly state: string | undefined }
  /** It is time to look at the task of a call. */
  | { readonly type: 'poll'; readonly number: number }
  /** The state of the task, or of its answers. */
  | { readonly type: 'polled'; readonly number: number; readonly outcome: Outcome }
  /** A sleep of the script is over. */
  | { readonly type: 'due'; readonly number: number }
  | { readonly type: 'attach'; readonly attachment: Attachment }
  | { readonly type: 'left'; readonly attachment: Attachment; readonly how: Departure; readonly reason: unknown }
  /** The request that waits has waited long enough. */
  | { readonly type: 'waited' }
  /** The calls that the script did not await have had their time. */
  | { readonly type: 'finish' }
  | { readonly type: 'expired'; readonly why: string }
  /** This process lets go of it. */
  | { readonly type: 'let go'; readonly reason: string; readonly how: LettingGo };
