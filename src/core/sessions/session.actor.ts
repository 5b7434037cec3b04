/**
 * The session actor of one legacy client: decides which requests are allowed now, and never waits. Governed by
 * `machines/session.ts`.
 */
import { type SessionEvent, sessionMachine } from '../../../machines/session.ts';
import { belongsToOther } from '../emitters/topics.ts';
import { type Actor, type ActorSystem, type AfterTurn, type Behaviour, spawn } from '../kernel/actor.ts';
import type { Timer } from '../kernel/clock.ts';
import { nameOfClient } from '../kernel/inspection/display-names.ts';
import type { Charted, Facts } from '../kernel/inspection/records.ts';
import { step } from '../kernel/step.ts';
import type { ClientFacts, SessionFacts } from '../messages/client-facts.ts';
import type { ConnectionId } from '../messages/connection-events.ts';
import type { EmitterMail } from '../messages/emitter-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Capabilities } from '../messages/offered-capabilities.ts';
import type { RequestMail, RequestsMail } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import { EMPTY, type Outcome } from '../messages/results.ts';
import type { SessionMail, SessionState } from '../messages/session-messages.ts';
import type { Dialect } from '../protocol/dialects/index.ts';
import { ErrorCode, ProtocolError, toWireError } from '../protocol/errors.ts';
import type { Initialize } from '../protocol/operations.ts';
import type { ClientCapabilities, Implementation, LogLevel } from '../protocol/types.ts';
import { respond } from '../requests/active-request.ts';
import { ClientRequests } from './client-requests.ts';

/** The initial snapshots of a new session and of a restored one. Snapshots are immutable, so all sessions share them. */
const INITIAL = sessionMachine.initial;
const WAKING = sessionMachine.at('waking');

/** Mail that does not make an idle session active: announcements, which 10,000 sessions may receive at once, and its end. */
const NO_USE: readonly SessionMail['type'][] = [
  'list changed',
  'resource updated',
  'task changed',
  'rest',
  'hibernate',
  'close',
];

/** Milliseconds between two checks: a session is idle after one to two of them without use. */
const CHECK_MS = 5_000;

interface SessionOptions {
  readonly system: ActorSystem;
  /** Known only to its client and to handlers: over HTTP it is the key to the session. */
  readonly id: string;
  /** Its connection. Logs and the inspector identify the session by it. */
  readonly connection: ConnectionId;
  readonly transport: string;
  readonly dialect: Dialect;
  readonly opening: Initialize;
  readonly principal: string;
  readonly requests: Mailbox<RequestsMail>;
  readonly emitter: Mailbox<EmitterMail>;
  readonly capabilities: Pick<Capabilities, 'describe'>;
  /** The stored state; undefined for a new session. */
  readonly was?: SessionState | undefined;
  /** Stores the new state. Absent if the session is not durable. */
  changed?(state: SessionState): void;
  /** Called when the session ends; the connection table removes it. */
  closed(reason: string): void;
}

/** A session, and the description of its client for its requests. */
interface OpenSession {
  readonly actor: Actor<SessionMail>;
  readonly client: ClientFacts;
}

export function spawnSession(options: SessionOptions): OpenSession {
  let client: SessionClient | undefined;
  const actor = spawn<SessionMail>(
    {
      kind: 'session',
      address: `session/${options.connection}`,
      connection: options.connection,
      label: nameOfClient(options.opening.clientInfo),
    },
    options.system,
    (self, afterwards) => {
      client = new SessionClient(options, self);
      return new Session(options, client, self, afterwards);
    },
  );
  return { actor, client: client ?? new SessionClient(options, actor.mailbox) };
}

class SessionClient implements ClientFacts {
  readonly dialect: Dialect;
  readonly info: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly principal: string;
  readonly session: { rootsChanges: number } & SessionFacts;
  /** The default until the client sets a level (MCP "Logging": the server may decide). */
  logLevel: LogLevel;

  constructor({ dialect, opening, principal, id, was }: SessionOptions, mailbox: Mailbox<SessionMail>) {
    this.logLevel = was?.logLevel ?? 'info';
    this.dialect = dialect;
    this.info = opening.clientInfo;
    this.capabilities = opening.capabilities;
    this.principal = principal;
    this.session = { id, mailbox, rootsChanges: 0 };
  }
}

class Session implements Behaviour<SessionMail> {
  /** After one crash a session cannot be trusted with further messages: it closes. */
  readonly policy = { restarts: 0, windowMs: 1 };
  readonly #options: SessionOptions;
  readonly #client: SessionClient;
  /** Created with the first request to the client: most sessions send none. */
  #asks: ClientRequests | undefined;
  #snapshot: typeof INITIAL = INITIAL;
  #serving = this.#snapshot.hasTag('serving');
  #announcing = this.#snapshot.hasTag('announcing');
  /** True if a message has used it since the last check. */
  #used = false;
  #check: Timer | undefined;
  /** The watched resources. Created with the first, if the session is durable. */
  #watches: Set<string> | undefined;

  readonly #self: Mailbox<SessionMail>;
  readonly #afterwards: AfterTurn;
  readonly #pass: (mail: RequestMail) => void;
  /** The time when this process opened it, in milliseconds of the server's clock. */
  readonly #since: number;

  constructor(options: SessionOptions, client: SessionClient, self: Mailbox<SessionMail>, afterwards: AfterTurn) {
    this.#options = options;
    this.#client = client;
    this.#self = self;
    this.#afterwards = afterwards;
    this.#pass = options.requests.send;
    this.#since = options.system.clock.now();
    const { was } = options;
    if (was) {
      this.#snapshot = WAKING;
      this.#step({ type: 'restored' });
    }
    if (was?.initialized) this.#step({ type: 'initialized' });
    if (was && was.watches.length > 0) this.#watches = new Set(was.watches);
  }

  chart(): Charted {
    return this.#snapshot.charted();
  }

  facts(): Facts {
    const { info, dialect, capabilities, principal, logLevel } = this.#client;
    const watches = [...(this.#watches ?? [])];
    return { client: info, revision: dialect.revision, principal, capabilities, 'log level': logLevel, watches };
  }

  state(): string {
    return this.#snapshot.path;
  }

  receive(mail: SessionMail): void {
    if (mail.type === 'request' || !NO_USE.includes(mail.type)) this.#use();
    switch (mail.type) {
      case 'request':
        return this.#serving ? this.#afterwards(this.#pass, mail) : this.#refuse(mail.request);
      case 'serve':
        return respond(mail.request, this.#serve(mail.request));
      case 'ask':
        this.#asks ??= new ClientRequests(
          this.#options.emitter,
          this.#options.was && this.#options.system.clock.date(),
        );
        return this.#asks.ask(mail);
      case 'withdraw':
        return this.#asks?.withdraw(mail.ask, mail.reason);
      case 'response':
        return this.#asks?.response(mail.id, mail.reply);
      case 'initialized':
        this.#step({ type: 'initialized' });
        return this.#changed();
      case 'rest':
        return this.#step({ type: 'rest' });
      case 'roots changed':
        this.#client.session.rootsChanges += 1;
        return;
      case 'page completed':
        if (this.#client.dialect.elicitationIds && this.#announcing) this.#options.emitter.send(mail);
        return;
      case 'watches':
        return this.#watch(mail.uri, mail.watches);
      case 'list changed':
        if (this.#announcing) this.#options.emitter.send(mail);
        return;
      case 'resource updated':
        if (belongsToOther(mail, this.#client.principal)) return;
        return this.#options.emitter.send(mail);
      case 'task changed':
        // Its other clients poll (2025-11-25 tasks, "Task Status Notification").
        if (this.#client.dialect.tasks === 'asked' && this.#announcing)
          this.#options.emitter.send({ type: 'task status', task: mail.task });
        return;
      case 'hibernate':
      case 'close':
        if (this.#snapshot.status === 'done') return;
        this.#step({ type: mail.type });
        if (mail.type === 'close') this.#ended(undefined);
        this.#options.closed(mail.reason);
    }
  }

  #use(): void {
    this.#used = true;
    // The session is idle.
    if (this.#announcing && !this.#serving) this.#step({ type: 'use' });
  }

  /** Checks from time to time whether the session is in use, until it is not. */
  #checkUse(): void {
    this.#used = false;
    this.#check = this.#options.system.clock.after(CHECK_MS, () => {
      if (this.#used) return this.#checkUse();
      this.#check = undefined;
      this.#self.send({ type: 'rest' });
    });
  }

  #watch(uri: string, watches: boolean): void {
    if (!this.#options.changed) return;
    this.#watches ??= new Set();
    if (watches) this.#watches.add(uri);
    else this.#watches.delete(uri);
    this.#changed();
  }

  #changed(): void {
    this.#options.changed?.({
      initialized: this.#announcing,
      logLevel: this.#client.logLevel,
      watches: [...(this.#watches ?? [])],
    });
  }

  /** @param error its `error.type`, if it failed */
  #ended(error: string | undefined): void {
    const { id, system, transport } = this.#options;
    const { clock, metrics, telemetry } = system;
    const protocolVersion = this.#client.dialect.revision;
    const ms = clock.now() - this.#since;
    metrics.session(protocolVersion, ms);
    telemetry?.session({ transport, protocolVersion, session: id, seconds: ms / 1_000, error });
  }

  #step(event: SessionEvent): void {
    const recorder = { inspection: this.#options.system.inspection, actor: `session/${this.#options.connection}` };
    const was = this.#snapshot;
    this.#snapshot = step(this.#snapshot, event, recorder) ?? this.#snapshot;
    this.#serving = this.#snapshot.hasTag('serving');
    this.#announcing = this.#snapshot.hasTag('announcing');
    if (this.#snapshot === was) return;
    this.#check?.cancel();
    if (this.#serving && this.#announcing) this.#checkUse();
  }

  #serve({ operation }: RequestView): Outcome {
    switch (operation.method) {
      case 'initialize':
        return { ok: true, result: { kind: 'initialize', introduction: this.#options.capabilities.describe() } };
      case 'logging/setLevel':
        this.#client.logLevel = operation.level;
        this.#changed();
        return EMPTY;
      default:
        throw new Error(`the session does not serve ${operation.method}: the methods table and the session disagree`);
    }
  }

  #refuse(request: RequestView): void {
    const error = new ProtocolError(
      ErrorCode.InvalidRequest,
      'this session is closed: send "initialize" to open another',
    );
    this.#options.emitter.send({ type: 'answer', request, outcome: { ok: false, error: toWireError(error, '') } });
  }

  crashed(mail: SessionMail, error: unknown): void {
    const incident = this.#options.system.incident(`session/${this.#options.connection}`, error);
    const outcome: Outcome = { ok: false, error: toWireError(error, incident) };
    if (mail.type === 'request') this.#options.emitter.send({ type: 'answer', request: mail.request, outcome });
    else if ('request' in mail) respond(mail.request, outcome);
    if (this.#snapshot.status === 'done') return;
    this.#step({ type: 'close' });
    this.#ended(String(ErrorCode.InternalError));
    this.#options.closed(`the session failed (incident ${incident})`);
  }
}
