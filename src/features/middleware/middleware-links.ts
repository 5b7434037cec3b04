/** The registered middleware, by the method of the requests that it is for. */
import { describe } from '../../core/protocol/json.ts';
import type { Methods } from '../../core/protocol/methods.ts';
import type { Middleware, RequestMethodName } from './middleware.ts';

/** One registered function, with its name for errors. */
export interface MiddlewareLink {
  readonly label: string;
  readonly run: Middleware;
}

export class MiddlewareLinks {
  readonly #methods: Methods;
  /** The functions in the order of registration, with the method that each is for; undefined for all methods. */
  readonly #links: (readonly [method: RequestMethodName | undefined, link: MiddlewareLink])[] = [];
  /** Those of each method that was requested since the last registration. */
  readonly #ofMethod = new Map<RequestMethodName, readonly MiddlewareLink[]>();

  constructor(methods: Methods) {
    this.#methods = methods;
  }

  /**
   * @param method undefined for all methods
   * @throws {TypeError} if the method is unknown, or the middleware is no function
   */
  add(method: RequestMethodName | undefined, middleware: Middleware | undefined): void {
    const { names } = this.#methods;
    if (method !== undefined && !names.includes(method))
      throw new TypeError(
        `server.use: expected a function (call, ctx, next), or one of ${names.join(', ')} and a function, got ${describe(method)}`,
      );
    if (typeof middleware !== 'function')
      throw new TypeError(`server.use: expected a function (call, ctx, next), got ${describe(middleware)}`);
    const label = `middleware ${middleware.name === '' ? this.#links.length + 1 : `"${middleware.name}"`}`;
    this.#links.push([method, { label, run: middleware }]);
    this.#ofMethod.clear();
  }

  /** The functions for a method. */
  of(method: RequestMethodName): readonly MiddlewareLink[] {
    const known = this.#ofMethod.get(method);
    if (known) return known;
    const links = this.#links.flatMap(([own = method, link]) => (own === method ? [link] : []));
    this.#ofMethod.set(method, links);
    return links;
  }
}
