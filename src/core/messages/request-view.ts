/**
 * One request in flight, in either era: one id, one response, cancellable. Types only; `src/core/requests/active-request.ts`
 * creates them.
 */

import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Operation } from '../protocol/operations.ts';
import type { Auth } from './auth.ts';
import type { ListView } from './authorization-rule.ts';
import type { ClientFacts } from './client-facts.ts';
import type { RecordedReply } from './client-input.ts';
import type { Exchange } from './connection-events.ts';
import type { Mailbox } from './mailbox.ts';
import type { ContinuationMail, RequestsMail } from './request-messages.ts';
import type { RequestSpan } from './spans.ts';

/** The requests of one JSON-RPC batch (2025-03-26), which are answered together. */
export interface Batch {
  /** Number of missing responses. */
  owed: number;
  /** The responses so far, as text. */
  readonly answers: string[];
  /** The exchange of the batch. */
  readonly exchange: Exchange | undefined;
}

/** Counts memory that a request makes the server retain against the quota of bytes of its client. */
export interface HeldMemory {
  /** Counts more bytes, which need room unless `forced`. @returns the reason if they do not fit; then nothing has changed */
  hold(bytes: number, forced?: 'forced'): string | undefined;
  free(bytes: number): void;
  /** Returns everything to the quota and counts nothing more. */
  release(): void;
}

/** A request, as all but its in-flight table see it. The functions of `src/core/requests/active-request.ts` change it. */
export interface RequestView {
  /** Lets a request be the subject of a message. */
  readonly kind: 'request';
  readonly id: RequestId;
  /**
   * Its key in the in-flight table: its id, or, if clients share the table, the id of its exchange (two clients may use
   * the same request id).
   */
  readonly key: RequestId;
  /** The HTTP exchange that carried it. */
  readonly exchange: Exchange | undefined;
  readonly operation: Operation;
  readonly servedBy: string;
  readonly client: ClientFacts;
  /** Its authenticated caller, which in a session may have another token with each request. Undefined: anonymous. */
  readonly auth: Auth | undefined;
  /** True if its element does not exist for its caller: it is served as if the element were not registered. */
  readonly hidden: boolean;
  /** The part of the requested list that its caller sees; undefined: everything. */
  readonly view: ListView | undefined;
  /** True if rules or scopes have decided about its element: no shared cache may keep its result. */
  readonly guarded: boolean;
  /** All scopes that its caller needed. */
  readonly needed: readonly string[];
  /** True if a limit has rejected its call: it did not run, and the same call may run later. */
  readonly turnedAway: boolean;
  /** The request's `_meta`, unchanged. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly progressToken: string | number | undefined;
  readonly batch: Batch | undefined;
  /** The in-flight table that admitted it, and to which every outcome is sent. */
  readonly requests: Mailbox<RequestsMail>;
  /** The inspection record that caused it; 0 without listeners. */
  readonly cause: number;
  /** Approximate memory of its message in bytes. */
  readonly bytes: number;
  /** True if it carries answers, or the state of an earlier request. */
  readonly continues: boolean;
  /** Its reservation of the quota of bytes, held until its handler ends; undefined for a small message. */
  readonly held: { release(): void } | undefined;
  /** True after it was answered, cancelled or timed out: nothing more is sent for it. */
  readonly settled: boolean;
  /** Milliseconds until it times out; progress restarts the time, if the revision allows it. */
  readonly timeoutMs: number;
  /** Times of its admission and of its timeout, in milliseconds of the server's clock. */
  readonly admitted: number;
  readonly deadline: number;
  /** The memory that its handler makes the server retain; undefined while that is nothing. */
  readonly memory: HeldMemory | undefined;
  /** The interactive request that it became by asking its client for input: its handler's outcome goes there. */
  readonly interactive: Mailbox<ContinuationMail> | undefined;
  /** Its span in a tracing system; undefined without one. */
  readonly span: RequestSpan | undefined;
  /** The record of an earlier run. */
  readonly recorded: RecordedReply | undefined;
  /** Aborted when the request is cancelled, times out or loses its client. Created on first use. */
  readonly signal: AbortSignal;
}
