/** The policy of an approval: checks what a rule has returned, and joins what several rules demand of one call. */
import type { ApprovalRequest } from '../../core/execution/approving.ts';
import type { RuleCondition, RuleName } from '../../core/messages/authorization-rule.ts';
import { describe, isJsonObject, isObject, type JsonObject, type JsonPrimitive } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import { digest } from '../../core/store/seal.ts';
import type { ApprovalBy, ApprovalPolicy, Approver, RememberPolicy } from './approval-interface.ts';

const DAY_MS = 86_400_000;
/** Longest times of an approval and of a grant. */
const MAX_EXPIRES_MS = 7 * DAY_MS;
const MAX_REMEMBERED_MS = 30 * DAY_MS;
const MAX_QUORUM = 20;
const MAX_USES = 10_000;
const DEFAULT_USES = 100;
/** Longest list in a policy. */
const MAX_LISTED = 100;
const MAX_TITLE = 100;
const MAX_MESSAGE = 1_000;

const text = (most: number): option.Check =>
  option.expected(`a string of 1 to ${most} characters`, (value) => option.isFilled(value) && value.length <= most);
const names = option.expected(
  `a list of 1 to ${MAX_LISTED} names`,
  (value) => option.areStrings(value) && value.length > 0 && value.length <= MAX_LISTED && value.every(option.isFilled),
);

const BY = '"caller", { scope }, { claim: [name, value] } or { principals: [ … ] }';

function isBy(value: unknown): value is ApprovalBy {
  if (value === 'caller') return true;
  if (!isObject(value) || Object.keys(value).length !== 1) return false;
  const { scope, claim, principals } = value;
  if (scope !== undefined) return option.isFilled(scope);
  if (Array.isArray(claim)) return claim.length === 2 && option.isFilled(claim[0]) && isPrimitive(claim[1]);
  return (
    option.areStrings(principals) &&
    principals.length > 0 &&
    principals.length <= MAX_LISTED &&
    principals.every(isPerson)
  );
}

/** Everybody who has not signed in is `anonymous`. */
function isPerson(principal: string): boolean {
  return principal !== '' && principal !== ANONYMOUS;
}

function isPrimitive(value: unknown): value is JsonPrimitive {
  return value === null || ['string', 'number', 'boolean'].includes(typeof value);
}

const REMEMBER: option.Rows<RememberPolicy> = {
  for: option.needed(
    option.expected(
      `"session", or milliseconds from 1 to ${MAX_REMEMBERED_MS} (30 days)`,
      (value) => value === 'session' || option.isWhole(value, 1, MAX_REMEMBERED_MS),
    ),
  ),
  match: names,
  max: option.whole(1, MAX_USES),
  runs: option.flag,
};

const PREVIEW = option.group('an object such as { tool: "refund_preview", required: true }', {
  tool: option.needed(option.filled),
  required: option.flag,
});

const APPROVERS = option.expected(`${BY}, or a list of them`, (value) =>
  Array.isArray(value) ? value.length > 0 && value.length <= MAX_LISTED && value.every(isBy) : isBy(value),
);

const ROWS: option.Rows<ApprovalPolicy> = {
  by: option.needed(APPROVERS),
  quorum: option.whole(1, MAX_QUORUM),
  self: option.flag,
  expiresMs: option.expected(`milliseconds from 1 to ${MAX_EXPIRES_MS} (7 days)`, (value) =>
    option.isWhole(value, 1, MAX_EXPIRES_MS),
  ),
  title: text(MAX_TITLE),
  message: text(MAX_MESSAGE),
  show: names,
  preview: (value) => (typeof value === 'string' ? option.filled(value) : PREVIEW(value)),
  remember: option.group('an object such as { for: "session", match: ["order"], max: 5 }', REMEMBER),
  recheck: option.flag,
};

const among = option.group('a policy such as { by: "caller" } or { by: { scope: "ops" }, quorum: 2 }', ROWS);

/** Finds what is wrong with a policy. @returns undefined for a policy that is valid */
export function problemOfPolicy(value: unknown): string | undefined {
  const problem = among(value);
  if (problem !== undefined || !isObject(value)) return problem;
  const { by, quorum, self } = value;
  const onlyCaller = (Array.isArray(by) ? by : [by]).every((each) => each === 'caller');
  if (onlyCaller && quorum !== undefined && quorum !== 1)
    return `quorum: expected 1 for { by: "caller" }, who is one, got ${describe(quorum)}`;
  const tooFew = (Array.isArray(by) ? by : [by]).some(
    (each) => isObject(each) && Array.isArray(each.principals) && each.principals.length < Number(quorum ?? 1),
  );
  if (tooFew) return `quorum: expected no more people than "principals" names, got ${String(quorum)}`;
  if (onlyCaller && self !== undefined) return 'self: expected approvers other than the caller beside it';
  return undefined;
}

function isPolicy(value: unknown): value is ApprovalPolicy {
  return problemOfPolicy(value) === undefined;
}

/** Reads the member `approve` of a decision. @throws {TypeError} */
export function readApproval(given: unknown): ApprovalPolicy {
  if (given === true) return { by: 'caller' };
  if (isPolicy(given)) return given;
  throw new TypeError(`approve: ${problemOfPolicy(given)}`);
}

const REQUEST: option.Rows<ApprovalRequest> = {
  ...{ by: APPROVERS, quorum: ROWS.quorum, self: ROWS.self, expiresMs: ROWS.expiresMs, message: ROWS.message },
  ...{ title: option.needed(text(MAX_TITLE)), recheck: ROWS.recheck },
  show: option.expected('an object with JSON', isJsonObject),
};

/** Reads what a handler asks for. Without `by`, the caller decides. @throws {TypeError} */
export function readRequest(request: ApprovalRequest): ApprovalPolicy {
  const problem = option.group('an object such as { title: "Refund order 17" }', REQUEST)(request);
  if (problem !== undefined) throw new TypeError(`ctx.approve: ${problem}`);
  const { show: _, by = 'caller', ...policy } = request;
  const read: ApprovalPolicy = { ...policy, by };
  const invalid = problemOfPolicy(read);
  if (invalid !== undefined) throw new TypeError(`ctx.approve: ${invalid}`);
  return read;
}

/** One group of people who must approve. */
export interface Requirement {
  readonly by: ApprovalBy;
  readonly quorum: number;
  readonly self: boolean;
  readonly recheck: boolean;
}

/** All that must be met before a call runs, joined from its rules and its tool. */
export interface ApprovalTerms {
  readonly requirements: readonly Requirement[];
  /** Changes with any of the rules that demand it, with their versions, and with the policy of each. */
  readonly digest: string;
  readonly policies: readonly string[];
  readonly expiresMs: number | undefined;
  readonly title: string | undefined;
  readonly messages: readonly string[];
  readonly show: readonly string[];
  readonly preview: { readonly tool: string; readonly required: boolean } | undefined;
  /** Undefined unless all policies permit it. */
  readonly remember: RememberPolicy | undefined;
}

interface NamedPolicy {
  readonly policy: ApprovalPolicy;
  readonly rule: RuleName;
}

/**
 * Joins what rules and a tool demand. Equal requirements are asked once.
 *
 * @returns undefined if they demand nothing
 */
export function termsOf(
  conditions: readonly RuleCondition[],
  own: ApprovalPolicy | true | undefined,
  tool: string,
): ApprovalTerms | undefined {
  const all: NamedPolicy[] = conditions.map(({ value, rule }) => ({ policy: readApproval(value), rule }));
  if (own !== undefined) all.push({ policy: readApproval(own), rule: { name: `tool ${tool}` } });
  if (all.length === 0) return undefined;
  const requirements = new Map<string, Requirement>();
  for (const { policy } of all)
    for (const requirement of policyRequirements(policy)) requirements.set(digest(jsonOf(requirement)), requirement);
  const policies = all.map(({ policy }) => policy);
  const expiries = policies.flatMap(({ expiresMs }) => expiresMs ?? []);
  const previews = policies.flatMap(({ preview }) => (preview === undefined ? [] : [preview]));
  const [preview] = previews;
  const remembered = policies.map(({ remember }) => remember);
  return {
    requirements: [...requirements.values()],
    digest: digest(
      all
        .map(({ policy, rule }) =>
          digest({ name: rule.name ?? '', version: rule.version ?? '', approve: jsonOf(policy) }),
        )
        .sort(),
    ),
    policies: [...new Set(all.map(({ rule }) => rule.name || 'a rule without a name'))],
    expiresMs: expiries.length === 0 ? undefined : Math.min(...expiries),
    title: policies.find(({ title }) => title !== undefined)?.title,
    messages: policies.flatMap(({ message }) => message ?? []),
    show: [...new Set(policies.flatMap(({ show }) => show ?? []))],
    preview:
      preview === undefined
        ? undefined
        : typeof preview === 'string'
          ? { tool: preview, required: false }
          : { tool: preview.tool, required: preview.required === true },
    // Two policies that permit different things permit nothing together.
    remember: remembered.every((each) => each && digest(jsonOf(each)) === digest(jsonOf(remembered[0])))
      ? remembered[0]
      : undefined,
  };
}

/** The requirements of one policy. */
export function policyRequirements({
  by,
  quorum = 1,
  self = false,
  recheck = false,
}: ApprovalPolicy): readonly Requirement[] {
  const each: readonly ApprovalBy[] = isListed(by) ? by : [by];
  return each.map((one) =>
    one === 'caller' ? { by: one, quorum: 1, self: false, recheck } : { by: one, quorum, self, recheck },
  );
}

function isListed(by: ApprovalPolicy['by']): by is readonly ApprovalBy[] {
  return Array.isArray(by);
}

/** A checked policy has only JSON; members that are undefined are absent. */
function jsonOf(value: object | undefined): JsonObject {
  const members = Object.entries(value ?? {}).filter(([, member]) => member !== undefined);
  return Object.fromEntries(
    members.map(([name, member]) => [name, isObject(member) ? jsonOf(member) : member]),
  ) as JsonObject;
}

/** The person behind an approver: two clients of one person are one. */
export function personOf({ principal, subject, issuer }: Approver): string {
  return subject === undefined ? principal : `${issuer ?? ''} ${subject}`;
}

/** True if a person is one of those whom a requirement means. @param caller the principal of the call, and the person behind it */
export function fits(
  { by, self }: Requirement,
  approver: Approver,
  caller: { readonly principal: string; readonly person: string },
): boolean {
  if (!isPerson(approver.principal)) return false;
  const isCaller = approver.principal === caller.principal || personOf(approver) === caller.person;
  if (by === 'caller') return approver.principal === caller.principal;
  if (isCaller && !self) return false;
  if ('scope' in by) return approver.scopes?.includes(by.scope) === true;
  if ('claim' in by) {
    const [name, value] = by.claim;
    const had = approver.claims && Object.hasOwn(approver.claims, name) ? approver.claims[name] : undefined;
    return had === value || (Array.isArray(had) && had.includes(value));
  }
  return by.principals.includes(approver.principal);
}

/** The people of a requirement, in words for people and models. */
export function whoOf({ by }: Pick<Requirement, 'by'>): string {
  if (by === 'caller') return 'the user who calls';
  if ('scope' in by) return `somebody with the scope ${by.scope}`;
  if ('claim' in by) return `somebody whose ${by.claim[0]} is ${String(by.claim[1])}`;
  return by.principals.join(' or ');
}

/** The number of calls that a grant approves. */
export function usesOf({ max = DEFAULT_USES }: RememberPolicy): number {
  return max;
}
