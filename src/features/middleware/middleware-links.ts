/** The registered middleware, by the method of the requests that it is for. */
import { describe } from '../../core/protocol/json.ts';
import { METHODS } from '../../core/protocol/methods.ts';
import type { Middleware, RequestMethodName } from './middleware.ts';

/** One registered function, with its name for errors. */
export interface MiddlewareLink {
  readonly label: string;
  readonly run: Middleware;
}

export class MiddlewareLinks {
  /** The functions of each method, in the order of registration. */
  readonly #links = new Map<RequestMethodName, readonly MiddlewareLink[]>();
  #count = 0;

  /**
   * @param method undefined for all methods
   * @throws {TypeError} if the method is unknown, or the middleware is no function
   */
  add(method: RequestMethodName | undefined, middleware: Middleware | undefined): void {
    if (method !== undefined && !SERVED.some((name) => name === method))
      throw new TypeError(
        `server.use: expected a function (call, ctx, next), or one of ${SERVED.join(', ')} and a function, got ${describe(method)}`,
      );
    if (typeof middleware !== 'function')
      throw new TypeError(`server.use: expected a function (call, ctx, next), got ${describe(middleware)}`);
    this.#count += 1;
    const label = `middleware ${middleware.name === '' ? this.#count : `"${middleware.name}"`}`;
    for (const name of method === undefined ? SERVED : [method])
      this.#links.set(name, [...(this.#links.get(name) ?? []), { label, run: middleware }]);
  }

  /** The functions for a method; undefined if there are none. */
  of(method: RequestMethodName): readonly MiddlewareLink[] | undefined {
    return this.#links.get(method);
  }
}

const SERVED: readonly RequestMethodName[] = [...METHODS].flatMap(([name, method]) =>
  method.kind === 'request' && method.served && isMethodName(name) ? [name] : [],
);

function isMethodName(name: string): name is RequestMethodName {
  return METHODS.get(name)?.kind === 'request';
}
