/** The approvals of a server: creates, finds and lists them, and takes the decisions of people. */
import { approvalMachine } from '../../../machines/approval.ts';
import type { Actor } from '../../core/kernel/actor.ts';
import { steadyDate } from '../../core/kernel/clock.ts';
import { randomId } from '../../core/kernel/random-id.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import { describe, isObject, shortened } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { Core } from '../../core/server/feature.ts';
import type { ActorRow } from '../../core/store/store.ts';
import type { AuditMail } from '../guard/audit/audit-messages.ts';
import { spawnApproval } from './approval.actor.ts';
import { ApprovalError } from './approval-error.ts';
import { ApprovalGrants } from './approval-grants.ts';
import type {
  Approval,
  ApprovalDecision,
  ApprovalGrant,
  ApprovalListener,
  ApprovalQuery,
  Approvals,
  Approver,
} from './approval-interface.ts';
import { ApprovalMemory } from './approval-memory.ts';
import type { ApprovalChange, ApprovalMail, ApprovalOperation, ApprovalWaiter } from './approval-messages.ts';
import { fits, personOf } from './approval-policy.ts';
import {
  idOf,
  isLive,
  isOpen,
  missingOf,
  type StoredApproval,
  type StoredGiven,
  unmetOf,
  viewOf,
} from './approval-record.ts';
import { LastApprovals } from './last-approvals.ts';

export interface ApprovalTableOptions {
  readonly core: Core;
  readonly audit: Mailbox<AuditMail> | undefined;
  /** True if other nodes use the same store. */
  readonly shared: boolean;
  /** Counts a change by the state after it. */
  counted(state: string): void;
}

/** The states in which an approval is open no longer, when it enters them. */
const CLOSES: ReadonlySet<string> = new Set(['approved', 'denied', 'expired', 'withdrawn', 'void']);
/** Rows in one read of the store. */
const PAGE = 1_000;
/** Milliseconds until all open approvals are counted again. */
const COUNT_MS = 60_000;
/** Milliseconds between two looks for the decision of another node. */
const POLL_MS = 2_000;
const MAX_LISTED = 1_000;
const DEFAULT_LISTED = 100;
/** Longest reason, in characters. */
export const MAX_REASON = 500;
const MAX_VIA = 40;

const APPROVER = option.expected(
  'an approver such as { principal: "ada", scopes: ["ops"] }',
  (value) => isObject(value) && option.isFilled(value.principal),
);

const DECISION: option.Rows<ApprovalDecision> = {
  approver: option.needed(APPROVER),
  decision: option.needed(option.oneOf('approve', 'deny')),
  reason: option.anyText,
  remember: option.flag,
  via: option.filled,
};

const QUERY: option.Rows<ApprovalQuery> = {
  state: option.oneOf('open', 'all'),
  principal: option.filled,
  approver: APPROVER,
  limit: option.whole(1, MAX_LISTED),
};

export class ApprovalTable implements Approvals {
  readonly grantsOf: ApprovalGrants;
  /** The calls that were approved last. */
  readonly last: LastApprovals;
  readonly #options: ApprovalTableOptions;
  readonly #date: () => number;
  readonly #actors = new Map<string, Actor<ApprovalMail>>();
  readonly #memory: ApprovalMemory | undefined;
  readonly #listeners = new Set<ApprovalListener>();
  /** By principal: the end of the last creation. */
  readonly #creating = new Map<string, Promise<void>>();
  /** The times at which the open approvals were asked that this node knows. */
  readonly #ages = new Map<string, number>();
  #open = 0;
  #counted = Number.NEGATIVE_INFINITY;
  /** Names this process in the approvals whose calls it runs. */
  readonly process = randomId(12);

  constructor(options: ApprovalTableOptions) {
    const { system, store, quotas, options: given } = options.core;
    this.#options = options;
    this.#date = steadyDate(system.clock);
    if (!store.durable) this.#memory = new ApprovalMemory(quotas.retained, system.clock, this.#date);
    this.last = new LastApprovals(options.core, this.#date);
    this.grantsOf = new ApprovalGrants(options.core, this.#date);
    if (given.onApproval) this.#listeners.add(given.onApproval);
  }

  /** Milliseconds since 1970, which do not go back. */
  readonly date = (): number => this.#date();

  /** Number of approvals with an actor. */
  get size(): number {
    return this.#actors.size;
  }

  /** Number of open approvals when they were last counted, with those of this process since. */
  get open(): number {
    return this.#open;
  }

  /** Seconds since the oldest open approval was asked, of those that this node knows. */
  get oldest(): number {
    const [first] = [...this.#ages.values()].sort((a, b) => a - b);
    return first === undefined ? 0 : Math.max(0, this.#date() - first) / 1_000;
  }

  /** Calls back for each change at this node. @returns removes the listener */
  listen(listener: ApprovalListener): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /**
   * Stores a new approval.
   *
   * @returns the approval, that of an equal call, or the limit that it would exceed
   * @throws {ApprovalError} `store`
   */
  create(approval: StoredApproval, session: string | undefined): Promise<StoredApproval | string> {
    const { principal } = approval;
    // One after the other, so that each counts those before it.
    const before = this.#creating.get(principal) ?? Promise.resolve();
    const created = before.then(() => this.#create(approval, session));
    const ended = created.then(
      () => {},
      () => {},
    );
    this.#creating.set(principal, ended);
    void ended.then(() => {
      if (this.#creating.get(principal) === ended) this.#creating.delete(principal);
    });
    return created;
  }

  async #create(approval: StoredApproval, session: string | undefined): Promise<StoredApproval | string> {
    // An equal call at the same time has asked: both wait for one decision.
    const found = approval.held ? [] : await this.find(approval.subject, approval.principal);
    const same = found.find((each) => !each.held && isOpen(each.state));
    if (same) return same;
    const excess = (await this.#excess(approval.principal)) ?? this.#memory?.hold(approval, session);
    if (excess !== undefined) return excess;
    this.#open += 1;
    try {
      return await new Promise<StoredApproval>((resolve, reject) =>
        this.#actorOf(approval.id, approval.tool).mailbox.send({ type: 'create', approval, resolve, reject }),
      );
    } catch (error) {
      this.#open = Math.max(0, this.#open - 1);
      this.#memory?.free(approval.id);
      throw error;
    }
  }

  /** The approvals of calls with this subject, the newest first. @throws {ApprovalError} `store` */
  async find(subject: string, principal: string): Promise<readonly StoredApproval[]> {
    const rows = await this.#rows({ name: subject, principal });
    const found = await Promise.all(rows.reverse().map(({ id }) => this.look(idOf(id) ?? '')));
    return found.flatMap((each) => each ?? []);
  }

  /** An approval as it is now; undefined if there is none. @throws {ApprovalError} `store` */
  async look(id: string): Promise<StoredApproval | undefined> {
    try {
      return await this.operate(id, () => undefined);
    } catch (error) {
      if (error instanceof ApprovalError && error.fault === 'unknown') return undefined;
      throw error;
    }
  }

  /** Changes an approval. @throws {ApprovalError} */
  async operate(id: string, run: ApprovalOperation['run']): Promise<StoredApproval> {
    const after = await new Promise<StoredApproval>((resolve, reject) =>
      this.#actorOf(id, '').mailbox.send({ type: 'operate', operation: { run, resolve, reject } }),
    );
    this.#note(after);
    return after;
  }

  #note({ id, state, created }: StoredApproval): void {
    if (isOpen(state)) this.#ages.set(id, created);
    else this.#ages.delete(id);
  }

  /** Ends an approval, or the call that uses it. @returns undefined if it had ended before */
  async end(
    id: string,
    event: NonNullable<ApprovalChange['event']>,
    reason?: string,
  ): Promise<StoredApproval | undefined> {
    let ends = true;
    const after = await this.operate(id, ({ state }, now) => {
      ends = approvalMachine.at(state).step(event) !== undefined;
      return ends ? { event, members: { ended: { at: now, ...(reason === undefined ? {} : { reason }) } } } : undefined;
    });
    return ends ? after : undefined;
  }

  /** The call that has asked for it ends: the next call with the same subject takes it. @throws {ApprovalError} */
  release(id: string): Promise<StoredApproval> {
    return this.operate(id, ({ held, state }) =>
      held && isLive(state) ? { event: undefined, members: { held: false } } : undefined,
    );
  }

  /**
   * Waits until people have decided, or its time has passed.
   *
   * @param isOver ends the wait earlier
   * @throws {ApprovalError} if the store fails; the reason of the signal
   */
  wait(id: string, signal: AbortSignal, isOver: ApprovalWaiter['isOver'] = () => false): Promise<StoredApproval> {
    return new Promise((resolve, reject) => {
      const { mailbox } = this.#actorOf(id, '');
      const leave = (): void => {
        mailbox.send({ type: 'leave', waiter });
        reject(signal.reason);
      };
      const waiter: ApprovalWaiter = {
        isOver,
        decided(approval) {
          signal.removeEventListener('abort', leave);
          resolve(approval);
        },
        failed(error) {
          signal.removeEventListener('abort', leave);
          reject(error);
        },
      };
      if (signal.aborted) return reject(signal.reason);
      signal.addEventListener('abort', leave, { once: true });
      mailbox.send({ type: 'wait', waiter });
    });
  }

  async list(query: ApprovalQuery = {}): Promise<readonly Approval[]> {
    checkArguments('list', query, QUERY);
    const { state = 'open', principal, approver, limit = DEFAULT_LISTED } = query;
    const found: Approval[] = [];
    for await (const row of this.#each({ principal })) {
      if (found.length >= limit) break;
      if (state === 'open' && !isOpenRow(row)) continue;
      const approval = await this.#readable(idOf(row.id) ?? '');
      if (!approval || (state === 'open' && !isOpen(approval.state))) continue;
      if (approver && this.#placesOf(approval, approver).length === 0) continue;
      found.push(viewOf(approval));
    }
    return found;
  }

  async get(id: string): Promise<Approval | undefined> {
    const approval = await this.look(textOf('get', id));
    return approval && viewOf(approval);
  }

  async mayDecide(id: string, approver: Approver): Promise<boolean> {
    checkArguments('mayDecide', { approver, decision: 'approve' }, DECISION);
    const approval = await this.look(textOf('mayDecide', id));
    return approval !== undefined && this.#placesOf(approval, approver).length > 0;
  }

  async decide(id: string, decision: ApprovalDecision): Promise<Approval> {
    checkArguments('decide', decision, DECISION);
    return viewOf(
      await this.#decided(textOf('decide', id), decision, (approval) => this.#placesOf(approval, decision.approver)),
    );
  }

  /** Stores what a caller has answered in its client, which need not have signed in. @throws {ApprovalError} */
  answered(id: string, decision: ApprovalDecision): Promise<StoredApproval> {
    return this.#decided(id, decision, (approval) =>
      unmetOf(approval).filter((place) => approval.requirements[place]?.by === 'caller'),
    );
  }

  /** @param placesOf the requirements that the person may meet now, by place */
  async #decided(
    id: string,
    { approver, decision, reason, remember = false, via = 'api' }: ApprovalDecision,
    placesOf: (approval: StoredApproval) => readonly number[],
  ): Promise<StoredApproval> {
    const said = reason === undefined ? {} : { reason: shortened(reason, MAX_REASON) };
    const by = { principal: approver.principal, via: shortened(via, MAX_VIA), ...said };
    const after = await this.operate(id, (approval, now) => {
      if (!isOpen(approval.state)) throw new ApprovalError('closed', `this approval is ${approval.state} already`);
      const places = placesOf(approval);
      if (places.length === 0) throw notAnApprover(approval, approver);
      if (decision === 'deny') return { event: 'deny', members: { ended: { at: now, ...by } } };
      if (remember && !approval.remembers)
        throw new ApprovalError('input', 'decide: remember: the policy of this approval permits no grant');
      const given: StoredGiven = {
        ...{ ...by, at: now, person: personOf(approver), meets: places, shown: approval.binding },
        ...(approver.expiresAt === undefined ? {} : { expiresAt: approver.expiresAt }),
      };
      const next = { ...approval, given: [...approval.given, given] };
      const members = { given: next.given, ...(remember ? { remembered: true } : {}) };
      return { event: unmetOf(next).length === 0 ? 'approve' : 'approve in part', members };
    });
    if (after.state === 'approved' && after.remembered) await this.grantsOf.create(after);
    return after;
  }

  async revoke(
    id: string,
    by: { readonly principal: string; readonly reason?: string } = { principal: 'api' },
  ): Promise<void> {
    if (await this.grantsOf.revoke(textOf('revoke', id))) return;
    const reason = by.reason === undefined ? {} : { reason: shortened(by.reason, MAX_REASON) };
    await this.operate(id, (approval, now) => {
      if (!isLive(approval.state))
        throw new ApprovalError(
          'closed',
          `this approval is ${approval.state} already: its call cannot be stopped by it`,
        );
      return { event: 'withdraw', members: { ended: { at: now, principal: by.principal, via: 'revoked', ...reason } } };
    });
  }

  grants(query: { readonly principal?: string; readonly limit?: number } = {}): Promise<readonly ApprovalGrant[]> {
    checkArguments('grants', query, { principal: QUERY.principal, limit: QUERY.limit });
    return this.grantsOf.list(query.principal, query.limit ?? DEFAULT_LISTED);
  }

  /** The process that ran these calls has ended: it is unknown whether they were carried out. */
  async recover(): Promise<void> {
    const { shared, core } = this.#options;
    for await (const row of this.#each({})) {
      const id = idOf(row.id) ?? '';
      // Another node may run it.
      if (row.status === 'used' && !shared) await this.end(id, 'lose').catch(() => {});
      // Its timer starts.
      else if (isOpenRow(row)) await this.look(id).catch(() => {});
    }
    core.system.log('info', `approvals: ${this.#actors.size} are open`, { event: 'store' });
  }

  /** Withdraws the open approvals of a principal, whose calls end with that. The caller deletes their rows. */
  async forget(principal: string): Promise<void> {
    for (const row of await this.#rows({ principal })) {
      const id = idOf(row.id) ?? '';
      if (isOpenRow(row)) await this.end(id, 'withdraw', 'the data of its caller is deleted').catch(() => undefined);
      this.#actors.get(id)?.stop('the data of its caller is deleted');
      this.#actors.delete(id);
      this.#ages.delete(id);
      this.#memory?.free(id);
    }
  }

  /** The store closes. Approvals stay in it. */
  stop(): void {
    for (const actor of this.#actors.values()) actor.stop('the server stops');
    this.#actors.clear();
    this.#memory?.stop();
  }

  /** The requirements that this person may meet now, by place. */
  #placesOf(approval: StoredApproval, approver: Approver): readonly number[] {
    if (!isOpen(approval.state)) return [];
    const now = this.#date();
    if (approver.expiresAt !== undefined && approver.expiresAt <= now) return [];
    const person = personOf(approver);
    return approval.requirements.flatMap((requirement, place) => {
      const counted = approval.given.some((given) => given.person === person && given.meets.includes(place));
      return missingOf(approval, place) > 0 && !counted && fits(requirement, approver, approval) ? [place] : [];
    });
  }

  #actorOf(id: string, tool: string): Actor<ApprovalMail> {
    const found = this.#actors.get(id);
    if (found) return found;
    const { core, shared } = this.#options;
    const { system, store, limits } = core;
    const actor: Actor<ApprovalMail> = spawnApproval({
      ...{ system, store, id, tool, keptMs: limits.approvalKeptMs, date: this.#date },
      pollMs: shared ? POLL_MS : undefined,
      changed: (approval, change) => this.#changed(approval, change),
      rests: () => {
        if (this.#actors.get(id) !== actor) return;
        this.#actors.delete(id);
        actor.stop('it is decided');
      },
    });
    this.#actors.set(id, actor);
    return actor;
  }

  #changed(approval: StoredApproval, change: ApprovalChange | undefined): void {
    const { core, audit, counted } = this.#options;
    const { state } = approval;
    this.#note(approval);
    // Its state stays, such as when its call stops to wait.
    if (change && change.event === undefined) return;
    counted(state);
    if (CLOSES.has(state) && change?.event !== undefined) this.#open = Math.max(0, this.#open - 1);
    if (!isLive(state) && state !== 'used') this.#memory?.ended(approval.id, this.#date() + core.limits.approvalKeptMs);
    const { tool, principal, id, binding, policies, given, ended } = approval;
    const last = change?.event === 'approve' || change?.event === 'approve in part' ? given.at(-1) : ended;
    audit?.send({
      type: 'approval',
      by: { principal },
      element: `tool ${tool}`,
      outcome: state,
      approval: id,
      binding,
      rule: policies.join(', '),
      approver: last?.principal,
      via: last?.via,
    });
    for (const listener of this.#listeners) this.#notify(listener, approval);
  }

  #notify(listener: ApprovalListener, approval: StoredApproval): void {
    const { incident } = this.#options.core.system;
    const failed = (error: unknown): void => void incident('onApproval', error);
    try {
      Promise.resolve(listener(viewOf(approval))).catch(failed);
    } catch (error) {
      failed(error);
    }
  }

  async #excess(principal: string): Promise<string | undefined> {
    const { limits, system } = this.#options.core;
    const { maxApprovals, maxApprovalsPerPrincipal } = limits;
    let own = 0;
    for await (const row of this.#each({ principal })) if (isOpenRow(row)) own += 1;
    if (own >= maxApprovalsPerPrincipal) {
      system.metrics.refused('limits.maxApprovalsPerPrincipal');
      return `this principal has ${own} open approvals, and no more are allowed (limits.maxApprovalsPerPrincipal)`;
    }
    await this.#count();
    if (this.#open < maxApprovals) return undefined;
    system.metrics.refused('limits.maxApprovals');
    return `this server has ${this.#open} open approvals, and no more are allowed (limits.maxApprovals)`;
  }

  /** Counts the open approvals in the store, at most once a minute. */
  async #count(): Promise<void> {
    const now = this.#options.core.system.clock.now();
    if (now - this.#counted < COUNT_MS) return;
    this.#counted = now;
    let open = 0;
    for await (const row of this.#each({})) if (isOpenRow(row)) open += 1;
    this.#open = open;
  }

  /** An approval for a list: a damaged one is left out, and is an incident. */
  async #readable(id: string): Promise<StoredApproval | undefined> {
    try {
      return await this.look(id);
    } catch (error) {
      this.#options.core.system.incident('reading an approval', error);
      return undefined;
    }
  }

  async #rows(query: { readonly name?: string; readonly principal?: string | undefined }): Promise<ActorRow[]> {
    const rows: ActorRow[] = [];
    for await (const row of this.#each(query)) rows.push(row);
    return rows;
  }

  async *#each(query: { readonly name?: string; readonly principal?: string | undefined }): AsyncGenerator<ActorRow> {
    let after: ActorRow | undefined;
    for (;;) {
      const page = await this.#options.core.store
        .list({ kind: 'approval', ...query, after, limit: PAGE })
        .catch((cause: unknown) => {
          throw new ApprovalError('store', 'the store could not be read, and nothing was changed', { cause });
        });
      yield* page;
      after = page.at(-1);
      if (page.length < PAGE) return;
    }
  }
}

function isOpenRow({ status }: ActorRow): boolean {
  return status === 'asked' || status === 'partly approved';
}

function notAnApprover(approval: StoredApproval, approver: Approver): ApprovalError {
  const person = personOf(approver);
  const again = approval.given.some((given) => given.person === person);
  const who = viewOf(approval)
    .by.filter(({ missing }) => missing > 0)
    .map((each) => each.who)
    .join(', and ');
  return new ApprovalError(
    'not an approver',
    again
      ? `this person has approved already, and counts once. Still needed: ${who}`
      : `this person may not decide about it. Needed: ${who}; the caller counts only if the policy says so`,
  );
}

function checkArguments(method: string, given: object, rows: Readonly<Record<string, option.Check>>): void {
  try {
    option.check(`${method}: `, given, rows);
  } catch (error) {
    throw new ApprovalError('input', error instanceof Error ? error.message : String(error));
  }
}

function textOf(method: string, id: unknown): string {
  if (option.isFilled(id)) return id;
  throw new ApprovalError('input', `${method}: expected the id of an approval, got ${describe(id)}`);
}
