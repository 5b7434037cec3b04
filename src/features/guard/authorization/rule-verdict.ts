/** Folds the decisions of all rules about one element into one verdict. */
import type {
  AuthorizationDecision,
  ElementAccess,
  RuleCondition,
  RuleName,
} from '../../../core/messages/authorization-rule.ts';
import { describe, isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { areScopes } from '../../../core/protocol/scopes.ts';

/** The readers of the results that features add, by member. */
export type DecisionReaders = ReadonlyMap<string, (given: unknown) => unknown>;

const NO_NAME: RuleName = {};
const NO_READERS: DecisionReaders = new Map();

/** All rules together: `hidden` outweighs `denied`, both outweigh missing scopes, and those outweigh conditions. */
export class RuleVerdict {
  hidden = false;
  denied = false;
  /** The reason of the first rule that denies, for the operator. */
  reason: string | undefined;
  /** The id of the incident if a rule failed. */
  incident: string | undefined;
  /** All scopes that the caller needs, and those of them that it lacks. */
  readonly needed: string[] = [];
  readonly missing: string[] = [];
  /** The conditions of the handler, as features have read them. */
  readonly conditions: RuleCondition[] = [];
  readonly #granted: readonly string[];
  readonly #readers: DecisionReaders;

  constructor(granted: readonly string[], readers = NO_READERS) {
    this.#granted = granted;
    this.#readers = readers;
  }

  get allows(): boolean {
    return !this.hidden && !this.denied && this.missing.length === 0;
  }

  /** Demands the scopes that an element has itself. */
  demandOf(access: ElementAccess | undefined, args: JsonObject): void {
    if (!access) return;
    this.demand(access.scopes);
    const more = access.demands?.(args);
    if (more) this.demand(more);
  }

  demand(scopes: readonly string[]): void {
    for (const scope of scopes) {
      if (this.needed.includes(scope)) continue;
      this.needed.push(scope);
      if (!this.#granted.includes(scope)) this.missing.push(scope);
    }
  }

  /** @throws {TypeError} for a value that is no decision */
  add(decision: AuthorizationDecision, rule = NO_NAME): void {
    const given: unknown = decision;
    if (given === true) return;
    if (given === false) return this.deny('the rule returned false');
    if (isObject(given)) {
      const { scopes, deny, hidden } = given;
      if (hidden === true) {
        this.hidden = true;
        return;
      }
      if (typeof deny === 'string') return this.deny(deny);
      if (areScopes(scopes)) return this.demand(scopes);
      for (const [member, read] of this.#readers) {
        if (given[member] === undefined) continue;
        this.conditions.push({ value: read(given[member]), rule });
        return;
      }
    }
    const added = [...this.#readers.keys()].map((member) => `, { ${member}: … }`).join('');
    throw new TypeError(
      `expected true, false, { scopes: ["…"] }, { deny: "…" }${added} or { hidden: true }, got ${shapeOf(given)}`,
    );
  }

  /** Adds the verdict about another element that the same request uses. */
  include(other: RuleVerdict): void {
    this.denied ||= other.denied;
    this.reason ??= other.reason;
    this.incident ??= other.incident;
    this.demand(other.needed);
    this.conditions.push(...other.conditions);
  }

  deny(reason: string): void {
    this.denied = true;
    this.reason ??= reason;
  }

  /** A rule failed: rejects the request. */
  fail(incident: string): void {
    this.denied = true;
    this.incident ??= incident;
  }
}

/** Describes a value that is no decision by the names and types of its members: their values may be secret. */
function shapeOf(given: unknown): string {
  if (given === undefined) return 'nothing: each way through the rule must return a decision';
  if (!isObject(given)) return describe(given);
  const members = Object.entries(given).map(
    ([name, value]) => `${name}: ${Array.isArray(value) ? 'array' : typeof value}`,
  );
  return `{ ${members.slice(0, MAX_MEMBERS).join(', ')} }`;
}

/** Maximum number of members of a wrong decision that its error names. */
const MAX_MEMBERS = 4;
