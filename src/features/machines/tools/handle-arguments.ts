/** The arguments of a machine's tools: the author's own, plus the handle and the idempotency key. */
import { describe, isJsonObject, isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { DefinitionError } from '../../../core/registry/definition-checks.ts';
import { ANY_OBJECT, compileInput, compileOutput } from '../../../core/schema/compile-schema.ts';
import type { Checked, CompiledSchema, Problem } from '../../../core/schema/schema.ts';
import type { AuthorSchema } from '../../../core/schema/schema-types.ts';
import type { AnyMachine } from '../define-machine.ts';
import { problemOfKey } from '../keys.ts';

/** The checked arguments of a call on an instance. */
export interface Called {
  /** The handle, or the key that an argument names; undefined for the key of the caller itself. */
  readonly handle: string | undefined;
  /** The client's idempotency key for this call. */
  readonly key: string | undefined;
  /** The output of the author's schema. */
  readonly data: unknown;
}

/** The same for the tool that sends any event. */
export interface CalledAny extends Called {
  readonly event: string;
}

/** The arguments of the list tool. */
export interface Paging {
  readonly after: string | undefined;
  readonly limit: number;
}

/** The argument that names the instance. */
export interface Address {
  readonly name: string;
  readonly json: JsonObject;
  check(value: unknown): readonly Problem[] | Promise<readonly Problem[]>;
}

/** Every model reads these schemas with each tool. The description of the create tool says what a handle is, and lengths are checked. */
const HANDLE = { type: 'string' } as const;

const KEY = { type: 'string' } as const;

/** The address of an instance without a key. */
const BY_HANDLE: Address = {
  name: 'handle',
  json: HANDLE,
  check: (value) => textProblem(value, 'handle'),
};

/**
 * Returns the argument that names an instance of a machine; undefined for a machine whose instances have the key of the caller.
 *
 * @throws {SchemaError}
 */
export function addressArgument({ key }: Pick<AnyMachine, 'key'>, where: string): Address | undefined {
  if (key === undefined) return BY_HANDLE;
  if (typeof key === 'string') return undefined;
  const { argument: name, schema } = key;
  const own = (value: unknown): readonly Problem[] => {
    const problem = problemOfKey(value);
    return problem === undefined
      ? []
      : [{ path: name, expected: problem.replace(/^expected /, '').replace(/, got .*$/, ''), got: describe(value) }];
  };
  if (schema === undefined) return { name, json: HANDLE, check: own };
  const { json, check } = compileOutput(schema, `${where}: key.schema`);
  const problemsIn = (checked: Checked<unknown>): readonly Problem[] =>
    checked.ok ? [] : checked.problems.map((problem) => ({ ...problem, path: name }));
  return {
    name,
    json: withoutUsualDialect(json),
    check(value) {
      const problems = own(value);
      if (problems.length > 0) return problems;
      const checked = check(value);
      return checked instanceof Promise ? checked.then(problemsIn) : problemsIn(checked);
    },
  };
}

/** An anonymous key must be as hard to guess as the handle that it returns. */
const MAKING_KEY = {
  type: 'string',
  description:
    '24 or more random characters of your own. If you do not know whether a call of any of these tools succeeded, send it again with the same key: it runs once',
} as const;

/** The dialect of schemas that name none (MCP 2026-07-28 basic, "JSON Schema Usage"). */
const USUAL_DIALECT = /^https:\/\/json-schema\.org\/draft\/2020-12\/schema#?$/;

/** A schema as models read it: without the name of the usual dialect. */
export function withoutUsualDialect({ $schema, ...schema }: JsonObject): JsonObject {
  return typeof $schema === 'string' && !USUAL_DIALECT.test($schema) ? { $schema, ...schema } : schema;
}

/** The member of an event that holds its name. No argument may have this name. */
const TYPE = 'type';

/** Accepts no arguments of the author's. */
const NONE: CompiledSchema = {
  json: { type: 'object', properties: {}, additionalProperties: false },
  check(value) {
    const problems = Object.entries(isObject(value) ? value : {}).map(([path, given]) => ({
      path,
      expected: 'nothing: unknown argument',
      got: describe(given),
    }));
    return problems.length === 0 ? { ok: true, value: {} } : { ok: false, problems };
  },
};

/**
 * Compiles the arguments of the create tool.
 *
 * @throws {DefinitionError | SchemaError}
 */
export function creating(input: AuthorSchema | undefined, where: string): CompiledSchema<Called> {
  return around(inputOf(input, where), where, { idempotencyKey: MAKING_KEY });
}

/** Compiles those of the create tool for the instance of a key, which exists once: a repetition needs no key of its own. */
export function creatingKeyed(
  input: AuthorSchema | undefined,
  where: string,
  address: Address | undefined,
): CompiledSchema<Called> {
  const inner = input === undefined ? NONE : inputOf(input, where);
  rejectMembers(inner, ['key', 'principal'], where);
  return around(inner, where, {}, false, address);
}

function inputOf(input: AuthorSchema | undefined, where: string): CompiledSchema {
  return input === undefined ? ANY_OBJECT : compileInput(input, where);
}

/** @throws {DefinitionError} for a schema with a member that Troupe adds */
function rejectMembers({ json: { properties } }: CompiledSchema, names: readonly string[], where: string): void {
  const taken = names.find((name) => isObject(properties) && Object.hasOwn(properties, name));
  if (taken !== undefined)
    throw new DefinitionError(`${where}: ${taken}: a machine with keys receives this member from Troupe. Rename it`);
}

/**
 * Compiles the author's schema of an event's members.
 *
 * @throws {SchemaError}
 */
export function membersOf(schema: true | AuthorSchema, where: string): CompiledSchema {
  return schema === true ? NONE : compileInput(schema, where);
}

/**
 * Compiles the arguments of the tool for one event.
 *
 * @throws {DefinitionError}
 */
export function sending(members: CompiledSchema, where: string, address: Address | undefined): CompiledSchema<Called> {
  if (address !== BY_HANDLE) rejectMembers(members, ['by'], where);
  const { properties } = members.json;
  if (isObject(properties) && Object.hasOwn(properties, TYPE))
    throw new DefinitionError(`${where}: type: this member is reserved for the name of the event. Rename it`);
  return around(members, where, { idempotencyKey: KEY }, true, address);
}

/**
 * Compiles the arguments of the tool for all events.
 *
 * @throws {DefinitionError | SchemaError}
 */
export function sendingAny(
  events: ReadonlyMap<string, CompiledSchema>,
  where: string,
  address: Address | undefined,
): CompiledSchema<CalledAny> {
  const kinds = [...events].map(([type, { json }]): JsonObject => {
    const { $schema: _, ...schema } = json;
    // References within a schema resolve against its own root, so each schema needs an `$id`.
    return { ...schema, $id: schema.$id ?? `event-${encodeURIComponent(type.toWellFormed())}`, title: type };
  });
  const { json } = compileInput(
    {
      type: 'object',
      properties: {
        event: { type: 'string', enum: [...events.keys()], description: 'The name of the event' },
        data: {
          type: 'object',
          anyOf: kinds,
          description: 'The data of the event; the title of each schema is the name of its event',
        },
      },
      required: ['event'],
      additionalProperties: false,
    },
    where,
  );
  const outer = around(
    { json, check: (value) => ({ ok: true, value }) },
    where,
    { idempotencyKey: KEY },
    false,
    address,
  );
  const ready = new Map([...events].map(([type, members]) => [type, sending(members, `${where}.${type}`, address)]));
  return {
    json: outer.json,
    check(value) {
      const { event, data = {}, ...ours } = isObject(value) ? value : {};
      const members = typeof event === 'string' ? ready.get(event) : undefined;
      if (!members || typeof event !== 'string') {
        const expected = `one of ${[...events.keys()].map((type) => `"${type}"`).join(', ')}`;
        return { ok: false, problems: [{ path: 'event', expected, got: describe(event) }] };
      }
      if (!isObject(data)) return { ok: false, problems: [{ path: 'data', expected: 'object', got: describe(data) }] };
      const checked = members.check({ ...data, ...ours });
      const named = (result: Checked<Called>): Checked<CalledAny> =>
        result.ok
          ? { ok: true, value: { ...result.value, event } }
          : { ok: false, problems: result.problems.map((problem) => inData(problem, address)) };
      return checked instanceof Promise ? checked.then(named) : named(checked);
    },
  };
}

/** Prefixes the path of a problem within the event's data. */
function inData(problem: Problem, address: Address | undefined): Problem {
  const { path } = problem;
  if (path === address?.name || path === 'idempotencyKey') return problem;
  return { ...problem, path: path === '' || path.startsWith('[') ? `data${path}` : `data.${path}` };
}

/** Compiles the arguments of the get and end tools. */
export function naming(where: string, address: Address | undefined): CompiledSchema<Called> {
  return around(NONE, where, {}, false, address);
}

/** Maximum page size that a client may request. */
const MAX_PAGE = 100;

const PAGE = {
  type: 'object',
  properties: {
    after: { type: 'string', maxLength: 1_024, description: 'The "after" of the previous page' },
    limit: { type: 'integer', minimum: 1, maximum: MAX_PAGE, default: 50 },
  },
  additionalProperties: false,
} as const;

/** The same without the bounds that only the check needs. */
const LISTED_PAGE = {
  ...PAGE,
  properties: { ...PAGE.properties, after: { type: 'string', description: PAGE.properties.after.description } },
} as const;

/** Compiles the arguments of the list tool. */
export function paging(where: string): CompiledSchema<Paging> {
  const page = compileInput(PAGE, where);
  const read = (checked: Checked<unknown>): Checked<Paging> => {
    if (!checked.ok) return checked;
    const { after, limit = 50 } = isObject(checked.value) ? checked.value : {};
    return { ok: true, value: { after: typeof after === 'string' ? after : undefined, limit: Number(limit) } };
  };
  return {
    json: LISTED_PAGE,
    check(value) {
      const checked = page.check(value);
      return checked instanceof Promise ? checked.then(read) : read(checked);
    },
  };
}

type Ours = { readonly idempotencyKey?: typeof KEY | typeof MAKING_KEY };

/** @param typed whether the author's part becomes an event, in which `type` is reserved */
function around(
  inner: CompiledSchema,
  where: string,
  ours: Ours,
  typed = false,
  address?: Address,
): CompiledSchema<Called> {
  const { properties, required } = inner.json;
  const theirs = isJsonObject(properties) ? properties : {};
  const names = [...(address ? [address.name] : []), ...Object.keys(ours)];
  for (const name of names) {
    if (Object.hasOwn(theirs, name))
      throw new DefinitionError(
        `${where}: ${name}: every tool of a machine already has an argument of this name. Rename it`,
      );
  }
  const { idempotencyKey } = ours;
  const must = Array.isArray(required) ? required : [];
  const checkOurs = (given: Readonly<Record<string, unknown>>): readonly Problem[] => [
    ...(idempotencyKey && given.idempotencyKey !== undefined
      ? textProblem(given.idempotencyKey, 'idempotencyKey')
      : []),
    ...(typed && Object.hasOwn(given, TYPE)
      ? [{ path: TYPE, expected: 'nothing: the tool itself selects the event', got: describe(given.type) }]
      : []),
  ];
  return {
    json: {
      ...withoutUsualDialect(inner.json),
      properties: {
        ...(address ? { [address.name]: address.json } : {}),
        ...theirs,
        ...(idempotencyKey ? { idempotencyKey } : {}),
      },
      ...(address || must.length > 0 ? { required: [...(address ? [address.name] : []), ...must] } : {}),
    },
    check(value) {
      if (!isObject(value)) return { ok: false, problems: [{ path: '', expected: 'object', got: describe(value) }] };
      const rest = Object.fromEntries(Object.entries(value).filter(([name]) => !names.includes(name)));
      const given = address && value[address.name];
      const addressed = address?.check(given) ?? [];
      const called = (checked: Checked<unknown>, wrong: readonly Problem[]): Checked<Called> => {
        const problems = [...wrong, ...checkOurs(value)];
        if (!checked.ok) return { ok: false, problems: [...problems, ...checked.problems] };
        if (problems.length > 0) return { ok: false, problems };
        const key = value.idempotencyKey;
        return {
          ok: true,
          value: {
            handle: typeof given === 'string' ? given : undefined,
            key: typeof key === 'string' && idempotencyKey ? key : undefined,
            data: checked.value,
          },
        };
      };
      const checked = inner.check(rest);
      if (!(checked instanceof Promise) && !(addressed instanceof Promise)) return called(checked, addressed);
      return Promise.all([checked, addressed]).then((both) => called(...both));
    },
  };
}

function textProblem(value: unknown, path: string): readonly Problem[] {
  if (typeof value === 'string' && value.length > 0 && value.length <= 256) return [];
  return [{ path, expected: 'string of 1 to 256 characters', got: describe(value) }];
}

/**
 * Describes the arguments of a call for a model in a few words.
 *
 * @example 'sku: string, quantity?: integer'
 */
export function signature({ json: { properties, required } }: Pick<CompiledSchema, 'json'>): string {
  if (!isObject(properties)) return '';
  const must: readonly unknown[] = Array.isArray(required) ? required : [];
  return Object.entries(properties)
    .filter(([name]) => name !== 'handle' && name !== 'idempotencyKey')
    .map(([name, schema]) => `${name}${must.includes(name) ? '' : '?'}: ${typeText(schema)}`)
    .join(', ');
}

/** Longest list of choices to spell out. */
const MAX_CHOICES = 8;

function typeText(schema: unknown): string {
  if (!isObject(schema)) return 'any';
  if (Array.isArray(schema.enum) && schema.enum.length <= MAX_CHOICES) return schema.enum.map(literal).join(' | ');
  if ('const' in schema) return literal(schema.const);
  if (schema.type === 'array') return `${typeText(schema.items)}[]`;
  if (Array.isArray(schema.type)) return schema.type.join(' | ');
  return typeof schema.type === 'string' ? schema.type : 'any';
}

function literal(value: unknown): string {
  return typeof value === 'string' ? `"${value}"` : String(value);
}
