/**
 * Checks the members of definitions at run time, for authors without a type checker: one wrong member makes clients
 * reject the whole list.
 */

import { describe, isObject } from '../protocol/json.ts';
import { suggestion } from '../protocol/near-miss.ts';
import * as option from '../protocol/option-rows.ts';
import { problemOfScopes } from '../protocol/scopes.ts';

/** Thrown for an invalid definition. The message names the element, the problem and the fix. */
export class DefinitionError extends Error {
  override readonly name = 'DefinitionError';
}

export const statechart = option.expected(
  'a statechart of XState v5 (from createMachine, or setup({ … }).createMachine)',
  (value) => isObject(value) && typeof value.transition === 'function' && typeof value.provide === 'function',
);

export const icons: option.Check = (value) => {
  if (!Array.isArray(value)) return `expected a list of icons, got ${describe(value)}`;
  return value.every((icon) => isObject(icon) && typeof icon.src === 'string')
    ? undefined
    : 'expected each icon to be an object with a string "src"';
};

const GUARDED = { scopes: problemOfScopes, allow: option.functional };
/** A limit or a policy on an element that cannot have it would guard nothing. */
const OF_TOOLS = option.each(
  ['limits', 'approve'],
  () => 'expected it on a tool; other elements have scopes and allow',
);
/** The members of every element. */
export const DESCRIBED = { ...GUARDED, title: option.anyText, description: option.anyText, icons, meta: option.object };
const ANNOTATED = {
  audience: option.expected(
    'a list of "user" and "assistant"',
    (value) => Array.isArray(value) && value.every((who) => who === 'user' || who === 'assistant'),
  ),
  priority: option.expected('a number from 0 to 1', (value) => typeof value === 'number' && value >= 0 && value <= 1),
  lastModified: option.anyText,
};
const HINTS = {
  title: option.anyText,
  readOnlyHint: option.flag,
  destructiveHint: option.flag,
  idempotentHint: option.flag,
  openWorldHint: option.flag,
};

/** The checks of members by their names. */
export type Checks = Readonly<Record<string, option.Check>>;

/** The checks of each kind's members, except its name, schemas and handler. */
export const MEMBERS = {
  tool: {
    ...DESCRIBED,
    annotations: option.members(HINTS),
    timeoutMs: option.duration,
    rerun: option.flag,
    cpu: option.expected('true or the URL of a module', (value) => typeof value === 'boolean' || isObject(value)),
    task: option.oneOf('never', 'allowed', 'required'),
    machine: statechart,
    app: option.expected(
      'the name of an app, true or false',
      (value) => typeof value === 'string' || typeof value === 'boolean',
    ),
    visibleTo: option.expected(
      'a list of "model" and "app", not empty',
      (value) => Array.isArray(value) && value.length > 0 && value.every((who) => who === 'model' || who === 'app'),
    ),
  },
  resource: {
    ...DESCRIBED,
    ...OF_TOOLS,
    name: option.anyText,
    mimeType: option.anyText,
    annotations: option.members(ANNOTATED),
    size: option.whole(0),
    complete: option.object,
    ttlMs: option.whole(0),
    cacheScope: option.oneOf('public', 'private'),
  },
  prompt: {
    ...DESCRIBED,
    ...OF_TOOLS,
    complete: option.object,
    arguments(value: unknown): string | undefined {
      if (!Array.isArray(value)) return `expected a list of arguments, got ${describe(value)}`;
      const seen = new Set<unknown>();
      for (const argument of value) {
        if (!isObject(argument) || typeof argument.name !== 'string')
          return 'expected each argument to have a string "name"';
        if (seen.has(argument.name)) return `expected each name once, got "${argument.name}" twice`;
        seen.add(argument.name);
        const problem = option.members({ title: option.anyText, description: option.anyText, required: option.flag })(
          argument,
        );
        if (problem !== undefined) return `"${argument.name}": ${problem}`;
      }
      return undefined;
    },
  },
} as const satisfies Readonly<Record<string, Checks>>;

/** Names of the official SDK, and common misspellings, with our names. A misspelled guard would guard nothing. */
const OTHERWISE: Readonly<Record<string, string>> = {
  inputSchema: 'input',
  inputs: 'input',
  parameters: 'input',
  outputSchema: 'output',
  argsSchema: 'input',
  uriTemplate: 'uri',
  mimetype: 'mimeType',
  argument: 'arguments',
  _meta: 'meta',
  execute: 'handler',
  scope: 'scopes',
  requiredScopes: 'scopes',
  allows: 'allow',
  authorize: 'allow',
  limit: 'limits',
  visibility: 'visibleTo',
  rateLimit: 'limits',
};

/** The members that other code checks, or that Troupe sets itself. */
const UNCHECKED = ['name', 'handler', 'input', 'output', 'uri', 'listed', 'live', 'opener', 'machine'];

/** An unknown member of this length that resembles a known one is a misspelling. Definitions of classes may have others. */
const MISSPELLED_LENGTH = 5;

/** @throws {DefinitionError} if a member has the wrong type, is called differently here, or is misspelled */
export function checkMembers(checks: Checks, label: string, definition: object): void {
  const given: Readonly<Record<string, unknown>> = { ...definition };
  for (const [theirs, ours] of Object.entries(OTHERWISE)) {
    if (given[theirs] !== undefined)
      throw new DefinitionError(`${label}: ${theirs}: this member is called "${ours}" here`);
  }
  const known = [...UNCHECKED, ...Object.keys(checks)];
  for (const [name, value] of Object.entries(given)) {
    if (value === undefined || name.length < MISSPELLED_LENGTH || known.includes(name)) continue;
    const meant = suggestion(name, known);
    if (meant !== '') throw new DefinitionError(`${label}: ${name}: no such option${meant}`);
  }
  option.checkSome(`${label}: `, given, checks, DefinitionError);
}

/** True for a function that is no schema: the schemas of arktype are functions. */
export function isHandler<H extends (...args: never) => unknown>(value: H | object | string | undefined): value is H {
  return typeof value === 'function' && !('~standard' in value);
}

/** @throws {DefinitionError} if a schema or a description is in the place of the options */
export function checkOptionsOf<O extends object>(label: string, options: O | string | undefined): asserts options is O {
  if (typeof options === 'string')
    throw new DefinitionError(
      `${label}: expected options, got ${describe(options)}: a description is an option, too: { description: '…' }`,
    );
  if (isObject(options) || typeof options === 'function') {
    if ('~standard' in options)
      throw new DefinitionError(`${label}: expected options, got a schema: write { input: schema }`);
  } else if (options !== undefined) throw new DefinitionError(`${label}: expected options, got ${describe(options)}`);
}

/** @throws {DefinitionError} if the value is not a function */
export function checkHandler<H extends (...args: never) => unknown>(
  value: H | object | string | undefined,
  label: string,
  what = 'handler',
): asserts value is H {
  if (typeof value === 'function') return;
  const hint = what === 'handler' ? ' (the handler is the last argument: name, options, handler)' : '';
  throw new DefinitionError(`${label}: ${what}: expected a function${hint}, got ${describe(value)}`);
}
