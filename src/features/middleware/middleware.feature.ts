/** Middleware: functions of the program around requests. */
import { HandlerErrors } from '../../core/execution/handler-errors.ts';
import type { Feature } from '../../core/server/feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import type { Middleware, RequestMethodName } from './middleware.ts';
import { MiddlewareChain } from './middleware-chain.ts';
import { MiddlewareLinks } from './middleware-links.ts';

export interface RegisteredMiddleware {
  /** Those of the program: the same object, also when it grows. */
  readonly links: MiddlewareLinks;
  /** Puts a function around the requests of one method, or of all. @throws {TypeError} */
  use(method: RequestMethodName | undefined, middleware: Middleware | undefined): void;
  /** Runs the middleware of another server from now on. */
  share(links: MiddlewareLinks): void;
}

export const middleware: Feature<RegisteredMiddleware> = {
  name: 'middleware',
  open(core) {
    const { options, system, stages } = core;
    const links = new MiddlewareLinks(core.methods);
    let chain: MiddlewareChain | undefined;
    /** Until it is created, requests do not pass through it. */
    const created = (): MiddlewareChain => {
      chain ??= new MiddlewareChain(links, {
        contexts: core.elements,
        admission: core.service(authorization),
        errors: new HandlerErrors(system, options.errors),
      });
      stages.fill('middleware', chain.gate);
      return chain;
    };
    return {
      service: {
        links,
        use(method, added) {
          links.add(method, added);
          created();
        },
        share: (shared) => created().share(shared),
      },
    };
  },
};
