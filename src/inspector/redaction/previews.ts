/** What is shown in place of objects that say more by a name or a few members: mailboxes, requests, clients, snapshots, dates, errors, bytes. */
import { types } from 'node:util';

/** The value of an own member, without running a getter; undefined where there is none. */
export function ownValue(value: object, name: string | number): unknown {
  const descriptor = Object.getOwnPropertyDescriptor(value, name);
  if (descriptor === undefined) return undefined;
  return 'value' in descriptor ? descriptor.value : '«computed»';
}

/** What a function or class is called. */
export function previewName(value: object): string {
  const name = ownValue(value, 'name');
  return typeof name === 'string' ? name : '';
}

/** What an object is, by the name of its class. */
export function kindOf(value: object): string {
  if (types.isProxy(value)) return 'proxy';
  if (Array.isArray(value)) return `array of ${value.length}`;
  const prototype: unknown = Object.getPrototypeOf(value);
  const made = typeof prototype === 'object' && prototype !== null ? ownValue(prototype, 'constructor') : undefined;
  return typeof made === 'function' ? previewName(made) || 'object' : 'object';
}

/** @param value no proxy. @returns undefined for what stands for itself */
export function previewOf(value: object): { readonly value: unknown } | undefined {
  const own = (name: string): unknown => ownValue(value, name);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype) {
    const built = ofBuiltIn(value);
    if (built) return built;
  }
  if ('address' in value && 'send' in value) return { value: `«${String(own('address'))}»` };
  // An actor of XState, whose inside is the whole system.
  if ('xstate$$type' in value) return { value: `«actor ${String(own('id'))}»` };
  if ('servedBy' in value && 'operation' in value) return { value: ofRequest(own) };
  if ('dialect' in value && 'capabilities' in value && 'principal' in value) return { value: ofClient(own) };
  // Its description and schemas are in the answer to whoever lists it.
  if ('inputSchema' in value) return { value: `«tool ${String(own('name'))}»` };
  if ('era' in value && 'revision' in value) return { value: own('revision') };
  if ('machine' in value && 'context' in value && 'status' in value)
    return { value: { status: own('status'), value: own('value'), context: own('context') } };
  // A statechart: it holds its whole definition.
  if ('root' in value && 'implementations' in value) return { value: `«machine ${String(own('id'))}»` };
  return undefined;
}

function ofBuiltIn(value: object): { readonly value: unknown } | undefined {
  if (types.isDate(value)) {
    const time = Date.prototype.getTime.call(value);
    return { value: Number.isNaN(time) ? '«invalid date»' : Date.prototype.toISOString.call(value) };
  }
  if (types.isRegExp(value)) return { value: RegExp.prototype.toString.call(value) };
  if (types.isNativeError(value)) return { value: ofError(value) };
  if (types.isPromise(value)) return { value: '«promise»' };
  if (types.isAnyArrayBuffer(value) || ArrayBuffer.isView(value)) return { value: `«${value.byteLength} bytes»` };
  return value instanceof URL ? { value: value.href } : undefined;
}

type Own = (name: string) => unknown;

function ofError(error: Error): object {
  const name = ownValue(error, 'name');
  const cause = ownValue(error, 'cause');
  const code = ownValue(error, 'code');
  return {
    name: typeof name === 'string' ? name : kindOf(error),
    message: ownValue(error, 'message'),
    ...(code === undefined ? {} : { code }),
    ...(cause === undefined ? {} : { cause }),
  };
}

/** A request in flight: which. What its client has sent is in the record of the wire that it came from. */
function ofRequest(own: Own): object {
  const operation = own('operation');
  const said = (name: string): unknown =>
    typeof operation === 'object' && operation !== null ? ownValue(operation, name) : undefined;
  return { id: own('id'), method: said('method'), name: said('name'), uri: said('uri') };
}

function ofClient(own: Own): object {
  return { info: own('info'), revision: own('dialect'), principal: own('principal') };
}
