/** The calls on instances of keys between nodes, and their answers, as JSON. Both ends are nodes of one cluster, which trust each other. */
import { isAuth, restoredAuth } from '../../core/messages/auth.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import { HandleError, isHandleFault, isHelpfulTool } from './handle-error.ts';
import { isView } from './idempotent-calls.ts';
import type { KeyedAnswer, KeyedCall, KeyedOperation } from './keyed-calls.ts';
import { MovedElsewhere } from './load-instance.ts';
import type { Caller } from './machine-definition.ts';

/** The client of a caller cannot be asked at another node. */
export function callInText({
  caller: { principal, ctx, inView, isProgram, isInstance, ...more },
  ...call
}: KeyedCall): JsonObject {
  const auth = more.auth ?? ctx?.auth;
  const session = more.session ?? ctx?.session?.id;
  return { call: toText({ ...call, caller: { principal, auth, session, inView, isProgram, isInstance } }) };
}

/** @throws {TypeError | StoreError} for what {@link callInText} has not made */
export function readCall({ call }: JsonObject): KeyedCall {
  const value = fromText(String(call), 'a call of another node');
  if (isObject(value)) {
    const { machine, key, operation, caller, idempotencyKey } = value;
    if (typeof machine === 'string' && typeof key === 'string' && isOperation(operation) && isJsonObject(caller))
      return { machine, key, operation, caller: callerIn(caller), idempotencyKey: textIn(idempotencyKey) };
  }
  throw new TypeError('expected a call on the instance of a key');
}

function callerIn({ principal, auth, session, inView, isProgram, isInstance }: JsonObject): Caller {
  return {
    ...{ principal: String(principal), ctx: undefined, auth: isAuth(auth) ? restoredAuth(auth) : undefined },
    ...{ session: textIn(session), inView: inView === true, isProgram: isProgram === true },
    isInstance: isInstance === true,
  };
}

function isOperation(value: unknown): value is KeyedOperation {
  if (!isJsonObject(value)) return false;
  const { type, event, input, answers } = value;
  switch (type) {
    case 'event':
      return isJsonObject(event) && typeof event.type === 'string' && isJsonObject(event.data);
    case 'create':
      return isJsonObject(input);
    case 'answer':
      return isJsonObject(answers);
    default:
      return type === 'get' || type === 'end' || type === 'look';
  }
}

export function answerInText(answer: KeyedAnswer): JsonObject {
  return { answer: toText(answer) };
}

export function errorInText(error: HandleError): JsonObject {
  const { reason, message, next, tools, incident } = error;
  const unserved = error instanceof MovedElsewhere && error.unserved;
  return { error: toText({ reason, message, next, tools, incident, unserved }) };
}

/** The error of {@link errorInText}; undefined for another answer. */
export function errorFromText(value: JsonValue): HandleError | undefined {
  const { error } = isJsonObject(value) ? value : {};
  return typeof error === 'string' ? errorIn(fromText(error, 'the error of another node')) : undefined;
}

/** @throws {HandleError} that the call has thrown; another error for what neither of the two functions has made */
export function answerFromText(value: JsonValue): KeyedAnswer {
  const error = errorFromText(value);
  if (error) throw error;
  const { answer } = isJsonObject(value) ? value : {};
  const read: unknown = fromText(String(answer), 'the answer of another node');
  if (isView(read) || isProblems(read)) return read;
  throw new TypeError('expected the instance of a key');
}

function isProblems(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function errorIn(value: JsonValue): HandleError {
  const { reason, message, next, tools, incident, unserved } = isJsonObject(value) ? value : {};
  if (unserved === true) return new MovedElsewhere(true);
  const { accepts, deadEnd } = isJsonObject(next) ? next : {};
  return new HandleError(isHandleFault(reason) ? reason : 'failed', String(message), {
    ...(isProblems(accepts) ? { next: { accepts, ...(deadEnd === true ? { deadEnd } : {}) } } : {}),
    ...(Array.isArray(tools) ? { tools: tools.filter(isHelpfulTool) } : {}),
    ...(typeof incident === 'string' ? { incident } : {}),
  });
}

function textIn(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}
