/** Finds data that JSON would lose or cannot represent: a promise, a Map, a function, a BigInt, a cycle. */

/** Depth at which a value may be a cycle, so that the exact search decides. */
const MAX_QUICK_DEPTH = 64;

/**
 * Describes the first part of a value that JSON would lose, with its path and a correction; undefined if there is none.
 *
 * An instance of a class is sent as its fields, and is lost only if it has none. `toJSON` decides for itself.
 *
 * @param path the name of the value, such as `result.structuredContent`
 * @throws the error of a getter or a Proxy in the value
 */
export function findLostData(value: unknown, path: string): string | undefined {
  return mayLose(value, 0) ? lostPart(value, path, []) : undefined;
}

/** {@link findLostData} for a value whose serialization reports an error of a getter or a Proxy. Never throws. */
export function lostData(value: unknown, path: string): string | undefined {
  try {
    return findLostData(value, path);
  } catch {
    return undefined;
  }
}

/** The quick check, on the path of every result: true also for a value that is only deep. */
function mayLose(value: unknown, depth: number): boolean {
  if (typeof value !== 'object')
    return typeof value === 'function' || typeof value === 'symbol' || typeof value === 'bigint';
  if (value === null) return false;
  if (depth > MAX_QUICK_DEPTH) return true;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index += 1) {
      const item: unknown = value[index];
      if (typeof item !== 'string' && typeof item !== 'number' && mayLose(item, depth + 1)) return true;
    }
    return false;
  }
  if (Object.getPrototypeOf(value) !== Object.prototype) return true;
  for (const key in value) {
    const member: unknown = Reflect.get(value, key);
    if (typeof member !== 'string' && typeof member !== 'number' && mayLose(member, depth + 1)) return true;
  }
  return false;
}

/** The exact search. @param within the values that contain this one */
function lostPart(value: unknown, path: string, within: readonly object[]): string | undefined {
  switch (typeof value) {
    case 'function':
      return `${path}: a function has no JSON form. Leave it out, or use its result`;
    case 'symbol':
      return `${path}: a symbol has no JSON form. Use its description`;
    case 'bigint':
      return `${path}: a BigInt has no JSON form. Use String(value), or Number(value) if it is small`;
    case 'object':
      return value === null ? undefined : lostObject(value, path, within);
    default:
      return undefined;
  }
}

function lostObject(value: object, path: string, within: readonly object[]): string | undefined {
  // A Buffer has a `toJSON`, which lists its bytes as numbers.
  if (value instanceof Uint8Array || value instanceof ArrayBuffer)
    return `${path}: ${aOrAn(nameOfInstance(value))} has no useful JSON form. Use image(bytes, mimeType), audio(bytes, mimeType) or embedded(uri, bytes), or text such as Buffer.from(bytes).toString('base64')`;
  if (ArrayBuffer.isView(value))
    return `${path}: ${aOrAn(nameOfInstance(value))} would be sent as an object. Use [...array]`;
  if ('toJSON' in value && typeof value.toJSON === 'function') return undefined;
  if (within.includes(value)) return `${path}: a cycle has no JSON form. Use ids in place of references`;
  const inside = [...within, value];
  if (Array.isArray(value)) return firstOf(value.entries(), (index) => `${path}[${index}]`, inside);
  if ('then' in value && typeof value.then === 'function')
    return `${path}: a Promise, which would be sent as {}. Await it first`;
  const plain = isPlain(value);
  const correction = plain ? undefined : correctionFor(value);
  if (correction !== undefined) return `${path}: ${aOrAn(nameOfInstance(value))} would be sent as {}. ${correction}`;
  // The methods of an instance are no data.
  const entries = Object.entries(value).filter(([, member]) => plain || typeof member !== 'function');
  return firstOf(entries, (key) => `${path}.${key}`, inside);
}

function firstOf<K>(
  entries: Iterable<readonly [K, unknown]>,
  pathOf: (key: K) => string,
  within: readonly object[],
): string | undefined {
  for (const [key, member] of entries) {
    const lost = lostPart(member, pathOf(key), within);
    if (lost !== undefined) return lost;
  }
  return undefined;
}

/** Explains how to send an instance of which JSON shows nothing; undefined if JSON shows its fields. */
function correctionFor(value: object): string | undefined {
  if (value instanceof Map) return 'Use Object.fromEntries(map)';
  if (value instanceof Set) return 'Use [...set]';
  if (value instanceof Error) return 'Throw it, or use its message';
  if (value instanceof RegExp) return 'Use its source';
  // The object of a primitive value is sent as that value.
  if (value instanceof String || value instanceof Number || value instanceof Boolean) return undefined;
  return Object.keys(value).length > 0 ? undefined : 'Use an object of its data';
}

/** True for objects that `{}`, JSON and structured cloning create, also in another realm, such as a test's. */
export function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype === Object.prototype || prototype === null) return true;
  return (
    typeof prototype === 'object' &&
    Object.getPrototypeOf(prototype) === null &&
    Object.hasOwn(prototype, 'isPrototypeOf')
  );
}

/** The name of an object's class. */
export function nameOfInstance(value: object): string {
  const made: unknown = value.constructor;
  return typeof made === 'function' && made.name !== '' ? made.name : 'object of a class';
}

function aOrAn(name: string): string {
  return `${/^[AEIOUaeiou]/.test(name) ? 'an' : 'a'} ${name}`;
}
