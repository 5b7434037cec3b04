/** Methods of the protocol that features add, and the executors that answer them. */
import type { MethodContext } from '../execution/context.ts';
import { spawnExecutor } from '../execution/executor.actor.ts';
import { HandlerErrors } from '../execution/handler-errors.ts';
import { type ContextHost, RequestContext } from '../execution/request-context.ts';
import type { Stages } from '../execution/stages.ts';
import type { ActorSystem } from '../kernel/actor.ts';
import type { RequestTarget } from '../messages/request-messages.ts';
import { describe, isJsonObject, isThenable, type JsonObject } from '../protocol/json.ts';
import { BOTH_ERAS, type Methods, type RequestMethod } from '../protocol/methods.ts';
import { isAddedMethod, type Operation, type Params } from '../protocol/operations.ts';
import type { Era } from '../protocol/revisions.ts';
import type { ServerCapabilities } from '../protocol/types.ts';
import type { ServerOptions } from './options.ts';

/** A method that a feature adds and answers. */
export interface FeatureMethod<P = unknown> {
  /** Default: both. */
  readonly eras?: readonly Era[];
  /** The extension that the server must use, such as `com.example/words`. `core.capabilities.extend` announces it. */
  readonly extension?: string;
  /** The capability that the server must offer. */
  readonly needs?: keyof ServerCapabilities;
  /** Served even before a session exists. */
  readonly always?: true;
  /** The parameter that a modern client repeats in the header `Mcp-Name`. */
  readonly named?: string;
  /** Makes the value of `answer` of the params, which a client may have chosen freely. @throws {ProtocolError} with -32602 */
  read(params: Params): P;
  /** Returns the result, as JSON. What it throws is the error of the request, with an incident unless it is a ProtocolError. */
  answer(params: P, ctx: MethodContext): JsonObject | Promise<JsonObject>;
}

/**
 * Defines a method of the protocol that a feature adds. Its name has a dot, so that no revision of the protocol has the same.
 *
 * @param row the reader of the params and the function that answers; both may throw a ProtocolError
 * @returns the row for `methods` of what the feature opens
 * @example const count = defineMethod({ read: (params) => String(params?.text), answer: (text) => ({ count: text.length }) });
 * return { service: undefined, methods: { 'com.example.words/count': count } };
 */
export function defineMethod<P>(row: FeatureMethod<P>): FeatureMethod {
  // Only what `read` has returned is passed to `answer`.
  return { ...row, answer: (params, ctx) => row.answer(params as P, ctx) };
}

/** The parts of a server that the methods of features use. */
interface MethodsHost {
  readonly system: ActorSystem;
  readonly options: Pick<ServerOptions, 'errors'>;
  readonly stages: Stages;
  readonly methods: Methods;
  readonly elements: ContextHost;
}

/** Adds the methods of a feature to a server: those that it answers, and those that its targets serve. @throws {Error} for a second method of one name */
export function addMethods(core: MethodsHost, given: Readonly<Record<string, RequestMethod | FeatureMethod>>) {
  const targets: Record<string, RequestTarget> = {};
  for (const [name, row] of Object.entries(given)) {
    if (!('answer' in row)) {
      core.methods.add(name, row);
      continue;
    }
    const { eras = BOTH_ERAS, read, answer: _, ...rest } = row;
    if (!isAddedMethod(name))
      throw new TypeError(
        `expected the name of a method that begins with a domain, such as "com.example.words/count", got ${describe(name)}`,
      );
    const operation = (params: Params): Operation => ({ method: name, params: read(params) });
    core.methods.add(name, { ...rest, kind: 'request', eras, served: { by: name, read: operation } });
    targets[name] = answering(core, name, row);
  }
  return targets;
}

/** @throws {TypeError} */
function checked(result: unknown): JsonObject {
  if (!isJsonObject(result)) throw new TypeError(`expected a result that is an object, got ${describe(result)}`);
  if (!Object.hasOwn(result, 'resultType')) return result;
  throw new TypeError('expected a result without resultType, which the server adds where the revision has it');
}

function answering(core: MethodsHost, name: string, row: FeatureMethod): RequestTarget {
  const { system, stages, options } = core;
  const { mailbox } = spawnExecutor<FeatureMethod & { readonly label: string }, unknown, JsonObject>({
    ...{ system, stages, address: `executor/${name}`, errors: new HandlerErrors(system, options.errors) },
    run(request, { answer }, params) {
      const result = answer(params, new RequestContext(request, core.elements));
      return isThenable(result) ? Promise.resolve(result).then(checked) : checked(result);
    },
    wrap: (result) => ({ kind: 'object', result }),
  });
  mailbox.send({ type: 'attach', ref: 0, implementation: { ...row, label: `method ${name}` } });
  return {
    send({ request }) {
      const { operation } = request;
      const target = 'params' in operation ? operation.params : undefined;
      mailbox.send({ type: 'execute', request, ref: 0, target });
    },
  };
}
