/**
 * At most one execution for each request identity: the outcome of a call is stored, and a repeated call gets the stored
 * outcome (docs/adr/0014).
 */
import type { RequestGate } from '../../core/execution/stages.ts';
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { EmitterMail } from '../../core/messages/emitter-messages.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { AnswerMail, RequestMail } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { isOutcome, type Outcome } from '../../core/messages/results.ts';
import { ErrorCode, NOT_RECORDED, ProtocolError, toWireError, wireError } from '../../core/protocol/errors.ts';
import { describe, isObject, messageOf } from '../../core/protocol/json.ts';
import { META } from '../../core/protocol/meta.ts';
import type { CallTool } from '../../core/protocol/operations.ts';
import { respond } from '../../core/requests/active-request.ts';
import { RecentNames } from '../../core/sessions/recent-names.ts';
import type { SessionRecord } from '../../core/sessions/session-record.ts';
import type { SessionRepository } from '../../core/sessions/session-repository.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ReplyWrite, Store, Write } from '../../core/store/store.ts';
import { StoreError } from '../../core/store/store.ts';
import type { AuditedCalls } from '../guard/audit/audited-calls.ts';
import { type HintedTool, hintsOf, isRepeatable } from './tool-hints.ts';

interface ReplyCacheOptions {
  readonly store: Store;
  readonly system: ActorSystem;
  readonly limits: Pick<Limits, 'replyTtlMs' | 'maxRepliesPerSession'>;
  /** The durable sessions. */
  readonly sessions: Pick<SessionRepository, 'awake'>;
  /**
   * The ids of sessions that are not durable and outlive this process: its supervisor then repeats requests in flight.
   */
  readonly lasting: ReadonlySet<string>;
  /** The tools by name, with their definitions as clients see them. */
  readonly definitions: { get(tool: string): HintedTool | undefined };
  /** Records the start of a call together with its marker; undefined without an audit. */
  readonly audit: Pick<AuditedCalls, 'announce'> | undefined;
}

/** Identifies one call for as long as its outcome is stored. */
interface Identity {
  /** Key in the store: a session, or the idempotency keys of a principal. */
  readonly actor: string;
  readonly request: string;
  /** Digest of the tool and its arguments: a different call does not get this call's outcome. */
  readonly digest: string;
  /** The call's name in messages. */
  readonly name: string;
  /** The session whose output gate holds the response; undefined for an idempotency key, whose response waits here. */
  readonly session: SessionRecord | undefined;
}

/** A call in flight whose outcome will be stored. */
interface Call extends Identity {
  readonly repeatable: boolean;
  /** Expiry of its marker, in milliseconds since 1970. */
  readonly expires: number;
}

/** The store's record of a call. Without an outcome, the call has started. */
interface Reply {
  readonly digest: string;
  readonly outcome?: Outcome;
}

/** The store's answer about a call. */
interface Asked {
  readonly text: string | undefined;
  /** True if the marker of the call is durable. */
  readonly marked: boolean;
}

/** For a call that its session has not made before. */
const NEW: Asked = { text: undefined, marked: false };

/** Longest outcome that is stored, in characters. */
const MAX_LENGTH = 1024 * 1024;
const MIN_KEY = 16;
const MAX_KEY = 256;
/**
 * A marker lives longer than `replyTtlMs` by one part in this number, so that the reply of a short call can expire
 * together with its marker.
 */
const SLACK = 16;
/**
 * Maximum number of principals and sessions whose replies are counted. Replies of the oldest ones are only removed when they expire.
 */
const MAX_COUNTED = 10_000;

export class ReplyCache {
  readonly #options: ReplyCacheOptions;
  /** The rest of the way of a call. */
  #next: (mail: RequestMail) => void = () => {};
  /** The principal of the last call with a key, and the owner of its keys in the store. */
  #keys: { readonly principal: string; readonly actor: string } | undefined;
  /** The calls in flight whose outcome will be stored. */
  readonly #calls = new WeakMap<RequestView, Call>();
  /** Calls with an idempotency key: in-flight tables do not compare keys. */
  readonly #keyed = new Map<string, RequestView>();
  /** The requests with stored replies, by actor, oldest first. */
  readonly #counted = new Map<string, RecentNames>();
  /** The writes of this turn's calls, in addition to those of their sessions: one batch for all. */
  #batch: Write[] = [];
  #stored: Promise<void> | undefined;
  /** The calls that begin in this turn, whose markers are in the batch. */
  #starting: { readonly mail: RequestMail; readonly call: Call }[] = [];

  constructor(options: ReplyCacheOptions) {
    this.#options = options;
  }

  /** Lets a call run, or responds with its stored outcome. */
  readonly gate: RequestGate = (mail, next) => {
    const { request } = mail;
    const { operation } = request;
    if (operation.method !== 'tools/call') return next(mail);
    this.#next = next;
    try {
      const tool = request.hidden ? undefined : this.#options.definitions.get(operation.name);
      const key = keyIn(request);
      const repeatable = tool !== undefined && isRepeatable(tool);
      if (repeatable && request.exchange) request.exchange.repeatable = true;
      if (leavesNothing(tool, request, operation) && !wasInterrupted(request)) return next(mail);
      const call = this.#callOf(request, operation, key, repeatable);
      if (!call) return next(mail);
      this.#take(mail, call);
    } catch (error) {
      this.#fail(request, error);
    }
  };

  /** Wraps the emitter for an in-flight table: responses that must be stored are stored before they are sent. */
  storing(emitter: Mailbox<EmitterMail>): Mailbox<EmitterMail> {
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

  #callOf(
    { id, client }: RequestView,
    operation: CallTool,
    key: string | undefined,
    repeatable: boolean,
  ): Call | undefined {
    const { limits, system } = this.#options;
    const session = client.session && this.#options.sessions.awake(client.session.id);
    const lasts = client.session !== undefined && this.#options.lasting.has(client.session.id);
    if (key === undefined && !session && !lasts) return undefined;
    const digest = sha256(toText([operation.name, operation.arguments]));
    const expires = system.clock.date() + limits.replyTtlMs + Math.floor(limits.replyTtlMs / SLACK);
    if (key !== undefined) {
      const [actor, name] = [this.#keysOf(client.principal), 'this idempotency key'];
      return { actor, request: sha256(key), digest, name, session: undefined, repeatable, expires };
    }
    const actor = session?.actor ?? `session/lasting/${sha256(client.session?.id ?? '')}`;
    // A client that violates the specification and restarts its ids makes a different call; it must not get an old
    // response.
    const request = sha256(`${typeof id} ${id} ${digest}`);
    return { actor, request, digest, name: `id ${String(id).slice(0, 64)}`, session, repeatable, expires };
  }

  /** The owner of a principal's keys in the store. Most calls follow one of the same principal. */
  #keysOf(principal: string): string {
    if (this.#keys?.principal === principal) return this.#keys.actor;
    const actor = `key/${sha256(principal)}`;
    this.#keys = { principal, actor };
    return actor;
  }

  /** @throws {ProtocolError} if another request with its key is in flight */
  #take(mail: RequestMail, call: Call): void {
    const { session, repeatable } = call;
    const { store } = this.#options;
    if (!session) this.#enter(mail.request, call);
    // Reading from the store waits for pending writes. Most calls are new and need not wait.
    if (session?.mayRepeat(call.request) === false) return this.#guard(mail, call, NEW);
    if (repeatable) return this.#read(mail, call);
    try {
      store.claim(this.#marker(call)).then(
        (text) => this.#guard(mail, call, { text, marked: text === undefined }),
        // The store accepts no writes now, but may still answer reads.
        () => this.#read(mail, call),
      );
    } catch (error) {
      this.#refuse(mail, call, error);
    }
  }

  /** Continues with the stored reply of a call. */
  #read(mail: RequestMail, call: Call): void {
    try {
      this.#options.store.reply(call.actor, call.request).then(
        (text) => this.#guard(mail, call, { text, marked: false }),
        (error: unknown) => this.#refuse(mail, call, error),
      );
    } catch (error) {
      this.#refuse(mail, call, error);
    }
  }

  #guard(mail: RequestMail, call: Call, asked: Asked): void {
    try {
      this.#start(mail, call, asked);
    } catch (error) {
      this.#refuse(mail, call, error);
    }
  }

  #start(mail: RequestMail, call: Call, { text, marked }: Asked): void {
    const { request } = mail;
    const { session, digest, repeatable, name } = call;
    // The client has cancelled the request in the meantime, or it timed out.
    if (request.settled) return this.#leave(request, call);
    const before = text === undefined || text === '' ? undefined : readReply(text, call);
    if (before && before.digest !== digest)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        `${name} was already used for a different call (another tool or other arguments): use a new one`,
      );
    // A retry with answers continues the earlier call.
    if (before?.outcome && !(request.continues && isQuestion(before.outcome))) {
      this.#leave(request, call);
      storesReply(request);
      return respond(request, before.outcome);
    }
    const again = wasInterrupted(request);
    // A call that ends its process runs again once: its marker is stored first.
    const isUnknown = again ? !repeatable || before !== undefined : !repeatable && before && !before.outcome;
    if (isUnknown)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        `${name}: this call started before, and its outcome is unknown, because the server restarted or the call was cancelled. It may have run and will not run again. Check its effects before you send a new call`,
      );
    // If the store is failing, repeatable calls still run; storing them has no benefit.
    if (repeatable && !again && session?.failing) return this.#next(mail);
    if ((!repeatable || again) && !marked) return this.#mark(mail, call);
    this.#run(mail, call);
  }

  /** Runs a call when its marker is durable. All calls that begin in one turn wait together. */
  #mark(mail: RequestMail, call: Call): void {
    const { operation } = mail.request;
    const starting = this.#starting;
    const isFirst = starting.push({ mail, call }) === 1;
    const { audit, definitions } = this.#options;
    if (audit && operation.method === 'tools/call')
      audit.announce(mail.request, definitions.get(operation.name)?.definition);
    const stored = this.#store(this.#marker(call));
    if (!isFirst) return;
    stored.then(
      () => {
        for (const { mail, call } of starting) this.#run(mail, call);
      },
      (error: unknown) => {
        for (const { mail, call } of starting) this.#refuse(mail, call, error);
      },
    );
  }

  #run(mail: RequestMail, call: Call): void {
    const { request } = mail;
    if (request.settled) return this.#leave(request, call);
    this.#calls.set(request, call);
    try {
      this.#next(mail);
    } catch (error) {
      this.#calls.delete(request);
      this.#refuse(mail, call, error);
    }
  }

  /** Ends a call that does not run. */
  #refuse({ request }: RequestMail, call: Call, error: unknown): void {
    this.#leave(request, call);
    this.#fail(request, error);
  }

  /** Resolves when the writes of this turn are durable. @throws {StoreError} */
  #store(...writes: readonly Write[]): Promise<void> {
    this.#batch.push(...writes);
    this.#stored ??= Promise.resolve().then(() => {
      const batch = this.#batch;
      this.#batch = [];
      this.#starting = [];
      this.#stored = undefined;
      return this.#options.store.commit(batch);
    });
    return this.#stored;
  }

  /** @throws {ProtocolError} if another request with this key is in flight */
  #enter(request: RequestView, identity: Identity): void {
    const key = keyOf(identity);
    if (this.#keyed.get(key)?.settled === false)
      throw new ProtocolError(
        ErrorCode.InvalidRequest,
        'Another call with this idempotency key is in progress. Wait for its response.',
      );
    this.#keyed.set(key, request);
  }

  #leave(request: RequestView, identity: Identity): void {
    const key = keyOf(identity);
    if (this.#keyed.get(key) === request) this.#keyed.delete(key);
  }

  #answered(mail: AnswerMail, call: Call, emitter: Mailbox<EmitterMail>): void {
    const { request, outcome } = mail;
    const { session, repeatable } = call;
    this.#calls.delete(request);
    this.#leave(request, call);
    // Aborted by shutdown. The outcome is unknown: keep only the marker, so that a repeated call gets that answer.
    if (!outcome.ok && outcome.error.code === ErrorCode.ShuttingDown) return emitter.send(mail);
    // A call that has not run may run when it is repeated.
    const writes =
      request.turnedAway || isUnrecorded(outcome)
        ? [this.#removal(call)]
        : [...this.#makeRoom(call), this.#reply(call, outcome)];
    if (repeatable) {
      // If this result is lost, a repeated call may run again.
      emitter.send(mail);
      this.#store(...writes).catch(() => {});
      return;
    }
    if (session) {
      // The transport sends the response when these writes and the event with the response are durable.
      for (const write of writes) session.add(write);
      storesReply(request);
      return emitter.send(mail);
    }
    this.#store(...writes).then(
      () => emitter.send(mail),
      (error: unknown) => emitter.send({ ...mail, outcome: { ok: false, error: unsaved(error) } }),
    );
  }

  /** The write for an outcome. An outcome that is too long or not JSON is replaced by the marker. */
  #reply(call: Call, outcome: Outcome): Write {
    const { digest } = call;
    const { limits, system } = this.#options;
    const expires = Math.max(call.expires, system.clock.date() + limits.replyTtlMs);
    try {
      const write = this.#write(call, { digest, outcome }, expires);
      if (write.data.length <= MAX_LENGTH) return write;
    } catch {
      // The outbound codec reports this to the client and to the operator.
    }
    return this.#write(call, { digest }, expires);
  }

  #marker(call: Call): ReplyWrite {
    return this.#write(call, { digest: call.digest }, call.expires);
  }

  #write({ actor, request }: Identity, reply: Reply, expires: number): ReplyWrite {
    return { type: 'reply', actor, request, data: toText(reply), expires };
  }

  /** Removes the oldest reply above the limit before it expires. */
  #makeRoom({ actor, request }: Identity): readonly Write[] {
    const { limits } = this.#options;
    const requests = this.#counted.get(actor) ?? new RecentNames(limits.maxRepliesPerSession);
    this.#counted.delete(actor);
    this.#counted.set(actor, requests);
    if (this.#counted.size > MAX_COUNTED)
      for (const oldest of this.#counted.keys()) {
        this.#counted.delete(oldest);
        break;
      }
    const gone = requests.add(request);
    return gone === undefined ? [] : [this.#removal({ actor, request: gone })];
  }

  #removal({ actor, request }: Pick<Identity, 'actor' | 'request'>): ReplyWrite {
    return { type: 'reply', actor, request, data: '', expires: this.#options.system.clock.date() };
  }

  #fail(request: RequestView, error: unknown): void {
    const known = error instanceof ProtocolError;
    const wire = known
      ? toWireError(error, '')
      : error instanceof StoreError
        ? wireError(ErrorCode.InternalError, `the call did not run: ${whyNot(error)}`)
        : toWireError(error, this.#options.system.incident('the reply cache', error));
    respond(request, { ok: false, error: wire });
  }
}

/** The idempotency key of a call. @throws {ProtocolError} if the key is invalid */
function keyIn({ meta }: RequestView): string | undefined {
  const key = meta?.[META.idempotencyKey];
  if (key === undefined) return undefined;
  if (typeof key === 'string' && key.length >= MIN_KEY && key.length <= MAX_KEY) return key;
  throw new ProtocolError(
    ErrorCode.InvalidParams,
    `params._meta["${META.idempotencyKey}"]: expected a random string of ${MIN_KEY} to ${MAX_KEY} characters, such as a UUID, got ${describe(key)}`,
  );
}

/** The reason why a call does not run: it may have run before, and the store cannot say so. */
function whyNot({ fault, message }: StoreError): string {
  if (fault !== 'corrupt') return `the server cannot store its outcome: ${message}`;
  return 'the stored data of an earlier call is damaged, and this call may repeat it; ask the operator to restore a backup';
}

/**
 * True if a call needs no stored reply because it may run again. Durable effects of its handler have their own output
 * gate.
 */
function leavesNothing(tool: HintedTool | undefined, request: RequestView, operation: CallTool): boolean {
  return (
    tool === undefined || (hintsOf(tool).readOnlyHint === true && !mayBecomeTask(tool.definition, request, operation))
  );
}

/** True if a call may become a task. A repeated call must then find that task and not create another. */
function mayBecomeTask(tool: unknown, { client }: RequestView, { task }: CallTool): boolean {
  return task !== undefined || (client.dialect.tasks === 'extension' && isObject(tool) && tool.execution !== undefined);
}

/** True if an earlier run of the call ended with its process. Its client resumes the stream of its response. */
function wasInterrupted({ exchange }: RequestView): boolean {
  return exchange?.earlier !== undefined;
}

/** Marks that the response of this request waits for the replies that its session stores. */
function storesReply({ exchange }: RequestView): void {
  if (exchange) exchange.storesReply = true;
}

/** True if a call did not run, because its audit record could not be kept. */
function isUnrecorded(outcome: Outcome): boolean {
  return !outcome.ok && outcome.error.data === NOT_RECORDED;
}

function isQuestion(outcome: Outcome): boolean {
  return outcome.ok && outcome.result.kind === 'input';
}

function readReply(text: string, { actor }: Identity): Reply {
  const read = fromText(text, `a reply of ${actor}`);
  if (!isObject(read) || typeof read.digest !== 'string')
    throw new StoreError('corrupt', `a reply of ${actor}: expected a stored reply, got something else`);
  const { digest, outcome } = read;
  return isOutcome(outcome) ? { digest, outcome } : { digest };
}

function unsaved(error: unknown) {
  return wireError(ErrorCode.InternalError, `the call ended, but its outcome could not be stored: ${messageOf(error)}`);
}

function keyOf({ actor, request }: Identity): string {
  return `${actor} ${request}`;
}
