/** Middleware: functions of the program around requests. */
import { HandlerErrors } from '../../core/execution/handler-errors.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import type { Middleware, RequestMethodName } from './middleware.ts';
import { MiddlewareChain } from './middleware-chain.ts';
import { MiddlewareLinks } from './middleware-links.ts';

interface RegisteredMiddleware {
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
    const links = new Lazy(() => new MiddlewareLinks(core.methods));
    /** Until it is created, requests do not pass through it. */
    const chain = new Lazy(() => {
      const created = new MiddlewareChain(links.value, {
        contexts: core.elements,
        admission: core.service(authorization),
        errors: new HandlerErrors(system, options.errors),
      });
      stages.fill('middleware', created.gate);
      return created;
    });
    return {
      service: {
        get links() {
          return links.value;
        },
        use(method, added) {
          links.value.add(method, added);
          // Created only after the function was accepted.
          void chain.value;
        },
        share: (shared) => chain.value.share(shared),
      },
    };
  },
};
