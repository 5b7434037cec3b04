/** What of an instance is kept: data that JSON says without changing it. What it cannot say is found here, and named. */
import { isObject, type JsonObject } from '../protocol/json.ts';

/** Something that would not come back from the store as it went in. The message says where it is, and what to keep instead. */
export class NotSerializable extends Error {
  override readonly name = 'Unkeepable';
}

/** Key by which XState refers to an actor in what it keeps: from a client it would become one (S-02). */
const REFERENCE = 'xstate$$type';

/** Keys that can reach the prototype of every object (RELIABILITY 2). */
const FORBIDDEN: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype', REFERENCE]);

/** What is wrong with data from outside, before a machine sees it; undefined where nothing is. */
export function notSerializable(value: unknown, maxDepth: number, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const at = path === '' ? 'the data' : path;
  if (maxDepth === 0) return `${at}: expected less nesting (the server's option is limits.maxDepth)`;
  for (const [key, member] of Object.entries(value)) {
    if (FORBIDDEN.has(key) && !Array.isArray(value)) return `${at}: the key "${key}" is refused`;
    const fault = notSerializable(member, maxDepth - 1, path === '' ? key : `${path}.${key}`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/**
 * The value as JSON will bring it back; the same one, where nothing in it changes. Errors, which machines keep to tell what went
 * wrong, are kept as their name and message.
 *
 * @throws {Unkeepable} for what JSON would lose or change without a word
 */
export function serializable(value: unknown, path: string, maxDepth: number): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'undefined':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      throw new NotSerializable(`${path}: ${value} cannot be kept: JSON has finite numbers only`);
    case 'object':
      return value === null ? value : keepableObject(value, path, maxDepth);
    default:
      throw new NotSerializable(
        `${path}: a ${typeof value} cannot be kept: keep data only, such as a string in its place`,
      );
  }
}

function keepableObject(value: object, path: string, maxDepth: number): unknown {
  if (maxDepth === 0)
    throw new NotSerializable(
      `${path.slice(0, 200)}: nested too deep to be kept (the server's option is limits.maxDepth)`,
    );
  if (Array.isArray(value)) return keepableItems(value, path, maxDepth);
  if (value instanceof Error) return { name: value.name, message: value.message };
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null && !isPlainElsewhere(prototype))
    throw new NotSerializable(
      `${path}: a ${nameOf(value)} cannot be kept: keep plain data, such as its ISO text for a Date`,
    );
  let copy: Record<string, unknown> | undefined;
  for (const [key, member] of Object.entries(value)) {
    if (typeof member === 'string') continue;
    const kept = serializable(member, `${path}.${key}`, maxDepth - 1);
    if (kept === member) continue;
    copy ??= { ...value };
    copy[key] = kept;
  }
  return copy ?? value;
}

function keepableItems(items: readonly unknown[], path: string, maxDepth: number): unknown {
  let copy: unknown[] | undefined;
  for (let index = 0; index < items.length; index += 1) {
    const item = items[index];
    const kept = serializable(item, `${path}[${index}]`, maxDepth - 1);
    if (kept === item) continue;
    copy ??= [...items];
    copy[index] = kept;
  }
  return copy ?? items;
}

/** The prototype of plain objects of another realm, such as a test's or a worker's. */
function isPlainElsewhere(prototype: unknown): boolean {
  return isObject(prototype) && Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype, 'isPrototypeOf');
}

function nameOf(value: object): string {
  const made: unknown = value.constructor;
  return typeof made === 'function' && made.name !== '' ? made.name : 'object of a class';
}

/** What XState persists of an actor, as far as it is ours to look into. */
export interface Persisted {
  readonly status: string;
  readonly value?: unknown;
  readonly context?: unknown;
  readonly children?: unknown;
  readonly output?: unknown;
  readonly error?: unknown;
}

/**
 * What XState persists, made fit to be kept: the outcome of a child that has ended is told to its parent already, and is dropped.
 *
 * @throws {Unkeepable}
 */
export function serializeSnapshot(persisted: unknown, maxDepth: number, path = 'context'): JsonObject {
  if (!isObject(persisted)) throw new NotSerializable(`${path}: the actor cannot be kept: it persists nothing`);
  const { status, context, children, error, output, ...rest } = persisted;
  const kept: Record<string, unknown> = { ...rest, status };
  if ('context' in persisted) kept.context = serializable(context, path, maxDepth);
  if (isObject(children)) {
    kept.children = Object.fromEntries(
      Object.entries(children).map(([id, child]) => [id, keepChild(child, maxDepth, `${id}.context`)]),
    );
    checkReferences(kept.context, children, path);
  }
  // Of the machine itself: its result, and why it failed.
  if (path === 'context') {
    if (output !== undefined) kept.output = serializable(output, 'output', maxDepth);
    if (error !== undefined) kept.error = serializable(error, 'error', maxDepth);
  }
  if ('input' in rest) kept.input = serializable(rest.input, `${path.replace(/context$/, '')}input`, maxDepth);
  // What is left is XState's own, or checked above.
  return kept as JsonObject;
}

function keepChild(child: unknown, maxDepth: number, path: string): unknown {
  if (!isObject(child)) return child;
  if (typeof child.src !== 'string')
    throw new NotSerializable(
      `${path.replace(/\.context$/, '')}: an actor that was spawned from its logic cannot be kept: name the logic in setup({ actors }), and spawn it by that name`,
    );
  return { ...child, snapshot: serializeSnapshot(child.snapshot, maxDepth, path) };
}

/** A reference in the context must be to a child that is there: another would come back as nothing. */
function checkReferences(context: unknown, children: Readonly<Record<string, unknown>>, path: string): void {
  if (typeof context !== 'object' || context === null) return;
  if (REFERENCE in context) {
    const id: unknown = 'id' in context ? context.id : undefined;
    if (typeof id === 'string' && Object.hasOwn(children, id)) return;
    throw new NotSerializable(`${path}: a reference to an actor that is none of the machine's cannot be kept`);
  }
  for (const [key, member] of Object.entries(context)) checkReferences(member, children, `${path}.${key}`);
}
