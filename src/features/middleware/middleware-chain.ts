/** The runs of middleware: passes each request through, to the actor that serves it, and back. */
import { isDeepStrictEqual } from 'node:util';
import type { HandlerErrors } from '../../core/execution/handler-errors.ts';
import type { ContextHost } from '../../core/execution/request-context.ts';
import type { RequestGate } from '../../core/execution/stages.ts';
import { failed } from '../../core/execution/tool-result.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestAdmission, RequestMail, RequestsMail } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome, Result } from '../../core/messages/results.ts';
import { isProtocolError, ProtocolError, toWireError } from '../../core/protocol/errors.ts';
import { ruledArguments, STAY_OPEN } from '../../core/protocol/operations.ts';
import { abortRequest, interceptOutcome, setOperation } from '../../core/requests/active-request.ts';
import { Aborted } from '../../core/requests/requests.actor.ts';
import { type RunningElement, running } from '../../core/requests/running.ts';
import type { Middleware, NextFunction, RequestCall, RequestResult } from './middleware.ts';
import { RequestMiddlewareContext } from './middleware-context.ts';
import type { MiddlewareLink, MiddlewareLinks } from './middleware-links.ts';
import { changedOperation, receivedCall } from './request-calls.ts';
import { madeResult, shownResult } from './request-results.ts';

/** The outcome of a run when nothing is left to send: the request was passed on, and answers for itself. */
const PASSED_ON = Symbol('passed on');

interface MiddlewareChainOptions {
  readonly contexts: ContextHost;
  readonly errors: HandlerErrors;
  /** Decides about a call that a middleware has changed. */
  readonly admission: Pick<RequestAdmission, 'admitChanged'>;
}

export class MiddlewareChain {
  readonly #options: MiddlewareChainOptions;
  #links: MiddlewareLinks;

  constructor(links: MiddlewareLinks, options: MiddlewareChainOptions) {
    this.#links = links;
    this.#options = options;
  }

  /** Runs the middleware of another server from now on, including what it gets later. */
  share(links: MiddlewareLinks): void {
    this.#links = links;
  }

  /** Passes a request on through its middleware. */
  readonly gate: RequestGate = (mail, next) => {
    const links = this.#links.of(mail.request.operation.method);
    if (links.length === 0) return next(mail);
    void new Run(mail, links, next, this.#options).start();
  };
}

/** One request on its way through the middleware. */
class Run {
  readonly #mail: RequestMail;
  readonly #request: RequestView;
  readonly #links: readonly MiddlewareLink[];
  readonly #next: (mail: RequestMail) => void;
  readonly #options: MiddlewareChainOptions;
  readonly #context: RequestMiddlewareContext;
  readonly #received: RequestCall;
  /** A copy of the arguments that rules have admitted: a middleware may change the received object itself. */
  readonly #admitted: unknown;
  /** The in-flight table that admitted the request. */
  #table: Mailbox<RequestsMail>;
  /** True between the moment in which the request is passed on and its outcome. */
  #serving = false;
  /** The result of the server, and the form in which middleware has received it. */
  #served: { readonly result: Result; readonly shown: RequestResult } | undefined;
  /** The error that was thrown last, and the middleware that threw it first. */
  #failing: { readonly error: unknown; readonly label: string } | undefined;
  /** True when its response was sent: a later outcome of the server only marks the end of its handler. */
  #answered = false;

  constructor(
    mail: RequestMail,
    links: readonly MiddlewareLink[],
    next: (mail: RequestMail) => void,
    options: MiddlewareChainOptions,
  ) {
    this.#mail = mail;
    this.#request = mail.request;
    this.#links = links;
    this.#next = next;
    this.#options = options;
    this.#table = this.#request.requests;
    this.#context = new RequestMiddlewareContext(this.#request, options.contexts);
    this.#received = receivedCall(this.#request.operation);
    this.#admitted = this.#request.guarded ? structuredClone(ruledArguments(this.#request.operation)) : undefined;
  }

  async start(): Promise<void> {
    let outcome: Outcome | typeof PASSED_ON;
    try {
      outcome = this.#outcomeOf(await this.#enter(0, this.#received));
    } catch (error) {
      outcome = this.#failure(error);
    }
    if (outcome !== PASSED_ON) this.#answer(outcome);
  }

  /** Runs the middleware at this place, or serves the request after the last. */
  async #enter(place: number, call: RequestCall): Promise<RequestResult> {
    const link = this.#links[place];
    if (!link) return this.#serve(call);
    const run: RunningElement = { label: link.label, request: this.#request };
    let entered = false;
    let left = false;
    const next = async (given: RequestCall = call): Promise<RequestResult> => {
      if (entered)
        throw new Error('next() was called twice: a request runs once. Keep the promise of the first next()');
      if (left) throw new Error('next() was called after the middleware had returned: await next(), or return it');
      entered = true;
      return this.#enter(place + 1, given);
    };
    try {
      // The type of a result follows from the method of its call, which the type of this function cannot express.
      const { span } = this.#request;
      const enter = (): ReturnType<Middleware> => running.run(run, link.run, call, this.#context, next as NextFunction);
      return await (span ? span.run(enter) : enter());
    } catch (error) {
      // The outer middleware that passes an error on has not thrown it.
      if (this.#failing?.error !== error) this.#failing = { error, label: link.label };
      throw error;
    } finally {
      left = true;
      run.request = undefined;
    }
  }

  /** Passes the request to the actor that serves it. */
  #serve(call: RequestCall): Promise<RequestResult> | RequestResult {
    const request = this.#request;
    // The request was cancelled, or timed out, before it reached its handler.
    if (request.settled) request.signal.throwIfAborted();
    const changes =
      call !== this.#received ||
      (request.guarded && !isDeepStrictEqual(this.#admitted, ruledArguments(request.operation)));
    if (changes) setOperation(request, changedOperation(request.operation, call));
    this.#serving = true;
    // A subscription has no response until it ends: it is passed on for good.
    if (STAY_OPEN.has(request.operation.method)) {
      this.#next(this.#mail);
      return {};
    }
    return new Promise((resolve, reject) => {
      this.#table = interceptOutcome(request, (outcome) => {
        this.#serving = false;
        if (this.#answered) return this.#table.send({ type: 'answer', request, outcome });
        if (!outcome.ok) {
          const { code, message, data } = outcome.error;
          return reject(new ProtocolError(code, message, data));
        }
        this.#served = { result: outcome.result, shown: shownResult(outcome.result) };
        resolve(this.#served.shown);
      });
      if (changes) this.#options.admission.admitChanged(this.#mail, this.#next);
      else this.#next(this.#mail);
    });
  }

  #outcomeOf(returned: RequestResult): Outcome | typeof PASSED_ON {
    const { operation } = this.#request;
    const { method } = operation;
    if (STAY_OPEN.has(operation.method) && this.#serving) return PASSED_ON;
    if (this.#served && returned === this.#served.shown) return { ok: true, result: this.#served.result };
    return madeResult(method, returned);
  }

  #failure(error: unknown): Outcome | typeof PASSED_ON {
    const { errors } = this.#options;
    const request = this.#request;
    // Without a failing middleware, the result of the first was invalid.
    const failing = this.#failing;
    const label = failing && failing.error === error ? failing.label : (this.#links[0]?.label ?? 'middleware');
    const { method } = request.operation;
    if (method === 'tools/call' && !isProtocolError(error)) {
      const { text, incident } = errors.ofTool(label, error, request.signal);
      return { ok: true, result: { kind: 'call', result: failed(text, incident) } };
    }
    const wire = isProtocolError(error)
      ? toWireError(error, '')
      : errors.ofRequest('middleware', label, error, request.signal);
    return STAY_OPEN.has(request.operation.method) && this.#serving ? PASSED_ON : { ok: false, error: wire };
  }

  #answer(outcome: Outcome): void {
    const request = this.#request;
    this.#answered = true;
    // The request has ended, and its handler has not: the handler's outcome marks the end.
    if (request.settled && this.#serving) return;
    this.#table.send({ type: 'answer', request, outcome });
    if (this.#serving) {
      this.#table.send({ type: 'detached', request });
      abortRequest(request, new Aborted('a middleware has answered this request'));
    }
    // A rejected "initialize" has opened nothing: the client may send it again.
    if (!outcome.ok && request.operation.method === 'initialize')
      request.client.session?.mailbox.send({ type: 'close', reason: outcome.error.message });
  }
}
