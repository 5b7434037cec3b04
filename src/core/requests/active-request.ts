/**
 * A request in flight, as its in-flight table sees it. Only this room writes to a request; all others have a
 * {@link RequestView}, and change it through the functions of this file.
 */
import { setMaxListeners } from 'node:events';
import { type RequestEvent, requestMachine } from '../../../machines/request.ts';
import { step } from '../kernel/step.ts';
import type { Auth } from '../messages/auth.ts';
import type { ListView } from '../messages/authorization-rule.ts';
import type { ClientFacts } from '../messages/client-facts.ts';
import type { RecordedReply } from '../messages/client-input.ts';
import type { Exchange } from '../messages/connection-events.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { ContinuationMail, RequestsMail } from '../messages/request-messages.ts';
import type { Batch, HeldMemory, RequestView } from '../messages/request-view.ts';
import type { Outcome } from '../messages/results.ts';
import type { RequestSpan } from '../messages/spans.ts';
import { ErrorCode, ProtocolError } from '../protocol/errors.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Operation } from '../protocol/operations.ts';

const NO_SCOPES: readonly string[] = [];
const RECEIVED = requestMachine.initial;

export class ActiveRequest implements RequestView {
  readonly kind = 'request';
  readonly id: RequestId;
  readonly key: RequestId;
  readonly exchange: Exchange | undefined;
  operation: Operation;
  readonly servedBy: string;
  readonly client: ClientFacts;
  readonly auth: Auth | undefined;
  readonly meta: Readonly<Record<string, unknown>> | undefined;
  readonly progressToken: string | number | undefined;
  readonly batch: Batch | undefined;
  requests: Mailbox<RequestsMail>;
  readonly cause: number;
  readonly bytes: number;
  readonly continues: boolean;
  settled = false;
  hidden = false;
  view: ListView | undefined = undefined;
  guarded = false;
  turnedAway = false;
  needed: readonly string[] = NO_SCOPES;
  held: { release(): void } | undefined = undefined;
  timeoutMs = 0;
  admitted = 0;
  deadline = 0;
  /** The latest time to which progress can extend the deadline, in milliseconds of the server's clock. */
  latest = 0;
  /** The last reported progress; progress must increase. */
  progress = Number.NEGATIVE_INFINITY;
  memory: HeldMemory | undefined = undefined;
  interactive: Mailbox<ContinuationMail> | undefined = undefined;
  span: RequestSpan | undefined = undefined;
  recorded: RecordedReply | undefined = undefined;
  /** See {@link notifyAborted}. */
  whenAborted: (() => void) | undefined = undefined;
  /** Not private: a private member costs the path of a request more. */
  state = RECEIVED;
  #controller: AbortController | undefined;
  #aborted: Error | undefined;

  constructor(
    id: RequestId,
    operation: Operation,
    servedBy: string,
    client: ClientFacts,
    meta: Readonly<Record<string, unknown>> | undefined,
    progressToken: string | number | undefined,
    batch: Batch | undefined,
    requests: Mailbox<RequestsMail>,
    cause: number,
    exchange?: Exchange,
    key: RequestId = id,
    bytes = 0,
    auth?: Auth,
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
    this.auth = auth;
  }

  /** True if its handler still runs although nothing waits for its outcome. */
  get detached(): boolean {
    return this.state.hasTag('detached');
  }

  /** Takes an event of its lifecycle. @returns false if its state does not accept the event; nothing happens then */
  take(event: RequestEvent['type']): boolean {
    const next = this.state.steps.get(event) ?? step(this.state, { type: event });
    if (!next) return false;
    this.state = next;
    this.settled = next.tags.has('settled');
    return true;
  }

  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      // A handler may add any number of listeners: Node would warn of more than ten.
      setMaxListeners(0, this.#controller.signal);
      if (this.#aborted) this.#controller.abort(this.#aborted);
    }
    return this.#controller.signal;
  }

  abort(reason: Error): void {
    this.#aborted ??= reason;
    this.#controller?.abort(reason);
    this.whenAborted?.();
  }

  /** See {@link notifyAborted}. */
  notifyAborted(callback: () => void): void {
    if (this.#aborted) callback();
    else this.whenAborted = callback;
  }
}

/** Creates a request. Its creator, too, has only the view. */
export const IncomingRequest: new (...given: ConstructorParameters<typeof ActiveRequest>) => RequestView =
  ActiveRequest;

/** The writable request behind a view. @throws {TypeError} for an object that {@link IncomingRequest} has not created */
export function activeRequestOf(request: RequestView): ActiveRequest {
  if (request instanceof ActiveRequest) return request;
  throw new TypeError(`expected a request, got an object of another kind with the id ${String(request.id)}`);
}

/** Sends the outcome of a request to the in-flight table that admitted it. */
export function respond(request: RequestView, outcome: Outcome): void {
  request.requests.send({ type: 'answer', request, outcome });
}

/** The error for a request that a registry received but does not serve: the methods table and the registry disagree. */
export function misrouted({ operation }: RequestView, where: string): ProtocolError {
  return new ProtocolError(ErrorCode.MethodNotFound, `${where} does not serve ${operation.method}`);
}

/** Aborts the signal of its handler. */
export function abortRequest(request: RequestView, reason: Error): void {
  activeRequestOf(request).abort(reason);
}

/** Calls back when the request is aborted, instead of a listener of its signal. One callback for each request. */
export function notifyAborted(request: RequestView, callback: () => void): void {
  activeRequestOf(request).notifyAborted(callback);
}

/** Sets the interactive request to which the outcome of its handler goes. */
export function setInteractive(request: RequestView, interactive: Mailbox<ContinuationMail>): void {
  activeRequestOf(request).interactive = interactive;
}

/** Sets the record of an earlier run. */
export function setRecorded(request: RequestView, recorded: RecordedReply): void {
  activeRequestOf(request).recorded = recorded;
}

/** Sets the progress that an earlier run has reported last. */
export function setProgress(request: RequestView, progress: number): void {
  activeRequestOf(request).progress = progress;
}

/** Sets the account of the memory that its handler makes the server retain. */
export function setMemory(request: RequestView, memory: HeldMemory): void {
  activeRequestOf(request).memory = memory;
}

/** Decides whether its element exists for its caller. */
export function hideElement(request: RequestView, hidden: boolean): void {
  activeRequestOf(request).hidden = hidden;
}

/** Sets the part of a list that its caller sees. */
export function setView(request: RequestView, view: ListView): void {
  activeRequestOf(request).view = view;
}

/** Its rules have admitted it, and its caller needed these scopes. */
export function setGuarded(request: RequestView, scopes: readonly string[]): void {
  const active = activeRequestOf(request);
  active.guarded = true;
  active.needed = scopes;
}

/** A limit has rejected its call, which did not run. */
export function turnAway(request: RequestView): void {
  activeRequestOf(request).turnedAway = true;
}

/** Replaces the parameters of a request, before it is served. */
export function setOperation(request: RequestView, operation: Operation): void {
  activeRequestOf(request).operation = operation;
}

/**
 * Passes the first outcome of a request to `receive`, and all else to the in-flight table that admitted the request.
 *
 * @returns the mailbox of that table
 */
export function interceptOutcome(request: RequestView, receive: (outcome: Outcome) => void): Mailbox<RequestsMail> {
  const active = activeRequestOf(request);
  const table = active.requests;
  let received = false;
  active.requests = {
    address: table.address,
    send(mail) {
      if (received || mail.type !== 'answer' || mail.request !== request) return table.send(mail);
      received = true;
      receive(mail.outcome);
    },
  };
  return table;
}

/** Settles a request that an earlier process has answered: only its handler runs here. */
export function settleUnsent(request: RequestView): void {
  activeRequestOf(request).take('respond');
}

/**
 * Stands in for the in-flight table of a request that no client has sent: accepts the first outcome, and nothing else.
 */
export function oneOutcome(address: string, receive: (outcome: Outcome) => void): Mailbox<RequestsMail> {
  return {
    address,
    send(mail) {
      if (mail.type === 'answer' && !mail.request.settled && activeRequestOf(mail.request).take('respond'))
        receive(mail.outcome);
    },
  };
}
