/** The option `approve` of a mount: the calls of its tools that need approval, as rules of the authorization. */
import type { AuthorizationRule, NamedRule } from '../../core/messages/authorization-rule.ts';
import {
  describe,
  isJsonObject,
  isObject,
  type JsonObject,
  type JsonPrimitive,
  type JsonValue,
  shortened,
} from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { Tool } from '../../core/protocol/types.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { digest } from '../../core/store/seal.ts';
import type { ApprovalPolicy, RememberPolicy } from '../../features/approvals/approval-interface.ts';
import { problemOfPolicy } from '../../features/approvals/approval-policy.ts';
import { matches } from './names.ts';

/**
 * A condition of one argument: the value itself, or an object. It errs towards asking: a value of another type than the condition's
 * counts as met, because the upstream may read it as one that meets it.
 */
export type ArgumentCondition =
  | JsonPrimitive
  | {
      /** A number that is not smaller. An argument that is missing or no number counts as met. */
      readonly min?: number | undefined;
      /** A number that is not greater. An argument that is missing or no number counts as met. */
      readonly max?: number | undefined;
      /** One of these values, at most 100. */
      readonly in?: readonly JsonPrimitive[] | undefined;
      /** The argument is there, or is not. */
      readonly present?: boolean | undefined;
    };

/** One entry of `approve`: which calls need approval, and whose. */
export interface ApprovedCalls extends Omit<ApprovalPolicy, 'by' | 'expiresMs' | 'remember'> {
  /** Patterns of the upstream's names, as in `only`. */
  readonly tools?: readonly string[] | undefined;
  /**
   * Only tools that may delete or overwrite: all that do not say that they only read or add (`readOnlyHint: true`,
   * `destructiveHint: false`). Only with `trust`, and for an OpenAPI document, is what a tool says believed; otherwise this is all tools.
   */
  readonly destructive?: true | undefined;
  /** Only calls whose arguments meet all of these conditions, by the name of the argument or a JSON Pointer such as `/order/total`. */
  readonly when?: Readonly<Record<string, ArgumentCondition>> | undefined;
  /** Default: the caller. */
  readonly by?: ApprovalPolicy['by'] | undefined;
  /** Time until its expiry, such as `"10m"`, `"1h"` or `"7d"`. */
  readonly expires?: string | undefined;
  /** Lets the person who approves remember it: for `"session"`, or a time such as `"30d"`. */
  readonly remember?: (Omit<RememberPolicy, 'for'> & { readonly for: string }) | undefined;
}

/** A pattern of the upstream's names, whose calls need the approval of their caller, or an entry with more. */
export type MountApproval = string | ApprovedCalls;

/** `approve` of one tool: by its caller, or an entry without the names of tools. */
export type ToolApproval = true | Omit<ApprovedCalls, 'tools' | 'destructive'>;

const MAX_ENTRIES = 100;
const MAX_CONDITIONS = 20;
const MAX_VALUES = 100;
const MAX_REMEMBERED_MS = 2_592_000_000;
const LONGEST_NAME = 100;
const UNITS: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** @returns undefined for a text that is no time */
function timeOf(text: unknown): number | undefined {
  const [, amount = '', unit = ''] = (typeof text === 'string' && /^([1-9]\d{0,5})([smhd])$/.exec(text)) || [];
  const ms = Number(amount) * (UNITS[unit] ?? 0);
  return ms > 0 ? ms : undefined;
}

const time = (most: string): option.Check =>
  option.expected(`a time such as "90s", "10m", "1h" or "7d", at most ${most}`, (value) => {
    const ms = timeOf(value);
    return ms !== undefined && ms <= (timeOf(most) ?? 0);
  });

const patterns = option.expected(
  'a list of names or patterns, such as ["delete_*"]',
  (value) =>
    option.areStrings(value) && value.length > 0 && value.length <= MAX_ENTRIES && value.every(option.isFilled),
);

const CONDITION: option.Rows<Extract<ArgumentCondition, object>> = {
  min: option.expected('a number', Number.isFinite),
  max: option.expected('a number', Number.isFinite),
  in: option.expected(
    `a list of 1 to ${MAX_VALUES} strings, numbers, booleans or null`,
    (value) => Array.isArray(value) && value.length > 0 && value.length <= MAX_VALUES && value.every(isPrimitive),
  ),
  present: option.flag,
};

const condition = option.group('a value, { min, max }, { in: [ … ] } or { present }', CONDITION);

function problemOfCondition(value: unknown): string | undefined {
  if (isPrimitive(value)) return undefined;
  const problem = condition(value);
  if (problem !== undefined || !isObject(value)) return problem;
  const { min, max, present } = value;
  const given = Object.keys(value).filter((name) => value[name] !== undefined);
  if (given.length === 0) return 'expected min, max, in or present, got none';
  if (typeof min === 'number' && typeof max === 'number' && min > max)
    return `expected min of at most max, got ${min} and ${max}: no call meets it`;
  if (present === false && given.length > 1)
    return 'expected present: false alone: no value meets it and another condition';
  return undefined;
}

function problemOfWhen(value: unknown): string | undefined {
  if (!isObject(value) || Array.isArray(value))
    return `expected an object such as { "amount": { "min": 100 } }, got ${describe(value)}`;
  const conditions = Object.entries(value);
  if (conditions.length === 0 || conditions.length > MAX_CONDITIONS)
    return `expected 1 to ${MAX_CONDITIONS} conditions, got ${conditions.length}`;
  for (const [name, each] of conditions) {
    if (name.startsWith('/') && /~(?![01])/.test(name))
      return `expected a JSON Pointer, in which "~" is "~0" and "/" is "~1", got ${describe(name)}`;
    const problem = problemOfCondition(each);
    if (problem !== undefined) return `${JSON.stringify(name)}: ${problem}`;
  }
  return undefined;
}

/** The rows of an entry that are not those of a policy. */
const OWN: option.Rows<Pick<ApprovedCalls, 'tools' | 'destructive' | 'when' | 'expires'>> = {
  tools: patterns,
  destructive: option.expected('true', (value) => value === true),
  when: problemOfWhen,
  expires: time('7d'),
};

/** Those of `remember` that are not those of a policy. */
const REMEMBERED = {
  for: option.expected(
    '"session", or a time such as "1h", at most 30d',
    (value) => value === 'session' || (timeOf(value) ?? Number.POSITIVE_INFINITY) <= MAX_REMEMBERED_MS,
  ),
};

/** Finds what is wrong with the option `approve` of a mount. @returns undefined for a valid value */
export function problemOfApprovals(value: unknown): string | undefined {
  if (!Array.isArray(value) || value.length > MAX_ENTRIES)
    return `expected a list of at most ${MAX_ENTRIES} patterns and entries, such as ["delete_*", { "destructive": true }], got ${describe(value)}`;
  const entries: readonly unknown[] = value;
  for (const [place, entry] of entries.entries()) {
    const problem = problemOfEntry(entry);
    if (problem !== undefined) return `[${place}]${/^\w+: /.test(problem) ? '.' : ': '}${problem}`;
  }
  return undefined;
}

function problemOfEntry(entry: unknown): string | undefined {
  if (typeof entry === 'string') return option.filled(entry);
  if (!isObject(entry) || Array.isArray(entry))
    return `expected a pattern of names, or an object such as { "tools": ["*_refund"], "by": { "scope": "ops" } }, got ${describe(entry)}`;
  const { tools, destructive, when, expires, expiresMs, remember, by = 'caller', ...policy } = entry;
  // A program writes times as a file does: one word for one thing.
  if (expiresMs !== undefined) return 'expiresMs: no such option; expected expires, such as "1h"';
  const own = option.members(OWN)({ tools, destructive, when, expires });
  if (own !== undefined) return own;
  const remembered = isObject(remember) ? option.members({ for: option.needed(REMEMBERED.for) })(remember) : undefined;
  if (remembered !== undefined) return `remember: ${remembered}`;
  const problem = problemOfPolicy({ ...policy, by, remember: isObject(remember) ? { ...remember, for: 1 } : remember });
  // The words of a policy do not know the members of an entry.
  if (problem !== undefined)
    return problem
      .replace(/no such option; there are /, `$&${[...Object.keys(OWN)].join(', ')}, `)
      .replace(', expiresMs', '');
  if (tools === undefined && destructive === undefined)
    return 'expected tools or destructive, got none. Write "tools": ["*"] for all tools of the server';
  return undefined;
}

/** Finds what is wrong with `approve` of one tool. @returns undefined for a valid value */
export function problemOfToolApproval(value: unknown): string | undefined {
  if (value === true) return undefined;
  if (!isObject(value) || Array.isArray(value))
    return `expected true, or an object such as { "by": { "scope": "ops" } }, got ${describe(value)}`;
  const named = ['tools', 'destructive'].find((member) => member in value);
  return named === undefined ? problemOfEntry({ ...value, tools: ['*'] }) : `${named}: no such option of one tool`;
}

/** The entry of a mount for one of its tools. */
export function entryOf(tool: string, approve: ToolApproval): ApprovedCalls {
  return approve === true ? { tools: [tool] } : { ...approve, tools: [tool] };
}

function isPrimitive(value: unknown): value is JsonPrimitive {
  return value === null || ['string', 'boolean'].includes(typeof value) || Number.isFinite(value);
}

/** An entry as it is compiled: a rule, and the tools that it is about. */
interface CompiledEntry {
  /** In words for people, such as `delete_*`. */
  readonly words: string;
  readonly tools: readonly string[] | undefined;
  readonly destructive: boolean;
  readonly rule: NamedRule;
}

/** The entries of a mount, each as a rule. */
export class MountApprovals {
  readonly #entries: readonly CompiledEntry[];
  readonly #unused: Set<CompiledEntry>;

  /** @param approve without a problem @param offered the name under which a tool of the upstream is offered */
  constructor(mount: string, approve: readonly MountApproval[], offered: (upstream: string) => string | undefined) {
    this.#entries = approve.map((entry) =>
      compiled(mount, typeof entry === 'string' ? { tools: [entry] } : entry, offered),
    );
    this.#unused = new Set(this.#entries);
  }

  /**
   * The rules of a tool.
   *
   * @param tool as its upstream lists it
   * @param believed its annotations are known to be true
   */
  rulesOf(tool: Pick<Tool, 'name' | 'annotations'>, believed: boolean): readonly NamedRule[] {
    return this.#entries
      .filter((entry) => {
        const { tools, destructive } = entry;
        const isNamed = tools === undefined || tools.some((pattern) => matches(pattern, tool.name));
        if (isNamed) this.#unused.delete(entry);
        return isNamed && (!destructive || !believed || isDestructive(tool));
      })
      .map(({ rule }) => rule);
  }

  /** One sentence for each entry that no tool has matched so far: its pattern may be misspelled. */
  get problems(): readonly string[] {
    return [...this.#unused].map(({ words }) => `approve: no tool matches ${words}`);
  }
}

function compiled(
  mount: string,
  { tools, destructive, when, expires, remember, by = 'caller', ...others }: ApprovedCalls,
  offered: (upstream: string) => string | undefined,
): CompiledEntry {
  const { preview } = others;
  const named = (tool: string): string => offered(tool) ?? tool;
  const approve: ApprovalPolicy = {
    ...others,
    by,
    ...(expires === undefined ? {} : { expiresMs: timeOf(expires) }),
    ...(remember === undefined
      ? {}
      : { remember: { ...remember, for: remember.for === 'session' ? 'session' : (timeOf(remember.for) ?? 1) } }),
    ...(preview === undefined
      ? {}
      : { preview: typeof preview === 'string' ? named(preview) : { ...preview, tool: named(preview.tool) } }),
  };
  const conditions = Object.entries(when ?? {});
  const decision = { approve };
  const rule: AuthorizationRule = ({ arguments: args }) =>
    conditions.every(([name, each]) => isMet(each, argumentAt(args, name))) ? decision : true;
  const words = [tools?.join(', '), destructive && 'destructive tools'].filter(Boolean).join(', ');
  const name = `mount ${mount}: ${words}${when ? ` when ${Object.keys(when).join(', ')}` : ''}`;
  return {
    ...{ words, tools, destructive: destructive === true },
    // An open approval is void once the conditions are others, although they are still met.
    rule: {
      rule,
      name: shortened(visibleLine(name), LONGEST_NAME),
      version: digest({ tools, destructive, when } as JsonObject),
    },
  };
}

/** By the specification, a tool that does not say so may be destructive. A contradiction counts against it. */
function isDestructive({ annotations: { readOnlyHint, destructiveHint } = {} }: Pick<Tool, 'annotations'>): boolean {
  return destructiveHint === undefined ? readOnlyHint !== true : destructiveHint;
}

/** The value of an argument by its name, or by a JSON Pointer (RFC 6901); undefined if it is missing. */
function argumentAt(args: JsonObject, name: string): JsonValue | undefined {
  if (!name.startsWith('/')) return memberOf(args, name);
  let value: JsonValue | undefined = args;
  for (const part of name.slice(1).split('/'))
    value = memberOf(value, part.replaceAll('~1', '/').replaceAll('~0', '~'));
  return value;
}

function memberOf(value: JsonValue | undefined, name: string): JsonValue | undefined {
  if (Array.isArray(value)) return /^(0|[1-9]\d*)$/.test(name) ? value[Number(name)] : undefined;
  return isJsonObject(value) && Object.hasOwn(value, name) ? value[name] : undefined;
}

function isMet(wanted: ArgumentCondition, value: JsonValue | undefined): boolean {
  if (isPrimitive(wanted)) return isOneOf([wanted], value);
  const { min, max, in: values, present } = wanted;
  if (present !== undefined && present !== (value !== undefined)) return false;
  if (values && !isOneOf(values, value)) return false;
  // The upstream may read the text "120" as a number, and has its own number for a missing one.
  return typeof value !== 'number' || ((min === undefined || value >= min) && (max === undefined || value <= max));
}

/** True for one of the values, and for a value of a type that none of them has. */
function isOneOf(values: readonly JsonPrimitive[], value: JsonValue | undefined): boolean {
  if (value === undefined) return false;
  return values.some((each) => each === value) || values.every((each) => typeOf(each) !== typeOf(value));
}

function typeOf(value: JsonValue): string {
  return value === null ? 'null' : typeof value;
}
