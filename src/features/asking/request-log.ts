/**
 * Records of requests that ask: consumed states with their answers, the results of steps, and the checkpoint of a
 * statechart. With a durable store another process resumes from them.
 */
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import { type Auth, authOf, isAuth } from '../../core/messages/auth.ts';
import type { RecordedReply } from '../../core/messages/client-input.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { isOutcome, type Outcome } from '../../core/messages/results.ts';
import { isOfCells } from '../../core/protocol/cell.ts';
import { isObject, type JsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { Store, Write } from '../../core/store/store.ts';
import { RequestRecord, type RequestStorage, STEPS } from './request-record.ts';

interface RequestLogOptions {
  readonly system: ActorSystem;
  readonly limits: Limits;
  readonly store: Store;
}

/** The status of a state that a client has returned. */
export type Consumed =
  /** Not consumed, or its consumer ended without an answer. */
  | 'no'
  | 'yes'
  /** The request was answered with this outcome, which may not have reached the client. */
  | Outcome;

/** Maximum number of ended requests to remember in memory. States older than the oldest of them are rejected. */
const MAX_CONSUMED = 100_000;
/** Maximum length of a stored answer, in characters. */
const MAX_LENGTH = 1024 * 1024;

export class RequestLog {
  readonly #options: RequestLogOptions;
  /** The ended requests, and the dates until which their states could be returned. */
  readonly #consumed = new Map<string, number>();
  readonly #records = new Map<string, RequestRecord>();
  /** The dates until which the records of tasks are stored. */
  readonly #lasting = new Map<string, number>();
  #forgottenUntil = 0;
  #leaving = false;
  /** The cells that another process has taken over. */
  readonly #left = new Set<number>();

  constructor(options: RequestLogOptions) {
    this.#options = options;
  }

  get durable(): boolean {
    return this.#options.store.durable;
  }

  /** The process is stopping: requests that end now may continue in another process. */
  leave(): void {
    this.#leaving = true;
  }

  /** Another process continues the requests of these cells that end now. */
  leaveCells(cells: ReadonlySet<number>): void {
    for (const cell of cells) this.#left.add(cell);
  }

  /** This process owns these cells again. */
  takeCells(cells: readonly number[]): void {
    for (const cell of cells) this.#left.delete(cell);
  }

  /** True if another process continues this request when it ends here. */
  isLeaving(id: string): boolean {
    return this.#leaving || (this.#left.size > 0 && isOfCells(this.#left, id));
  }

  /**
   * Returns the durable record of a request.
   *
   * @param fresh whether no earlier run of it can have recorded steps
   */
  recordOf(id: string, fresh: boolean, request: RequestView): RequestStorage {
    const found = this.#records.get(id);
    if (found) return found;
    const { limits, store, system } = this.#options;
    const expires = (): number => this.#lasting.get(id) ?? system.clock.date() + limits.maxTimeoutMs + limits.askMs;
    const record = new RequestRecord({
      store,
      limits,
      actor: actorOf(id),
      principal: request.client.principal,
      row: () => this.#row(id, 'open', expires()),
      // A task stores its call itself.
      call: () => (this.#lasting.has(id) ? undefined : toText({ tool: toolOf(request), ...callOf(request) })),
      fresh,
    });
    this.#records.set(id, record);
    return record;
  }

  /** True if this process knows that a state was consumed. */
  isConsumed(id: string): boolean {
    return this.#consumed.has(id);
  }

  /** True if a state is so old that this process may have forgotten it. */
  isExpired(until: number): boolean {
    return until <= this.#forgottenUntil;
  }

  /** Returns the status of a state in the store. */
  async statusOf(id: string, round: number): Promise<Consumed> {
    const { store } = this.#options;
    const stored = await store.load(actorOf(id));
    const last = stored?.snapshot ? roundIn(fromText(stored.snapshot.data, actorOf(id))) : 0;
    if (!stored || round > last) return 'no';
    if (round < last) return 'yes';
    const text = await store.reply(actorOf(id), String(round));
    const outcome: unknown = text === undefined ? undefined : fromText(text, `the stored answer of ${actorOf(id)}`);
    return isOutcome(outcome) ? outcome : 'yes';
  }

  /**
   * Records that a state was consumed, with its answer.
   *
   * @returns a promise that resolves when the answer may be sent; undefined if there was no state, or nothing is durable
   */
  recordAnswer(id: string, round: number, outcome: Outcome, ends: boolean): Promise<void> | undefined {
    if (!this.durable || round === 0) return undefined;
    const { limits, store, system } = this.#options;
    const actor = actorOf(id);
    const expires = system.clock.date() + limits.askMs;
    const writes: Write[] = [];
    if (ends) writes.push({ type: 'forget', actor });
    writes.push(...this.answered(id, round, outcome, ends ? expires : expires + limits.maxTimeoutMs));
    return store.commit(writes).then(() => {
      if (ends) this.#records.get(id)?.end();
    });
  }

  /** The same as writes, to be committed together with others. */
  answered(id: string, round: number, outcome: Outcome, expires: number): readonly Write[] {
    if (round === 0) return [];
    const actor = actorOf(id);
    const writes: Write[] = [
      { type: 'actor', actor: this.#row(id, 'answered', expires) },
      { type: 'snapshot', actor, version: '1', data: toText({ round }) },
    ];
    const data = this.#textOf(outcome);
    if (data !== undefined) writes.push({ type: 'reply', actor, request: String(round), data, expires });
    return writes;
  }

  /** An answer that cannot be stored is not repeated: a request with its state is rejected. */
  #textOf(outcome: Outcome): string | undefined {
    try {
      const text = toText(outcome);
      if (text.length <= MAX_LENGTH) return text;
    } catch {
      // The client receives an error instead, so nothing is lost.
    }
    return undefined;
  }

  /**
   * Ends an interactive request.
   *
   * @param ending whether its answer is durable, or it was evicted and its request may run again
   */
  ended(id: string, round: number, ending: 'answered' | 'evicted' | 'task' | undefined): void {
    const { limits, system } = this.#options;
    const leaving = this.isLeaving(id);
    // If it was never suspended, no `requestState` exists to replay. If it was evicted, the client may still retry.
    if (round > 0 && ending !== 'evicted' && !leaving) {
      this.#consumed.delete(id);
      this.#consumed.set(id, system.clock.date() + limits.askMs);
      for (const [oldest, until] of this.#consumed) {
        if (this.#consumed.size <= MAX_CONSUMED && until > system.clock.date()) break;
        this.#consumed.delete(oldest);
        if (!this.durable) this.#forgottenUntil = Math.max(this.#forgottenUntil, until);
      }
    }
    const record = this.#records.get(id);
    this.#records.delete(id);
    this.#lasting.delete(id);
    record?.end(leaving);
    if (!this.durable || leaving || ending !== undefined) return;
    if (round === 0 && !record?.begun) return;
    // Deferred, because the answer of its request is persisted first.
    system.clock.soon(() => this.#forget(id, round));
  }

  #forget(id: string, round: number): void {
    const { limits, store, system } = this.#options;
    const actor = actorOf(id);
    const writes: Write[] = [{ type: 'forget', actor }];
    if (round > 0)
      writes.push(
        { type: 'actor', actor: this.#row(id, 'ended', system.clock.date() + limits.askMs) },
        { type: 'snapshot', actor, version: '1', data: toText({ round }) },
      );
    store
      .commit(writes)
      .catch((error: unknown) =>
        system.log(
          'warning',
          `${store.name} could not delete a request that ended: ${messageOf(error)}`,
          errorFields('store', error),
        ),
      );
  }

  /** Returns the recorded steps of a request, by name. */
  async steps(id: string): Promise<JsonObject> {
    return RequestRecord.steps(this.#options.store, actorOf(id), this.#options.limits.maxSteps);
  }

  /** Lists the requests whose statecharts have timers, with the first due date in milliseconds since 1970. */
  async due(
    limit: number,
    cells: readonly number[] | undefined,
  ): Promise<readonly { readonly id: string; readonly due: number }[]> {
    const rows = await this.#options.store.timers(Number.MAX_SAFE_INTEGER, limit, { cells, prefix: PREFIX });
    return rows.map(({ actor, due }) => ({ id: actor.slice(PREFIX.length), due }));
  }

  /** Returns the stored call of a suspended request, so that it can run again; undefined if there is none. */
  async suspendedCall(id: string): Promise<{ readonly call: JsonValue; readonly recorded: RecordedReply } | undefined> {
    const { store } = this.#options;
    const [call, checkpoint, stored] = await Promise.all([
      RequestRecord.call(store, actorOf(id)),
      this.checkpoint(id),
      store.load(actorOf(id)),
    ]);
    if (call === undefined || checkpoint === undefined) return undefined;
    // The request was asked once more than it was answered.
    const last = stored?.snapshot ? roundIn(fromText(stored.snapshot.data, actorOf(id))) : 0;
    const recorded = { id, round: last + 1, replies: {}, steps: await this.steps(id), checkpoint, waits: true };
    return { call, recorded };
  }

  /** Returns the last checkpoint of a request's statechart; undefined if there is none. */
  checkpoint(id: string): Promise<string | undefined> {
    return RequestRecord.checkpoint(this.#options.store, actorOf(id));
  }

  /**
   * Keeps the steps of a request as long as its task.
   *
   * @returns the writes for that, if it has steps. The commit of its first step may be on its way, with the time of a request that
   * is no task
   */
  retain(id: string, expires: number): readonly Write[] {
    this.#lasting.set(id, expires);
    return this.#records.has(id) ? [{ type: 'actor', actor: this.#row(id, 'task', expires) }] : [];
  }

  deletion(id: string): Write {
    return { type: 'forget', actor: actorOf(id) };
  }

  #row(id: string, status: string, expires: number) {
    const created = this.#options.system.clock.date();
    // So that all rows of a principal can be found (docs/adr/0092-forgetting.md).
    const principal = this.#records.get(id)?.principal ?? '';
    return { id: actorOf(id), kind: 'question', name: STEPS, principal, status, created, expires } as const;
  }
}

const PREFIX = 'question/';

function actorOf(id: string): string {
  return PREFIX + id;
}

function toolOf({ operation }: RequestView): string {
  return 'name' in operation ? operation.name : '';
}

function roundIn(value: unknown): number {
  return isObject(value) && typeof value.round === 'number' ? value.round : 0;
}

/** The data to run a call again. */
export interface StoredCall {
  readonly arguments: JsonObject;
  readonly revision: string;
  readonly principal: string;
  readonly capabilities: JsonObject;
  readonly info: JsonObject | undefined;
  readonly meta: JsonObject | undefined;
  readonly id: string | number;
  /** Its caller, if more than a name is known of it. */
  readonly auth?: Auth | undefined;
  /** The replies of its client before it became a task. */
  readonly replies: Readonly<Record<string, unknown>>;
}

function isMoreThanNamed({ principal, scopes, claims }: Auth): boolean {
  return scopes.join(' ') !== authOf(principal).scopes.join(' ') || Object.keys(claims).length > 0;
}

/** Returns the data to run a call again, of a call without replies. */
export function callOf({ id, client, operation, meta, auth }: RequestView): object {
  const { dialect, principal, capabilities, info } = client;
  const args = operation.method === 'tools/call' ? operation.arguments : {};
  const known = auth && isMoreThanNamed(auth) ? auth : undefined;
  const { revision } = dialect;
  return { arguments: args, revision, principal, capabilities, info, meta, id, auth: known, replies: {} };
}

export function isCall(value: unknown): value is StoredCall {
  return (
    isObject(value) &&
    isObject(value.arguments) &&
    isObject(value.capabilities) &&
    typeof value.revision === 'string' &&
    typeof value.principal === 'string' &&
    isObject(value.replies) &&
    (value.auth === undefined || isAuth(value.auth))
  );
}
