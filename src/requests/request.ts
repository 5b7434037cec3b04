/**
 * Creates the request objects that travel from the inbound codec to the handler. The abort signal is created when a
 * handler first reads it.
 */

import type { ActiveRequest, Batch, HeldMemory } from '../messages/active-request.ts';
import type { Client } from '../messages/client-facts.ts';
import type { Exchange } from '../messages/connection-events.ts';
import type { InteractiveRequestMail, RecordedReply } from '../messages/input-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { RequestsMail } from '../messages/request-messages.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { ServedBy } from '../protocol/methods.ts';
import type { Operation } from '../protocol/operations.ts';

export class IncomingRequest implements ActiveRequest {
  readonly kind = 'request';
  readonly id: RequestId;
  readonly key: RequestId;
  readonly exchange: Exchange | undefined;
  readonly operation: Operation;
  readonly servedBy: ServedBy;
  readonly client: Client;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly progressToken: string | number | undefined;
  readonly batch: Batch | undefined;
  readonly requests: Mailbox<RequestsMail>;
  readonly cause: number;
  readonly bytes: number;
  held: { release(): void } | undefined = undefined;
  memory: HeldMemory | undefined = undefined;
  settled = false;
  orphaned = false;
  timeoutMs = 0;
  admitted = 0;
  deadline = 0;
  latest = 0;
  progress = Number.NEGATIVE_INFINITY;
  readonly continues: boolean;
  conversation: Mailbox<InteractiveRequestMail> | undefined = undefined;
  recorded: RecordedReply | undefined = undefined;
  #controller: AbortController | undefined;
  #aborted: Error | undefined;

  constructor(
    id: RequestId,
    operation: Operation,
    servedBy: ServedBy,
    client: Client,
    meta: Readonly<Record<string, unknown>> | undefined,
    progressToken: string | number | undefined,
    batch: Batch | undefined,
    requests: Mailbox<RequestsMail>,
    cause: number,
    exchange?: Exchange,
    key: RequestId = id,
    bytes = 0,
  ) {
    this.id = id;
    this.key = key;
    this.exchange = exchange;
    this.operation = operation;
    this.continues = 'input' in operation && operation.input !== undefined;
    this.servedBy = servedBy;
    this.client = client;
    this.meta = meta;
    this.progressToken = progressToken;
    this.batch = batch;
    this.requests = requests;
    this.cause = cause;
    this.bytes = bytes;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#aborted) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#aborted ??= reason;
    this.#controller?.abort(reason);
  }
}
