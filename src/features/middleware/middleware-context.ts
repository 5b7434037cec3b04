/** The context of a middleware: the part of a handler's context that neither asks the client nor records steps. */

import { type ContextHost, RequestContext } from '../../core/execution/request-context.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { MiddlewareContext } from './middleware.ts';

export class RequestMiddlewareContext implements MiddlewareContext {
  readonly #context: RequestContext;

  /** @param request not yet served: no interactive request has begun with it */
  constructor(request: RequestView, host: ContextHost) {
    this.#context = new RequestContext(request, host);
  }

  get signal(): MiddlewareContext['signal'] {
    return this.#context.signal;
  }

  get progress(): MiddlewareContext['progress'] {
    return this.#context.progress;
  }

  get log(): MiddlewareContext['log'] {
    return this.#context.log;
  }

  get client(): MiddlewareContext['client'] {
    return this.#context.client;
  }

  get session(): MiddlewareContext['session'] {
    return this.#context.session;
  }

  get principal(): MiddlewareContext['principal'] {
    return this.#context.principal;
  }

  get auth(): MiddlewareContext['auth'] {
    return this.#context.auth;
  }

  get requestId(): MiddlewareContext['requestId'] {
    return this.#context.requestId;
  }

  get elapsedMs(): MiddlewareContext['elapsedMs'] {
    return this.#context.elapsedMs;
  }

  get meta(): MiddlewareContext['meta'] {
    return this.#context.meta;
  }
}
