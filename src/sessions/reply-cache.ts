/** At most one execution for each request identity: what a call came to is kept, and said again to whoever repeats it (docs/adr/0014). */
import { createHash } from 'node:crypto';
import type { Clock } from '../clock.ts';
import type { Limits } from '../limits.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { EmitterMail } from '../messages/emitter-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { AnswerMail, RequestMail } from '../messages/request-messages.ts';
import { isOutcome, type Outcome } from '../messages/results.ts';
import { ErrorCode, ProtocolError, toWireError, wireError } from '../protocol/errors.ts';
import { describe, isObject, messageOf } from '../protocol/json.ts';
import { META } from '../protocol/meta.ts';
import type { CallTool } from '../protocol/operations.ts';
import { respond } from '../requests/respond.ts';
import { fromText, toText } from '../store/serialize.ts';
import type { ReplyWrite, Store, Write } from '../store/store.ts';
import { StoreError } from '../store/store.ts';
import type { SessionRecord } from './session-record.ts';

export interface ReplyCacheOptions {
  readonly store: Store;
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'replyTtlMs' | 'maxRepliesPerSession'>;
  /** What is kept of a session that is awake; undefined for one that is not kept. */
  kept(session: string): SessionRecord | undefined;
  /** Whether a session that is not kept has an id that outlives this process: its supervisor repeats what was in flight. */
  lasts(session: string): boolean;
  /** A tool as clients see it; undefined where there is none. */
  definitionOf(tool: string): unknown;
  /** Passes a call on to what runs it. */
  route(mail: RequestMail): void;
  incident(where: string, error: unknown): string;
}

/** Names one call, for as long as what it came to is kept. */
interface Identity {
  /** In the store: a session, or the keys of a principal. */
  readonly actor: string;
  readonly request: string;
  /** Of the tool and its arguments: another call is not answered by this one. */
  readonly digest: string;
  /** How it is called in messages. */
  readonly name: string;
  /** Where answers wait for what is kept of the session; undefined for a key, whose answer waits here. */
  readonly session: SessionRecord | undefined;
}

/** A call on its way whose outcome is to be kept. */
interface Call extends Identity {
  readonly repeatable: boolean;
  /** When its marker expires, in milliseconds since 1970. */
  readonly expires: number;
}

/** What the store has of a call: without an outcome, that it was begun. */
interface Reply {
  readonly digest: string;
  readonly outcome?: Outcome;
}

/** What the store answers of a call. */
interface Asked {
  readonly text: string | undefined;
  /** The marker of the call is durable. */
  readonly marked: boolean;
}

/** Of a call that its session has not made before. */
const NEW: Asked = { text: undefined, marked: false };

/** Longest outcome that is kept, in characters. */
const MAX_LENGTH = 1024 * 1024;
const MIN_KEY = 16;
const MAX_KEY = 256;
/** Of the time that replies are kept, the part by which a marker outlives it: the reply to a short call expires with its marker. */
const SLACK = 16;
/** Most principals and sessions whose replies are counted; those that were counted first are left to time. */
const MAX_COUNTED = 10_000;

export class ReplyCache {
  readonly #options: ReplyCacheOptions;
  /** The calls on their way whose outcome is to be kept. */
  readonly #calls = new WeakMap<ActiveRequest, Call>();
  /** Those with a key, by it: no in-flight table tells them apart. */
  readonly #keyed = new Map<string, ActiveRequest>();
  /** The requests of each actor whose replies are kept, the oldest first. */
  readonly #counted = new Map<string, Set<string>>();
  /** What the calls of this turn store, beside what their sessions do: one batch for all of them. */
  #batch: Write[] = [];
  #stored: Promise<void> | undefined;

  constructor(options: ReplyCacheOptions) {
    this.#options = options;
  }

  /** Takes a request for a tool: runs it, or answers it with what it came to before. */
  readonly route = (mail: RequestMail): void => {
    const { request } = mail;
    const { operation } = request;
    if (operation.method !== 'tools/call') return this.#options.route(mail);
    try {
      const tool = this.#options.definitionOf(operation.name);
      const key = keyIn(request);
      if (leavesNothing(tool, request, operation)) return this.#options.route(mail);
      const identity = this.#identityOf(request, operation, key);
      if (!identity) return this.#options.route(mail);
      this.#take(mail, identity, isRepeatable(tool)).catch((error: unknown) => {
        this.#leave(request, identity);
        this.#fail(request, error);
      });
    } catch (error) {
      this.#fail(request, error);
    }
  };

  /** The emitter as an in-flight table sees it: answers that are to be kept are, before they are said. */
  says(emitter: Mailbox<EmitterMail>): Mailbox<EmitterMail> {
    return {
      address: emitter.address,
      send: (mail) => {
        const ends = mail.type === 'answer' || mail.type === 'unanswered';
        const call = ends ? this.#calls.get(mail.request) : undefined;
        if (call && mail.type === 'answer') return this.#answered(mail, call, emitter);
        if (call && ends) this.#leave(mail.request, call);
        emitter.send(mail);
      },
    };
  }

  #identityOf({ id, client }: ActiveRequest, operation: CallTool, key: string | undefined): Identity | undefined {
    const session = client.session && this.#options.kept(client.session.id);
    const lasts = client.session !== undefined && this.#options.lasts(client.session.id);
    if (key === undefined && !session && !lasts) return undefined;
    const digest = hash(toText([operation.name, operation.arguments]));
    if (key !== undefined) {
      const actor = `key/${hash(client.principal)}`;
      return { actor, request: hash(key), digest, name: 'this idempotency key', session: undefined };
    }
    const actor = session?.actor ?? `session/lasting/${hash(client.session?.id ?? '')}`;
    // A client that counts anew, against the specification, makes another call, and must not be answered with an old one.
    const request = hash(`${typeof id} ${id} ${digest}`);
    return { actor, request, digest, name: `id ${String(id).slice(0, 64)}`, session };
  }

  async #take(mail: RequestMail, identity: Identity, repeatable: boolean): Promise<void> {
    const { request } = mail;
    const { route, clock, limits } = this.#options;
    const { request: name, digest, session } = identity;
    if (!session) this.#enter(request, identity);
    const expires = clock.date() + limits.replyTtlMs + Math.floor(limits.replyTtlMs / SLACK);
    const marker = this.#write(identity, { digest }, expires);
    // To ask the store waits for what is being written: most calls are new, and need not.
    const { text, marked } = session?.mayRepeat(name) === false ? NEW : await this.#ask(marker, repeatable);
    // Its client has cancelled it meanwhile, or its time is over.
    if (request.settled) return this.#leave(request, identity);
    const before = text === undefined || text === '' ? undefined : readReply(text, identity);
    if (before && before.digest !== digest)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        `${identity.name} was used for another call, of another tool or with other arguments: use one that no call has had`,
      );
    // What brings answers goes on with the call that was begun.
    if (before?.outcome && !(request.continues && isQuestion(before.outcome))) {
      this.#leave(request, identity);
      storesReply(request);
      return respond(request, before.outcome);
    }
    if (before && !before.outcome && !repeatable)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        `${identity.name}: this call was begun before, and what it came to is not known, because the server was restarted or the call was cancelled: it may have run, and is not run again; find out what it did, then call anew if need be`,
      );
    // While the store takes nothing, what may be repeated goes on; nothing would be gained by keeping it.
    if (repeatable && session?.journal.failing) return route(mail);
    if (!repeatable && !marked) await this.#store([marker]);
    if (request.settled) return this.#leave(request, identity);
    this.#calls.set(request, { ...identity, repeatable, expires });
    route(mail);
  }

  /** What the store has of a call, and whether it has the marker now. */
  async #ask(marker: ReplyWrite, repeatable: boolean): Promise<Asked> {
    const { store } = this.#options;
    const { actor, request } = marker;
    if (!repeatable && store.claim) {
      try {
        const text = await store.claim(marker);
        return { text, marked: text === undefined };
      } catch {
        // It takes nothing now. What it has, it may still tell.
      }
    }
    return { text: await store.reply(actor, request), marked: false };
  }

  /** Resolves when this is durable. @throws {StoreError} */
  #store(writes: readonly Write[]): Promise<void> {
    this.#batch.push(...writes);
    this.#stored ??= Promise.resolve().then(() => {
      const batch = this.#batch;
      this.#batch = [];
      this.#stored = undefined;
      return this.#options.store.commit(batch);
    });
    return this.#stored;
  }

  /** @throws {ProtocolError} when another request with this key is in flight */
  #enter(request: ActiveRequest, identity: Identity): void {
    const key = keyOf(identity);
    if (this.#keyed.get(key)?.settled === false)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        'a call with this idempotency key is in flight already: wait for its answer',
      );
    this.#keyed.set(key, request);
  }

  #leave(request: ActiveRequest, identity: Identity): void {
    const key = keyOf(identity);
    if (this.#keyed.get(key) === request) this.#keyed.delete(key);
  }

  #answered(mail: AnswerMail, call: Call, emitter: Mailbox<EmitterMail>): void {
    const { request, outcome } = mail;
    const { session, repeatable } = call;
    this.#calls.delete(request);
    this.#leave(request, call);
    // It was ended by the server's own end: what it came to is not known, and a repeat is told so.
    if (!outcome.ok && outcome.error.code === ErrorCode.ShuttingDown) return emitter.send(mail);
    const writes = [...this.#makeRoom(call), this.#reply(call, outcome)];
    if (repeatable) {
      // A repeat whose result was lost may run again.
      emitter.send(mail);
      this.#store(writes).catch(() => {});
      return;
    }
    if (session) {
      // The transport lets the answer out when this is durable, and the event that carries it.
      for (const write of writes) session.journal.add(write);
      storesReply(request);
      return emitter.send(mail);
    }
    this.#store(writes).then(
      () => emitter.send(mail),
      (error: unknown) => emitter.send({ ...mail, outcome: { ok: false, error: unsaved(error) } }),
    );
  }

  /** What JSON cannot hold, or is too long, is not kept: that it was begun is. */
  #reply(call: Call, outcome: Outcome): Write {
    const { digest } = call;
    const { clock, limits } = this.#options;
    const expires = Math.max(call.expires, clock.date() + limits.replyTtlMs);
    try {
      const write = this.#write(call, { digest, outcome }, expires);
      if (write.data.length <= MAX_LENGTH) return write;
    } catch {
      // The door out says so to the client, and to the operator.
    }
    return this.#write(call, { digest }, expires);
  }

  #write({ actor, request }: Identity, reply: Reply, expires: number): ReplyWrite {
    return { type: 'reply', actor, request, data: toText(reply), expires };
  }

  /** The oldest replies beyond the bound are forgotten before their time. */
  #makeRoom({ actor, request }: Identity): readonly Write[] {
    const { clock, limits } = this.#options;
    const requests = this.#counted.get(actor) ?? new Set<string>();
    this.#counted.delete(actor);
    this.#counted.set(actor, requests);
    requests.add(request);
    for (const oldest of this.#counted.keys()) {
      if (this.#counted.size <= MAX_COUNTED) break;
      this.#counted.delete(oldest);
    }
    const gone: Write[] = [];
    for (const name of requests) {
      if (requests.size <= limits.maxRepliesPerSession) break;
      requests.delete(name);
      gone.push({ type: 'reply', actor, request: name, data: '', expires: clock.date() });
    }
    return gone;
  }

  #fail(request: ActiveRequest, error: unknown): void {
    const known = error instanceof ProtocolError;
    const wire = known
      ? toWireError(error, '')
      : error instanceof StoreError
        ? wireError(ErrorCode.InternalError, `nothing was run, because ${whyNot(error)}`)
        : toWireError(error, this.#options.incident('the replies', error));
    respond(request, { ok: false, error: wire });
  }
}

/** The idempotency key of a call. @throws {ProtocolError} for one that is none */
function keyIn({ meta }: ActiveRequest): string | undefined {
  const key = meta?.[META.idempotencyKey];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && key.length >= MIN_KEY && key.length <= MAX_KEY) return key;
  throw new ProtocolError(
    ErrorCode.InvalidParams,
    `params._meta["${META.idempotencyKey}"]: expected a random string of ${MIN_KEY} to ${MAX_KEY} characters, such as a UUID, got ${describe(key)}`,
  );
}

function hints(tool: unknown): Readonly<Record<string, unknown>> {
  const annotations = isObject(tool) ? tool.annotations : undefined;
  return isObject(annotations) ? annotations : NONE;
}

const NONE: Readonly<Record<string, never>> = Object.freeze({});

/** A call that may have been made before is not made again where nobody can read what it came to. */
function whyNot({ fault, message }: StoreError): string {
  if (fault !== 'corrupt') return `the server cannot keep it: ${message}`;
  return 'the storage of this server is damaged where it may have stored an earlier call of this identity; ask the operator to restore a copy';
}

/** Whether running it twice does what running it once does. */
export function isRepeatable(tool: unknown): boolean {
  const { readOnlyHint, idempotentHint } = hints(tool);
  return readOnlyHint === true || idempotentHint === true;
}

/** Whether nothing of a call is stored: it may run again. What its handler does that must be durable waits for that by itself. */
function leavesNothing(tool: unknown, request: ActiveRequest, operation: CallTool): boolean {
  return tool === undefined || (hints(tool).readOnlyHint === true && !mayBecomeTask(tool, request, operation));
}

/** A repeat of such a call must find its task, and not create another. */
function mayBecomeTask(tool: unknown, { client }: ActiveRequest, { task }: CallTool): boolean {
  return task !== undefined || (client.dialect.tasks === 'extension' && isObject(tool) && tool.execution !== undefined);
}

/** The response of this request waits for the replies that its session has stored. */
function storesReply({ exchange }: ActiveRequest): void {
  if (exchange) exchange.storesReply = true;
}

function isQuestion(outcome: Outcome): boolean {
  return outcome.ok && outcome.result.kind === 'input';
}

function readReply(text: string, { actor }: Identity): Reply {
  const read = fromText(text, `a reply of ${actor}`);
  if (!isObject(read) || typeof read.digest !== 'string')
    throw new StoreError('corrupt', `a reply of ${actor}: expected one as it was written, got something else`);
  const { digest, outcome } = read;
  return isOutcome(outcome) ? { digest, outcome } : { digest };
}

function unsaved(error: unknown) {
  return wireError(
    ErrorCode.InternalError,
    `the call has ended, but what it came to could not be kept: ${messageOf(error)}`,
  );
}

function keyOf({ actor, request }: Identity): string {
  return `${actor} ${request}`;
}

function hash(text: string): string {
  return createHash('sha256').update(text).digest('base64url');
}
