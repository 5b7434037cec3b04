/** Checks that the data of an instance survives JSON unchanged, and names the part that does not. */

import { isPlain, nameOfInstance } from '../../core/execution/lost-data.ts';
import { isObject, type JsonObject } from '../../core/protocol/json.ts';

/** A value that would not survive storage. The message names its place and a replacement. */
export class NotSerializable extends Error {
  override readonly name = 'Unkeepable';
}

/** The data could be stored, but it exceeds a limit. */
export class TooLarge extends NotSerializable {}

/** XState's marker for a reference to an actor. Data from a client must not contain it (S-02). */
const REFERENCE = 'xstate$$type';

/** Keys that can reach the prototype of every object. */
const FORBIDDEN: ReadonlySet<string> = new Set(['__proto__', 'constructor', 'prototype', REFERENCE]);

/** Describes the fault in data from outside before a machine receives it; undefined if there is none. */
export function notSerializable(value: unknown, maxDepth: number, path = ''): string | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const at = path === '' ? 'the data' : path;
  if (maxDepth === 0) return `${at}: expected less nesting (the server's option is limits.maxDepth)`;
  for (const [key, member] of Object.entries(value)) {
    if (FORBIDDEN.has(key) && !Array.isArray(value)) return `${at}: the key "${key}" is not allowed`;
    const fault = notSerializable(member, maxDepth - 1, path === '' ? key : `${path}.${key}`);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/**
 * Returns the value as JSON restores it; the same object if nothing changes. Errors are stored as their name and message,
 * because machines retain them to report failures.
 *
 * @throws {NotSerializable} for a value that JSON would lose or change silently
 */
export function serializable(value: unknown, path: string, maxDepth: number): unknown {
  switch (typeof value) {
    case 'string':
    case 'boolean':
    case 'undefined':
      return value;
    case 'number':
      if (Number.isFinite(value)) return value;
      throw new NotSerializable(`${path}: ${value} cannot be stored: JSON has finite numbers only`);
    case 'object':
      return value === null ? value : keepableObject(value, path, maxDepth);
    default:
      throw new NotSerializable(
        `${path}: a ${typeof value} cannot be stored. Store plain data, such as a string, in its place`,
      );
  }
}

function keepableObject(value: object, path: string, maxDepth: number): unknown {
  if (maxDepth === 0)
    throw new NotSerializable(
      `${path.slice(0, 200)}: nested too deep to be stored (the server's option is limits.maxDepth)`,
    );
  if (Array.isArray(value)) return keepableItems(value, path, maxDepth);
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (!isPlain(value))
    throw new NotSerializable(
      `${path}: a ${nameOfInstance(value)} cannot be stored. Store plain data, such as the ISO text of a Date`,
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

/**
 * Converts XState's persisted snapshot to JSON data. The output of a child that has ended is dropped, because its parent has
 * already received it.
 *
 * @throws {NotSerializable}
 */
export function serializeSnapshot(persisted: unknown, maxDepth: number, path = 'context'): JsonObject {
  if (!isObject(persisted))
    throw new NotSerializable(`${path}: the actor cannot be stored: it has no persisted snapshot`);
  const { status, context, children, error, output, ...rest } = persisted;
  const kept: Record<string, unknown> = { ...rest, status };
  if ('context' in persisted) kept.context = serializable(context, path, maxDepth);
  if (isObject(children)) {
    kept.children = Object.fromEntries(
      Object.entries(children).map(([id, child]) => [id, keepChild(child, maxDepth, `${id}.context`)]),
    );
    checkReferences(kept.context, children, path);
  }
  // The output and error of the machine itself.
  if (path === 'context') {
    if (output !== undefined) kept.output = serializable(output, 'output', maxDepth);
    if (error !== undefined) kept.error = serializable(error, 'error', maxDepth);
  }
  if ('input' in rest) kept.input = serializable(rest.input, `${path.replace(/context$/, '')}input`, maxDepth);
  // The remaining members are XState's own, or checked above.
  return kept as JsonObject;
}

function keepChild(child: unknown, maxDepth: number, path: string): unknown {
  if (!isObject(child)) return child;
  if (typeof child.src !== 'string')
    throw new NotSerializable(
      `${path.replace(/\.context$/, '')}: an actor spawned from unnamed logic cannot be stored. Name the logic in setup({ actors }) and spawn it by that name`,
    );
  return { ...child, snapshot: serializeSnapshot(child.snapshot, maxDepth, path) };
}

/** A reference in the context must refer to an existing child. Otherwise it would be undefined after a restore. */
function checkReferences(context: unknown, children: Readonly<Record<string, unknown>>, path: string): void {
  if (typeof context !== 'object' || context === null) return;
  if (REFERENCE in context) {
    const id: unknown = 'id' in context ? context.id : undefined;
    if (typeof id === 'string' && Object.hasOwn(children, id)) return;
    throw new NotSerializable(`${path}: a reference to an actor that is not a child of the machine cannot be stored`);
  }
  for (const [key, member] of Object.entries(context)) checkReferences(member, children, `${path}.${key}`);
}
