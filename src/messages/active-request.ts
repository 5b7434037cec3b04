/** One request in flight, in either era: one id, one answer, cancellable. Types only; `src/requests/request.ts` makes them. */
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { ServedBy } from '../protocol/methods.ts';
import type { Operation } from '../protocol/operations.ts';
import type { Client } from './client-facts.ts';
import type { Exchange } from './connection-events.ts';
import type { InteractiveRequestMail, RecordedReply } from './input-messages.ts';
import type { Mailbox } from './mailbox.ts';
import type { RequestsMail } from './request-messages.ts';

/** The requests of one JSON-RPC batch (2025-03-26), answered together. */
export interface Batch {
  /** Answers still owed. */
  owed: number;
  /** Answers that are ready, as text. */
  readonly answers: string[];
  /** What it came in with. */
  readonly exchange: Exchange | undefined;
}

export interface ActiveRequest {
  /** So that a request can stand for what a message is about. */
  readonly kind: 'request';
  readonly id: RequestId;
  /** What names it in the in-flight table: its id, or where clients share the table, its exchange's (ids of two clients may be the same). */
  readonly key: RequestId;
  /** The HTTP exchange that it came in with. */
  readonly exchange: Exchange | undefined;
  readonly operation: Operation;
  readonly servedBy: ServedBy;
  readonly client: Client;
  /** The request's `_meta`, as it came. */
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly progressToken: string | number | undefined;
  readonly batch: Batch | undefined;
  /** The in-flight table that admitted it, and that every outcome goes back to. */
  readonly requests: Mailbox<RequestsMail>;
  /** The inspection record that it came from; 0 while nobody watches. */
  readonly cause: number;
  /** About how much memory its message takes. */
  readonly bytes: number;
  /** What its message takes of the server's quota of bytes, until its handler has ended; undefined for a small one. */
  held: { release(): void } | undefined;
  /** Answered, cancelled or timed out: nothing more is sent for it. Set by the in-flight table only. */
  settled: boolean;
  /** Its handler runs on although it was cancelled or timed out. Set by the in-flight table only. */
  orphaned: boolean;
  /** Milliseconds it may take, anew from each progress where the revision allows. */
  timeoutMs: number;
  /** When it was admitted, in milliseconds of the server's clock. */
  admitted: number;
  /** When it times out, and the latest that progress may put this off to; milliseconds of the server's clock. */
  deadline: number;
  latest: number;
  /** The last progress reported; progress must grow. */
  progress: number;
  /** It brings answers, or the state of an earlier request. */
  readonly continues: boolean;
  /** The conversation that it has become by asking its client something: what its handler comes to goes there. */
  conversation: Mailbox<InteractiveRequestMail> | undefined;
  /** What an earlier run of it has recorded. */
  recorded: RecordedReply | undefined;
  /** Aborted when the request is cancelled, times out or loses its client. Made when first asked for. */
  readonly signal: AbortSignal;
  /** Aborts {@link signal}. */
  abort(reason: Error): void;
}
