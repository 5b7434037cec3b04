/** The methods of state: make operations of calls, and run them on a scope. */
import type { State, StateKey, StateWriteOptions, WatchedState } from '../../core/execution/state.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { describe } from '../../core/protocol/json.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { ScopeDocument, ScopeLimits } from './scope-document.ts';
import { StateError } from './state-error.ts';
import type { ScopeOwner } from './state-messages.ts';
import { principalScope, type StateScopes, sessionScope } from './state-scopes.ts';
import {
  checkedValue,
  fromValueText,
  keyExcerpt,
  keyOf,
  toValueText,
  ttlOf,
  type ValueLimits,
  withChecks,
} from './state-values.ts';

export interface StateOptions {
  readonly scopes: StateScopes;
  readonly limits: ValueLimits & ScopeLimits;
}

type AnyKey = StateKey | string;
type Change = (value: never) => unknown;

/** The state of one scope. Its methods need no `this`, because handlers destructure. */
class ScopeState implements State {
  readonly #options: StateOptions;
  readonly #owner: ScopeOwner | undefined;
  readonly #unfinished = new Set<{ readonly name: string }>();

  /** @param owner undefined: each call rejects with `no caller` */
  constructor(options: StateOptions, owner: ScopeOwner | undefined) {
    this.#options = options;
    this.#owner = owner;
  }

  readonly get: State['get'] = async (key: AnyKey) => {
    const name = keyOf(key, this.#options.limits);
    const text = await this.#run(`get(${keyExcerpt(name)})`, 0, (document) => document.get(name));
    return withChecks(async () => readAs(key, text));
  };

  readonly set: State['set'] = async (key: AnyKey, value: unknown, options?: StateWriteOptions) => {
    const { limits } = this.#options;
    const name = keyOf(key, limits);
    const ttlMs = ttlOf(options);
    // Now, in case the handler changes the value while it is checked.
    const given = toValueText(name, value, limits);
    return withChecks(async () => {
      const stored =
        typeof key === 'string'
          ? given
          : toValueText(name, checkedValue(key, fromValueText(name, given.text), 'value'), limits);
      await this.#run(`set(${keyExcerpt(name)})`, stored.bytes, (document, now) =>
        document.set(name, { ...stored, expires: after(now, ttlMs) }, limits),
      );
    });
  };

  readonly delete: State['delete'] = async (key) => {
    const name = keyOf(key, this.#options.limits);
    return this.#run(`delete(${keyExcerpt(name)})`, 0, (document) => document.delete(name));
  };

  readonly update: State['update'] = async (key: AnyKey, change: Change, options?: StateWriteOptions) => {
    const { limits } = this.#options;
    const name = keyOf(key, limits);
    const ttlMs = ttlOf(options);
    if (typeof change !== 'function')
      throw new StateError(
        'value',
        `update(${keyExcerpt(name)}): expected a function of the value, got ${describe(change)}`,
      );
    const run = () =>
      this.#run(`update(${keyExcerpt(name)})`, 0, (document, now) => {
        const text = document.get(name);
        const next = change(readAs(key, text));
        if (next === undefined) {
          document.delete(name);
          return undefined;
        }
        if (next instanceof Promise) throw asynchronous(name, next);
        const stored = toValueText(name, checkedValue(key, next, 'value'), limits);
        document.set(name, { ...stored, expires: after(now, ttlMs) }, limits);
        // A copy, as `get` returns it.
        return readAs(key, stored.text);
      });
    return typeof key === 'string' ? run() : withChecks(run);
  };

  readonly list: State['list'] = async (prefix) => {
    if (prefix !== undefined && typeof prefix !== 'string')
      throw new StateError('key', `list: expected the text with which keys begin, got ${describe(prefix)}`);
    return this.#run('list()', 0, (document) => document.list(prefix));
  };

  readonly clear: State['clear'] = async () => {
    await this.#run('clear()', 0, (document) => document.clear(), true);
  };

  /** The operations that have not ended, such as `set("cart")`. */
  get unfinished(): readonly string[] {
    return Array.from(this.#unfinished, ({ name }) => name);
  }

  #run<T>(name: string, bytes: number, run: (document: ScopeDocument, now: number) => T, clears?: true): Promise<T> {
    const owner = this.#owner;
    if (!owner) throw noCaller();
    const operation = { name };
    this.#unfinished.add(operation);
    return new Promise<T>((resolve, reject) => {
      let result: T;
      this.#options.scopes.operate(owner, {
        bytes,
        ...(clears && { clears }),
        run: (document, now) => {
          result = run(document, now);
        },
        resolve: () => {
          this.#unfinished.delete(operation);
          resolve(result);
        },
        reject: (error) => {
          this.#unfinished.delete(operation);
          reject(error);
        },
      });
    });
  }
}

/** The state of the caller of a handler. */
class StateOfCaller extends ScopeState implements WatchedState {
  readonly scope: WatchedState['scope'];
  readonly #session: ScopeOwner | undefined;
  readonly #of: StateOptions;
  #ofSession: ScopeState | undefined;

  constructor(options: StateOptions, owner: ScopeOwner | undefined, session: ScopeOwner | undefined) {
    super(options, owner);
    this.scope = owner?.kind;
    this.#session = session;
    this.#of = options;
  }

  override get unfinished(): readonly string[] {
    return [...super.unfinished, ...(this.#ofSession?.unfinished ?? [])];
  }

  requireScope(): void {
    if (this.scope === undefined) throw noCaller();
  }

  get session(): State | undefined {
    if (this.#session) this.#ofSession ??= new ScopeState(this.#of, this.#session);
    return this.#ofSession;
  }
}

/** The state of the caller of a request. */
export function callerState(options: StateOptions, { client: { principal, session } }: RequestView): WatchedState {
  const ofSession = session && sessionScope(session.id, principal);
  return new StateOfCaller(options, principal === ANONYMOUS ? ofSession : principalScope(principal), ofSession);
}

/** The schema of a key decides the type of its value; undefined is one of them. */
function readAs(key: AnyKey, text: string | undefined): never {
  const name = typeof key === 'string' ? key : key.key;
  return (text === undefined ? undefined : checkedValue(key, fromValueText(name, text), 'stored')) as never;
}

/** The time at which a value ends; undefined without a time to live. */
function after(now: number, ttlMs: number | undefined): number | undefined {
  return ttlMs === undefined ? undefined : now + ttlMs;
}

function asynchronous(name: string, promise: Promise<unknown>): StateError {
  promise.catch(() => {});
  return new StateError(
    'value',
    `update(${keyExcerpt(name)}): the function is asynchronous, but it may have to run again. Await what it needs before, and pass a synchronous function`,
  );
}

function noCaller(): StateError {
  return new StateError(
    'no caller',
    'this caller is anonymous and has no session, as each client of 2026-07-28 over HTTP, so its state would be that of everybody. Let clients sign in (createServer({ http: { authenticate } })), serve on stdio, or use a machine, whose handle the client keeps. ctx.state.scope is undefined for such a caller',
  );
}

/** The state of a principal outside of its calls. @throws {StateError} `no caller` for `anonymous` */
export function stateOfPrincipal(options: StateOptions, principal: string): State {
  if (typeof principal !== 'string' || principal === '' || principal === ANONYMOUS)
    throw new StateError(
      'no caller',
      `stateOf: expected the principal of a user, as ctx.principal has it, got ${describe(principal)}. Anonymous callers have no state together`,
    );
  return new ScopeState(options, principalScope(principal));
}
