/**
 * The journal of a run: what was begun, what its calls asked and waited for, and what the script learned, in this order. It is the
 * truth about a run: another process gives the script the same deliveries, and continues.
 */
import { isContentBlock } from '../../../core/execution/content.ts';
import type { Auth } from '../../../core/messages/auth.ts';
import { isAuth } from '../../../core/messages/auth.ts';
import type { InputMethod, InputRequest } from '../../../core/messages/client-input.ts';
import { isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { fromText, toText } from '../../../core/store/serialize.ts';
import type { ActorRow, JournalEvent, Store, Write } from '../../../core/store/store.ts';
import { StoreError } from '../../../core/store/store.ts';
import type { Delivery, ScriptFault } from '../sandbox/script.ts';
import type { ReturnableBlocks } from './call-value.ts';
import type { RunResult } from './run-result.ts';

/** The caller of a run, by which it continues without a request. It never has a token. */
export interface StoredCaller {
  readonly principal: string;
  /** A digest of the session of a caller who has not signed in. */
  readonly session?: string | undefined;
  readonly capabilities: JsonObject;
  readonly info?: JsonObject | undefined;
  readonly auth?: Auth | undefined;
}

/** The names and the arguments of a call, which must be the same when the script runs again. */
export interface CallIdentity {
  readonly name: string;
  /** The SHA-256 of its arguments. */
  readonly digest: string;
}

export type RunEvent =
  | {
      readonly type: 'begun';
      readonly code: string;
      readonly seed: number;
      readonly startedAt: number;
      readonly groups: readonly string[];
      /** The tool that runs the script. */
      readonly tool: string;
      /** The engine that runs it; absent in journals of earlier versions. */
      readonly engine?: string | undefined;
      readonly caller: StoredCaller;
    }
  /** A call that may change something is about to be sent, for the first time or once more after it was approved. */
  | ({ readonly type: 'started'; readonly number: number; readonly approval?: string | undefined } & CallIdentity)
  /** A call asks the client. `state` continues the call; a question of the script itself has none. */
  | ({
      readonly type: 'asked';
      readonly number: number;
      readonly round: number;
      readonly requests: Readonly<Record<string, InputRequest>>;
      readonly state?: string | undefined;
    } & CallIdentity)
  | {
      readonly type: 'answered';
      readonly number: number;
      readonly round: number;
      readonly responses: Readonly<Record<string, unknown>>;
    }
  /** Other people must approve a call. */
  | ({
      readonly type: 'held';
      readonly number: number;
      readonly approval: string;
      readonly text: string;
    } & CallIdentity)
  /** A call has become a task. */
  | ({ readonly type: 'following'; readonly number: number; readonly task: string } & CallIdentity)
  | ({ readonly type: 'sleeping'; readonly number: number; readonly due: number } & CallIdentity)
  /** The script learns how a call has ended. */
  | ({
      readonly type: 'delivered';
      /** The call was one of a tool that may change something. */
      readonly effect?: true | undefined;
      /** The blocks that the script can return. */
      readonly blocks?: ReturnableBlocks | undefined;
    } & Delivery &
      CallIdentity)
  /** The result of the tool, and how the run has ended. */
  | ({ readonly type: 'ended'; readonly how: string } & RunResult);

/** The first stream of a run. The next ones have numbers. */
const STREAM = 'journal';
/** Events in one stream. Stores delete the oldest events of a stream with more than a thousand. */
const STREAM_EVENTS = 500;

export class RunJournal {
  readonly #store: Store;
  readonly #actor: string;
  readonly #row: () => ActorRow;
  readonly #maxLength: number;
  /** The number of its events. */
  #count: number;
  #length: number;
  #last: Promise<void> = Promise.resolve();
  #closed: string | undefined;

  /** @param row the row of the run as it is now */
  constructor(
    store: Store,
    actor: string,
    row: () => ActorRow,
    maxLength: number,
    before: readonly JournalEvent[] = [],
  ) {
    this.#store = store;
    this.#actor = actor;
    this.#row = row;
    this.#maxLength = maxLength;
    this.#count = before.length;
    this.#length = before.reduce((sum, { data }) => sum + data.length, 0);
  }

  /** Number of characters of all events. */
  get length(): number {
    return this.#length;
  }

  /** True if these characters do not fit any more. */
  isFull(more: number): boolean {
    return this.#length + more > this.#maxLength;
  }

  /** Another process continues the run: nothing is written here any more. */
  close(why: string): void {
    this.#closed ??= why;
  }

  /**
   * Appends events. Resolves when they are durable, in the order of the calls.
   *
   * @throws {StoreError} then another process has continued the run, or the store has failed: nothing may happen after it
   */
  append(events: readonly RunEvent[]): Promise<void> {
    const texts = events.map((event) => ({ kind: event.type, data: toText(event) }));
    for (const { data } of texts) this.#length += data.length;
    if (!this.#store.durable) return Promise.resolve();
    const appended = this.#last.then(() => this.#commit(texts));
    this.#last = appended;
    // The last one that fails rejects all later ones.
    appended.catch(() => {});
    return appended;
  }

  async #commit(texts: readonly { readonly kind: string; readonly data: string }[]): Promise<void> {
    if (this.#closed !== undefined) throw new StoreError('closed', this.#closed);
    const actor = this.#actor;
    const writes: Write[] = [{ type: 'actor', actor: this.#row() }];
    for (const { kind, data } of texts) {
      const seq = (this.#count % STREAM_EVENTS) + 1;
      writes.push({ type: 'event', actor, stream: streamAt(this.#count), seq, kind, data });
      this.#count += 1;
    }
    await this.#store.commit(writes);
  }

  /** The first event of a run in the store; undefined if it has none. */
  static async begun(store: Store, actor: string): Promise<Extract<RunEvent, { type: 'begun' }> | undefined> {
    const [first] = await store.events(actor, STREAM, 0, 1);
    const event = first?.seq === 1 ? readEvent(first.data, actor) : undefined;
    return event?.type === 'begun' ? event : undefined;
  }

  /** The events of a run in the store, all of them. @throws {StoreError} also if some are missing: a call would start again */
  static async read(
    store: Store,
    actor: string,
  ): Promise<{ readonly events: readonly RunEvent[]; readonly stored: readonly JournalEvent[] }> {
    const stored: JournalEvent[] = [];
    let part: readonly JournalEvent[];
    do {
      part = await store.events(actor, streamAt(stored.length), 0, STREAM_EVENTS);
      if (part.some(({ seq }, index) => seq !== index + 1))
        throw new StoreError(
          'purged',
          `${actor}: the beginning of its journal was deleted, so that it cannot continue`,
        );
      stored.push(...part);
    } while (part.length === STREAM_EVENTS);
    return { events: stored.map(({ data }) => readEvent(data, actor)), stored };
  }
}

/** The stream of an event. @param before the number of events before it */
function streamAt(before: number): string {
  const part = Math.floor(before / STREAM_EVENTS);
  return part === 0 ? STREAM : `${STREAM} ${part + 1}`;
}

function readEvent(data: string, actor: string): RunEvent {
  const value: unknown = fromText(data, `the journal of ${actor}`);
  if (isRunEvent(value)) return value;
  throw new StoreError('corrupt', `the journal of ${actor}: expected an event of a run, got something else`);
}

/** Checks the members by which a run continues. */
function isRunEvent(value: unknown): value is RunEvent {
  if (!isObject(value)) return false;
  const { type, number } = value;
  switch (type) {
    case 'begun':
      return (
        typeof value.code === 'string' &&
        typeof value.seed === 'number' &&
        typeof value.startedAt === 'number' &&
        typeof value.tool === 'string' &&
        (value.engine === undefined || typeof value.engine === 'string') &&
        Array.isArray(value.groups) &&
        isCaller(value.caller)
      );
    case 'ended':
      return (
        typeof value.how === 'string' &&
        typeof value.text === 'string' &&
        typeof value.isError === 'boolean' &&
        (value.whole === undefined || typeof value.whole === 'string') &&
        areBlocks(value.blocks)
      );
    case 'started':
      return typeof number === 'number' && isIdentity(value);
    case 'asked':
      return (
        typeof number === 'number' &&
        typeof value.round === 'number' &&
        isIdentity(value) &&
        isObject(value.requests) &&
        Object.values(value.requests).every(isInputRequest)
      );
    case 'answered':
      return typeof number === 'number' && typeof value.round === 'number' && isObject(value.responses);
    case 'held':
      return (
        typeof number === 'number' &&
        isIdentity(value) &&
        typeof value.approval === 'string' &&
        typeof value.text === 'string'
      );
    case 'following':
      return typeof number === 'number' && isIdentity(value) && typeof value.task === 'string';
    case 'sleeping':
      return typeof number === 'number' && isIdentity(value) && typeof value.due === 'number';
    case 'delivered':
      return (
        typeof number === 'number' &&
        isIdentity(value) &&
        typeof value.at === 'number' &&
        areBlocks(value.blocks) &&
        (typeof value.value === 'string' || isFault(value.error))
      );
    default:
      return false;
  }
}

/** A list of blocks, or blocks by their handles. */
function areBlocks(value: unknown): boolean {
  return value === undefined || (typeof value === 'object' && Object.values(value ?? {}).every(isContentBlock));
}

function isIdentity({ name, digest }: Readonly<Record<string, unknown>>): boolean {
  return typeof name === 'string' && typeof digest === 'string';
}

function isFault(value: unknown): value is ScriptFault {
  return isObject(value) && typeof value.message === 'string';
}

function isCaller(value: unknown): value is StoredCaller {
  return (
    isObject(value) &&
    typeof value.principal === 'string' &&
    isObject(value.capabilities) &&
    (value.auth === undefined || isAuth(value.auth))
  );
}

const METHODS: Readonly<Record<InputMethod, true>> = {
  'elicitation/create': true,
  'sampling/createMessage': true,
  'roots/list': true,
};

function isInputRequest(value: unknown): value is InputRequest {
  return (
    isObject(value) &&
    typeof value.method === 'string' &&
    Object.hasOwn(METHODS, value.method) &&
    isObject(value.params)
  );
}
