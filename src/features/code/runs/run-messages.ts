/** The messages to the run of a script, and what it is given. Types only. */
import type { Context } from '../../../core/execution/context.ts';
import type { Reservation } from '../../../core/kernel/quota.ts';
import type { Reply } from '../../../core/messages/client-input.ts';
import type { Outcome } from '../../../core/messages/results.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import type { Core } from '../../../core/server/feature.ts';
import type { ApprovalService } from '../../approvals/approvals.feature.ts';
import type { CodeOptions } from '../code-options.ts';
import type { CallableFunctions } from '../functions/code-functions.ts';
import type { Delivery, Script, ScriptSlice } from '../sandbox/script.ts';
import type { RunEvent, RunJournal, StoredCaller } from './run-journal.ts';
import type { RunResult, WholeResult } from './run-result.ts';

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

export interface ScriptRunOptions {
  readonly core: Core;
  readonly engine: ScriptEngine;
  readonly approvals: Pick<ApprovalService, 'wait' | 'get' | 'revoke'>;
  readonly id: string;
  /** The first event of its journal. */
  readonly begun: Extract<RunEvent, { type: 'begun' }>;
  readonly script: Script;
  /** The tool that runs scripts. */
  readonly tool: string;
  readonly caller: StoredCaller;
  readonly journal: RunJournal;
  /** The events after its beginning; empty for a new run. */
  readonly before: readonly RunEvent[];
  readonly memory: Reservation;
  readonly settings: { readonly effects: NonNullable<CodeOptions['effects']>; readonly waitMs: number };
  /** The functions of its caller while no request waits for it. */
  functions(): Promise<CallableFunctions>;
  /** Counts a call by its outcome, and a run by its end. */
  counted(what: 'call' | 'run', how: string): void;
  /** Reserves memory for its whole result, if it is too long to be sent. @returns where it can be read; undefined without room */
  keeps(length: number): WholeResult | undefined;
  /** It has ended, or left this process. */
  gone(result: RunResult | undefined): void;
}

/** The messages about one call of the script, by its number. */
export type CallMail =
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
  | { readonly type: 'due'; readonly number: number };

export type RunMail =
  | CallMail
  | { readonly type: 'begin' }
  /** A slice of the script. `whole`: from its beginning. Undefined: the engine has lost the script. */
  | { readonly type: 'sliced'; readonly slice: ScriptSlice | undefined; readonly whole: boolean }
  | { readonly type: 'engine failed'; readonly error: unknown }
  /** The results that the script learns next are durable. */
  | { readonly type: 'deliveries stored'; readonly deliveries: readonly Delivery[] }
  | { readonly type: 'end stored' }
  | { readonly type: 'store failed'; readonly error: unknown }
  | { readonly type: 'attach'; readonly attachment: Attachment }
  | { readonly type: 'left'; readonly attachment: Attachment; readonly how: Departure; readonly reason: unknown }
  /** The client that has left may return no more. */
  | { readonly type: 'not returned' }
  /** The request that waits has waited long enough. */
  | { readonly type: 'waited' }
  /** The calls that the script did not await have had their time. */
  | { readonly type: 'finish' }
  /** The run was open for too long. */
  | { readonly type: 'expired' }
  /** This process lets go of it. */
  | { readonly type: 'let go'; readonly reason: string; readonly how: LettingGo };
