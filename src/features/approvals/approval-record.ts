/** The stored form of an approval, its reader, and the view of it that people get. */
import { type ApprovalState, approvalMachine } from '../../../machines/approval.ts';
import { isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow } from '../../core/store/store.ts';
import { ApprovalError } from './approval-error.ts';
import type { Approval, GivenApproval } from './approval-interface.ts';
import { type Requirement, whoOf } from './approval-policy.ts';

/** One approval of a person, with what decides whether it counts. */
export interface StoredGiven extends GivenApproval {
  /** The person behind the principal: each counts once. */
  readonly person: string;
  /** The requirements that it meets, by place. */
  readonly meets: readonly number[];
  /** The end of the sign-in. */
  readonly expiresAt?: number | undefined;
  /** The digest of the text that was shown. */
  readonly shown: string;
}

/** The calls that a person may approve in advance. */
export interface Rememberable {
  /** The calls for which it holds, as a digest. */
  readonly scope: string;
  readonly text: string;
  /** The time of its end, or the milliseconds from the approval. */
  readonly forMs: number;
  readonly max: number;
}

export interface StoredApproval {
  readonly id: string;
  readonly state: ApprovalState;
  readonly tool: string;
  readonly principal: string;
  /** The person behind the principal that calls. */
  readonly person: string;
  /** The digest of what is approved, without the id of the call: server, tool, caller, arguments, pin and policy. */
  readonly subject: string;
  /** The digest of everything that was approved and shown. */
  readonly binding: string;
  /** The digests of the members of the definition, by name. */
  readonly pin: Readonly<Record<string, string>>;
  /** The digest of the policy, and the names of its rules. */
  readonly policy: string;
  readonly policies: readonly string[];
  readonly requirements: readonly Requirement[];
  readonly title: string;
  readonly text: string;
  readonly created: number;
  readonly until: number;
  /** True if one call waits for it. Otherwise the next call with the same subject takes it. */
  readonly held: boolean;
  readonly given: readonly StoredGiven[];
  readonly ended?: Approval['ended'] | undefined;
  readonly remembers?: Rememberable | undefined;
  /** The person who approves has remembered it. */
  readonly remembered?: boolean | undefined;
  readonly grant?: string | undefined;
  /** The title of the part of a handler that it is about; undefined for the call itself. */
  readonly part?: string | undefined;
  /** The process that runs the call, and the number of questions that the call had asked until then. */
  readonly used?: { readonly by: string; readonly round: number } | undefined;
}

/** The actor of an approval in the store. */
export function storedActor(id: string): string {
  return `approval/${id}`;
}

/** The id of an approval, which is a part of the name of its actor; undefined for another text. */
export function idOf(actor: string): string | undefined {
  return actor.startsWith('approval/') ? actor.slice('approval/'.length) : undefined;
}

/** True for the states in which the call may still run. */
export function isLive(state: ApprovalState): boolean {
  const now = approvalMachine.at(state);
  return now.hasTag('live');
}

/** True for the states in which people may still decide. */
export function isOpen(state: ApprovalState): boolean {
  const now = approvalMachine.at(state);
  return now.hasTag('open');
}

/** Milliseconds by which the clocks of two nodes may differ. */
const MAX_SKEW_MS = 300_000;

/** True within the time of an approval or a grant. A clock that was set back while no process ran would let it last longer. */
export function isDuring(
  { created, until }: { readonly created: number; readonly until: number },
  now: number,
): boolean {
  return now < until && now >= created - MAX_SKEW_MS;
}

/** The row of an approval. @param keptMs milliseconds for which it stays after its end */
export function approvalRow(approval: StoredApproval, keptMs: number, now: number): ActorRow {
  const { id, subject, principal, state, created, until } = approval;
  const expires = Math.max(isLive(state) ? until : now, now) + keptMs;
  return { id: storedActor(id), kind: 'approval', name: subject, principal, status: state, created, expires };
}

export function textOfApproval(approval: StoredApproval): string {
  return toText(approval);
}

/** @throws {ApprovalError} `store` for damaged data */
export function readApprovalText(text: string): StoredApproval {
  let value: JsonValue;
  try {
    value = fromText(text, 'an approval');
  } catch (cause) {
    throw damaged(cause);
  }
  if (!isStored(value)) throw damaged();
  return value;
}

function damaged(cause?: unknown): ApprovalError {
  return new ApprovalError('store', 'the stored approval is damaged: it approves nothing', { cause });
}

const TEXTS = ['id', 'tool', 'principal', 'person', 'subject', 'binding', 'policy', 'title', 'text'] as const;

/** Checks the members by which a decision is made. */
function isStored(value: JsonValue): value is JsonValue & StoredApproval {
  if (!isObject(value)) return false;
  const { state, pin, policies, requirements, created, until, held, given } = value;
  return (
    TEXTS.every((name) => typeof value[name] === 'string') &&
    typeof state === 'string' &&
    isState(state) &&
    isObject(pin) &&
    Array.isArray(policies) &&
    Array.isArray(requirements) &&
    requirements.length > 0 &&
    requirements.every(isRequirement) &&
    typeof created === 'number' &&
    typeof until === 'number' &&
    typeof held === 'boolean' &&
    Array.isArray(given) &&
    given.every(isGiven)
  );
}

function isState(state: string): state is ApprovalState {
  return Object.hasOwn(approvalMachine.config.states, state);
}

function isRequirement(value: unknown): boolean {
  return (
    isObject(value) &&
    (value.by === 'caller' || isObject(value.by)) &&
    typeof value.quorum === 'number' &&
    value.quorum >= 1 &&
    typeof value.self === 'boolean' &&
    typeof value.recheck === 'boolean'
  );
}

function isGiven(value: unknown): boolean {
  return isObject(value) && typeof value.person === 'string' && Array.isArray(value.meets);
}

/** The number of people that a requirement still needs. */
export function missingOf({ requirements, given }: StoredApproval, place: number): number {
  const people = new Set(given.filter(({ meets }) => meets.includes(place)).map(({ person }) => person));
  return Math.max(0, (requirements[place]?.quorum ?? 1) - people.size);
}

/** The places of the requirements that are not met. */
export function unmetOf(approval: StoredApproval): readonly number[] {
  return approval.requirements.flatMap((_, place) => (missingOf(approval, place) > 0 ? [place] : []));
}

export function viewOf(approval: StoredApproval): Approval {
  const { id, state, tool, principal, title, text, policies, created, until, ended, grant } = approval;
  return {
    ...{ id, state, tool, principal, title, text, policies, created, until },
    by: approval.requirements.map((requirement, place) => ({
      who: whoOf(requirement),
      missing: missingOf(approval, place),
    })),
    caller: approval.requirements.some(({ by }) => by === 'caller'),
    given: approval.given.map(({ principal: giver, at, via, reason }) => ({
      ...{ principal: giver, at, via },
      ...(reason === undefined ? {} : { reason }),
    })),
    ...(ended === undefined ? {} : { ended }),
    ...(approval.remembers === undefined ? {} : { remembers: approval.remembers.text }),
    ...(grant === undefined ? {} : { grant }),
  };
}

/** The approval in the result of a call (`_meta["io.troupe/approval"]`). */
export function metaOfApproval(
  { id, state, until, requirements }: StoredApproval,
  isoOf: (ms: number) => string,
): JsonObject {
  return { id, state, until: isoOf(until), by: requirements.map(whoOf) };
}
