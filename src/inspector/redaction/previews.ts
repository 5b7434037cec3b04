/**
 * Short forms of objects that are better shown by a name or a few members: mailboxes, requests, clients, snapshots,
 * dates, errors, bytes.
 */
import { types } from 'node:util';

/** The value of an own member, without running a getter; undefined without such a member. */
export function ownValue(value: object, name: string | number): unknown {
  const descriptor = Object.getOwnPropertyDescriptor(value, name);
  if (descriptor === undefined) return undefined;
  return 'value' in descriptor ? descriptor.value : '«computed»';
}

/** The name of a function or class. */
export function previewName(value: object): string {
  const name = ownValue(value, 'name');
  return typeof name === 'string' ? name : '';
}

/** The class name of an object. */
export function kindOf(value: object): string {
  if (types.isProxy(value)) return 'proxy';
  if (Array.isArray(value)) return `array of ${value.length}`;
  const prototype: unknown = Object.getPrototypeOf(value);
  const made = typeof prototype === 'object' && prototype !== null ? ownValue(prototype, 'constructor') : undefined;
  return typeof made === 'function' ? previewName(made) || 'object' : 'object';
}

/** @param value not a proxy. @returns undefined for a value without a short form */
export function previewOf(value: object): { readonly value: unknown } | undefined {
  const own = (name: string): unknown => ownValue(value, name);
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype) {
    const built = ofBuiltIn(value);
    if (built) return built;
  }
  if ('address' in value && 'send' in value) return { value: `«${String(own('address'))}»` };
  // An XState actor contains the whole system.
  if ('xstate$$type' in value) return { value: `«actor ${String(own('id'))}»` };
  if ('servedBy' in value && 'operation' in value) return { value: ofRequest(own) };
  if ('dialect' in value && 'capabilities' in value && 'principal' in value) return { value: ofClient(own) };
  // The response to `tools/list` has its description and schemas.
  if ('inputSchema' in value) return { value: `«tool ${String(own('name'))}»` };
  if ('era' in value && 'revision' in value) return { value: own('revision') };
  if ('machine' in value && 'context' in value && 'status' in value)
    return { value: { status: own('status'), value: own('value'), context: own('context') } };
  // A statechart contains its whole definition.
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

/** Identifies a request in flight. The record of the wire message has its parameters. */
function ofRequest(own: Own): object {
  const operation = own('operation');
  const said = (name: string): unknown =>
    typeof operation === 'object' && operation !== null ? ownValue(operation, name) : undefined;
  return { id: own('id'), method: said('method'), name: said('name'), uri: said('uri') };
}

function ofClient(own: Own): object {
  return { info: own('info'), revision: own('dialect'), principal: own('principal') };
}
