/**
 * The actor of a client's connection to one server: opens channels, negotiates, sends requests, and recovers. Its chart
 * decides what may happen now; requests step no chart.
 */

import { Buffer } from 'node:buffer';
import { type ConnectionEvent, connectionMachine } from '../../machines/connection.ts';
import { type Actor, spawn } from '../core/kernel/actor.ts';
import type { ActorSystem } from '../core/kernel/actor-system.ts';
import { delayAfter } from '../core/kernel/back-off.ts';
import type { Behaviour } from '../core/kernel/behaviour.ts';
import { pathOf } from '../core/kernel/charts/paths.ts';
import type { Timer } from '../core/kernel/clock.ts';
import { durationOf } from '../core/kernel/duration.ts';
import type { Charted, Facts, Waits } from '../core/kernel/inspection/records.ts';
import type { OperatorLog } from '../core/kernel/operator-log.ts';
import { initial, stepMachine } from '../core/kernel/step-machine.ts';
import type { Mailbox } from '../core/messages/mailbox.ts';
import { ErrorCode } from '../core/protocol/errors.ts';
import { isObject, type JsonObject, messageOf } from '../core/protocol/json.ts';
import type { Incoming, RequestId } from '../core/protocol/jsonrpc.ts';
import { META } from '../core/protocol/meta.ts';
import {
  type Era,
  isLegacyRevision,
  isModernRevision,
  LATEST_LEGACY,
  LATEST_MODERN,
  type LegacyRevision,
  type Revision,
} from '../core/protocol/revisions.ts';
import { TASKS_EXTENSION } from '../core/protocol/task-params.ts';
import {
  type ClientCapabilities,
  type Implementation,
  isLogLevel,
  LOG_LEVELS,
  type LogLevel,
} from '../core/protocol/types.ts';
import { AskableCalls } from './askable-calls.ts';
import type { Authorization, Challenge } from './authorization.ts';
import type { Channel, ChannelFailure, ChannelMail, OutgoingMessage } from './channels/channel.ts';
import { isGone, isLostSession } from './channels/lost-session.ts';
import {
  answeredBy,
  ClientCodec,
  isJsonValue,
  jsonParams,
  NAMED,
  ownId,
  readError,
  readMessages,
} from './client-codec.ts';
import { type CallFailure, type CarriedOut, ClientError, ErrorResponse, type FailureReason } from './client-errors.ts';
import type { ClientSettings, ServerLogMessage } from './client-options.ts';
import { encodeMirrored } from './mirrored-parameters.ts';
import { type OutgoingRequest, OutgoingRequests } from './outgoing-requests.ts';
import { ProposedRevision } from './proposed-revision.ts';
import { readCapabilities } from './received.ts';
import type { CallPosition, UnansweredRequest } from './relayed-request.ts';
import { canBeAsked, type ServerAnswer, type ServerRequests } from './server-requests.ts';
import { TaskProgress } from './task-progress.ts';

/** The server as its client knows it. */
export interface ConnectedServer {
  readonly name: string;
  readonly version: string;
  readonly title: string | undefined;
  readonly revision: Revision;
  readonly era: Era;
  /** As the server declared them. */
  readonly capabilities: JsonObject;
  readonly instructions: string | undefined;
}

/** A notification of the server that belongs to no request. */
export interface ServerNotification {
  readonly method: string;
  readonly params: JsonObject;
}

export type ClientMail =
  | ChannelMail
  /** The beginning or the end of one channel: mail of a channel that was replaced means nothing. */
  | { readonly type: 'channel'; readonly generation: number; readonly mail: ChannelEnds }
  | ServerAnswer
  | { readonly type: 'request'; readonly request: OutgoingRequest }
  /** A caller gives a request up, with the error for its outcome. */
  | { readonly type: 'cancel'; readonly request: OutgoingRequest; readonly error: Error; readonly why: string }
  | { readonly type: 'notify'; readonly method: string; readonly params: JsonObject | undefined }
  /** A caller wants log messages of this level: a legacy server sends the least severe level of all callers. */
  | { readonly type: 'log level'; readonly level: LogLevel }
  | { readonly type: 'discovered'; readonly result: unknown }
  | { readonly type: 'initialized'; readonly result: unknown }
  | { readonly type: 'handshake failed'; readonly method: string; readonly error: Error }
  | { readonly type: 'need' }
  /** Another process continues what is in flight: the server must not learn that this one ends. */
  | { readonly type: 'leave' }
  /** The session of another process is open. */
  | { readonly type: 'resumed' }
  /** A server's request that another process did not answer. */
  | { readonly type: 'asked before'; readonly about: OutgoingRequest; readonly asked: UnansweredRequest }
  | { readonly type: 'due' }
  | { readonly type: 'waited' }
  /** A request has waited long enough for its turn. */
  | { readonly type: 'turn' }
  /** Requests that no socket could carry are sent again. */
  | { readonly type: 'again' }
  | { readonly type: 'authorized' }
  | { readonly type: 'refused'; readonly error: Error }
  /** `ms`: the time for calls in flight, if it is another than that of the options. */
  | { readonly type: 'drain'; readonly ms?: number | undefined }
  | { readonly type: 'late' };

type ErrorIncoming = Extract<Incoming, { readonly kind: 'response' }>;
type LostSession = Extract<ChannelFailure, { readonly kind: 'session lost' }>;
type Unauthorized = Extract<ChannelFailure, { readonly kind: 'unauthorized' }>;

type ChannelEnds = Extract<ChannelMail, { readonly type: 'opened' | 'gone' }>;

/** Reports of the connection to its client. */
export type ClientEvent =
  /** Calls can be sent: for the first time, or after a loss. `again`: subscriptions and lists may have changed. */
  | { readonly type: 'ready'; readonly server: ConnectedServer; readonly again: boolean }
  /** No attempt is under way; the error says why. */
  | { readonly type: 'down'; readonly error: ClientError }
  /** An attempt to connect failed; another may follow. */
  | { readonly type: 'attempt failed'; readonly error: ClientError }
  | { readonly type: 'notification'; readonly notification: ServerNotification }
  /** Notifications may have been lost. */
  | { readonly type: 'gap' }
  | { readonly type: 'closed' };

/** The eras of servers that this process has met, by the target's key. */
const eras = new Map<string, Era>();
const MAX_ERAS = 1_000;
/** Characters of the last lines of a program's stderr that the inspector shows. */
const SHOWN_STDERR = 2_000;

/** The way to a server. */
export interface Reach {
  /** The server as people read it. */
  readonly name: string;
  /** The key under which the server's era is remembered; undefined: never. */
  readonly eraKey?: string | undefined;
  /** The era for the first attempt, if no other is remembered. */
  readonly era?: Era | undefined;
  /** Makes a channel for each attempt. `sse`: for a server of 2024-11-05 over HTTP. */
  readonly channel: (kind: 'usual' | 'sse') => Channel;
  readonly authorization?: Authorization | undefined;
  /** The address that needs the authorization. */
  readonly resource?: URL | undefined;
  /** The id of the first request. Default 1. */
  readonly firstId?: number | undefined;
  /** Proposed in `initialize`. Default: the newest. */
  readonly revision?: LegacyRevision | undefined;
}

export interface ClientConnectionOptions {
  readonly system: ActorSystem;
  readonly address: string;
  /** The actor that has the connection, if it is a part of a server. */
  readonly parent?: string | undefined;
  /** The name of the connection for people. Default: the target. */
  readonly label?: string | undefined;
  readonly reach: Reach;
  readonly settings: ClientSettings;
  readonly info: Implementation;
  readonly capabilities: ClientCapabilities;
  readonly logLevel: LogLevel | undefined;
  readonly log: OperatorLog;
  readonly serverRequests: ServerRequests;
  readonly client: Mailbox<ClientEvent>;
  readonly onLog: ((message: ServerLogMessage) => void) | undefined;
  /** The revision of a session that another process has opened, and which the channel continues. */
  readonly resumes?: Revision | undefined;
  /** All calls have one caller: a message that names no call may go to the newest. Otherwise it must be certain which call it means. */
  readonly oneCaller: boolean;
  /** 0 to 1, for back-off. */
  readonly random: () => number;
}

export function spawnClientConnection(options: ClientConnectionOptions): Actor<ClientMail> {
  const { system, address, parent, label = options.reach.name } = options;
  return spawn(
    { kind: 'client', address, parent, connection: address, label },
    system,
    (self) => new ClientConnection(options, self),
  );
}

/** Codes of Troupe's servers: the probe has failed, and shows nothing about revisions. */
const FAILS: ReadonlySet<number> = new Set([
  ErrorCode.Overloaded,
  ErrorCode.TimedOut,
  ErrorCode.ShuttingDown,
  ErrorCode.Forbidden,
  ErrorCode.UpstreamUnavailable,
]);

const ATTEMPTS = 5;
const BACK_OFF = { fromMs: 500, toMs: 30_000 } as const;
/** The delays between attempts to send a request that no socket could carry. */
const REFUSED = { fromMs: 100, toMs: 2_000 } as const;
const SUSPEND_MS = 60_000;
const STABLE_MS = 60_000;
/** Maximum number of times that one request is sent: after a lost session, a sign-in, or a lost connection if it only reads. */
const MAX_ATTEMPTS = 4;

class ClientConnection implements Behaviour<ClientMail> {
  readonly #options: ClientConnectionOptions;
  readonly #self: Mailbox<ClientMail>;
  readonly #requests: OutgoingRequests;
  readonly #askable: AskableCalls;
  readonly #modern: ClientCodec;
  readonly #proposed: ProposedRevision;
  #snapshot = initial(connectionMachine, {
    attempts: ATTEMPTS,
    backOff: BACK_OFF,
    suspendMs: SUSPEND_MS,
    stableMs: STABLE_MS,
  });
  /** Requests that wait for the connection, in order, with the time since when. */
  #waiting: { readonly request: OutgoingRequest; readonly since: number; readonly error?: ClientError }[] = [];
  /** The timer after which requests that no socket could carry are sent again, and how often that has happened in a row. */
  #retryTimer: Timer | undefined;
  #refusals = 0;
  #channel: Channel | undefined;
  /** Counts channels: mail of an earlier one is dropped. */
  #generation = 0;
  #sse = false;
  /** The era that the first attempt takes for granted. */
  #expected: Era | undefined;
  #repairLogged = false;
  #drainMs: number | undefined;
  #server: ConnectedServer | undefined;
  #wasReady = false;
  readonly #taskProgress = new TaskProgress();
  #challenge: Pick<Unauthorized, 'status' | 'challenge' | 'text'> | undefined;
  #lastFailure: ClientError | undefined;
  /** The response of a server of unknown era that is no answer to `server/discover`. */
  #probed: string | undefined;
  /** The level of a legacy server's log. */
  #logLevel: LogLevel | undefined;
  #timer: Timer | undefined;
  #waitTimer: Timer | undefined;
  #authorizing: AbortController | undefined;
  /** The id of the last `initialize`: an earlier request belongs to an earlier session. */
  #sessionStart = 0;
  /** The last id that was sent before the newest token. */
  #tokenStart = 0;
  /** Channels that are closing: their processes and sockets end before the client reports its own end. */
  readonly #closing = new Set<Promise<void>>();

  constructor(options: ClientConnectionOptions, self: Mailbox<ClientMail>) {
    this.#options = options;
    this.#self = self;
    this.#logLevel = options.logLevel;
    this.#expected = options.reach.era;
    this.#proposed = new ProposedRevision(options.reach.revision);
    this.#modern = new ClientCodec(options.info, options.capabilities, LATEST_MODERN);
    this.#requests = new OutgoingRequests(
      options.system.clock,
      (request) => this.#timedOut(request),
      () => options.serverRequests.size > 0,
      options.reach.firstId ?? 1,
    );
    this.#askable = new AskableCalls(options.system.clock, this.#requests, options.serverRequests, () =>
      self.send({ type: 'turn' }),
    );
  }

  /** The server as the caller named it, for errors. */
  get #target(): string {
    return this.#options.reach.name;
  }

  // For the inspector

  state(): string {
    return pathOf(this.#snapshot);
  }

  chart(): Charted {
    return { machine: connectionMachine, snapshot: this.#snapshot };
  }

  facts(): Facts {
    const stderr = this.#channel?.stderr?.() ?? '';
    return {
      server: this.#server === undefined ? this.#target : `${this.#server.name} ${this.#server.version}`,
      revision: this.#server?.revision,
      'in flight': this.#requests.size,
      waiting: this.#waiting.length + this.#askable.waiting,
      failures: this.#snapshot.context.failures,
      ...(this.#lastFailure === undefined ? {} : { 'last failure': this.#lastFailure.message }),
      ...(stderr === '' ? {} : { stderr: stderr.slice(-SHOWN_STDERR) }),
    };
  }

  waits(): readonly Waits[] {
    return this.#requests.values().map((request) => ({
      what: `the response to ${request.method}${nameOf(request) === undefined ? '' : ` ${nameOf(request)}`}`,
      whom: this.#target,
      until: request.timeoutMs === undefined ? undefined : request.due,
    }));
  }

  // Mail

  receive(mail: ClientMail): void {
    switch (mail.type) {
      case 'text':
        return this.#text(mail.text, mail.about, mail.status, mail.whole === true);
      case 'dropped':
        return this.#dropped(mail.envelope, mail.bytes);
      case 'request':
        return this.#request(mail.request);
      case 'request failed':
        return this.#requestFailed(mail.id, mail.failure);
      case 'cancel':
        return this.#cancel(mail.request, mail.error, mail.why);
      case 'notify':
        return this.#notify(mail.method, mail.params);
      case 'respond':
        return this.#post(this.#modern.result(mail.id, mail.result), 'response');
      case 'reject':
        return this.#post(this.#modern.error(mail.id, mail.code, mail.message, mail.data), 'response');
      case 'log level':
        return this.#widenLog(mail.level);
      case 'channel':
        return mail.generation === this.#generation ? this.receive(mail.mail) : undefined;
      case 'opened':
        return this.#step({ type: 'opened', era: mail.era ?? this.#knownEra() });
      case 'gone':
        return this.#gone(mail.failure, mail.final);
      case 'token rejected':
        return this.#tokenRejected(mail.challenge);
      case 'gap':
        return this.#options.client.send({ type: 'gap' });
      case 'discovered':
        return this.#discovered(mail.result);
      case 'initialized':
        return this.#initialized(mail.result);
      case 'handshake failed':
        return this.#handshakeFailed(mail.method, mail.error);
      case 'need':
        return this.#need();
      case 'leave':
        return this.#channel?.leave?.();
      case 'resumed':
        return this.#resumed();
      case 'asked before':
        return this.#serverRequest(mail.asked, mail.about.id);
      case 'due':
      case 'late':
        return this.#step(mail);
      case 'waited':
        return this.#waited();
      case 'turn':
        // Without a connection they wait for that.
        if (this.#snapshot.hasTag('serving')) for (const request of this.#askable.takeDue()) this.#transmit(request);
        return;
      case 'again':
        this.#retryTimer = undefined;
        return this.#snapshot.hasTag('serving') ? this.#flush() : undefined;
      case 'authorized':
        return this.#authorized();
      case 'refused':
        return this.#refused(mail.error);
      case 'drain':
        this.#drainMs = mail.ms ?? this.#drainMs;
        this.#step({ type: 'drain' });
        return this.#settle();
    }
  }

  crashed(mail: ClientMail, error: unknown): void {
    const why = messageOf(error);
    this.#options.log('error', `the connection to ${this.#target} failed on "${mail.type}": ${why}`);
    if (mail.type !== 'request' && mail.type !== 'cancel') return;
    this.#requests.take(mail.request.id);
    mail.request.reject(this.#error('closed', `the client failed: ${why}`, 'unknown', { cause: error }));
  }

  // The chart

  #step(event: ConnectionEvent): void {
    const before = this.#snapshot;
    const recorder = { inspection: this.#options.system.inspection, actor: this.#options.address };
    this.#snapshot = stepMachine(connectionMachine, before, event, recorder) ?? before;
    if (before !== this.#snapshot && this.state() !== pathOf(before)) this.#entered();
  }

  /** Acts on the state that the chart has entered. */
  #entered(): void {
    const { client, settings, system } = this.#options;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#snapshot.hasTag('timed'))
      this.#timer = system.clock.after(this.#snapshot.context.delayMs, () => this.#self.send({ type: 'due' }));
    switch (this.state()) {
      case 'connecting':
      case 'reopening':
        return this.#connect();
      case 'negotiating.probing':
      case 'negotiating.reprobing':
        return this.#probe();
      case 'negotiating.guessing':
      case 'negotiating.initializing':
        return this.#initialize();
      case 'admitting':
      case 'authorizing':
      case 'reauthorizing':
        return this.#authorize();
      case 'ready':
        return this.#flush();
      case 'idle':
      case 'unauthorized':
      case 'suspended': {
        const error = this.#lastFailure ?? this.#error('unreachable', 'no connection', 'no');
        this.#rejectWaiting(error);
        return client.send({ type: 'down', error });
      }
      case 'draining':
        this.#rejectWaiting(this.#closedError());
        this.#endSignIn();
        // No caller needs the outcome of a handshake any more.
        for (const request of this.#requests.values()) if (isHandshake(request)) this.#requests.take(request.id);
        this.#timer = system.clock.after(this.#drainMs ?? settings.drainMs, () => this.#self.send({ type: 'late' }));
        return;
      case 'closed':
        return this.#close();
    }
  }

  #need(): void {
    if (this.#snapshot.can({ type: 'need' })) this.#step({ type: 'need' });
  }

  // Opening and negotiating

  #connect(): void {
    const { address, reach, system, settings } = this.#options;
    this.#retireChannel();
    const generation = this.#generation;
    this.#timer = system.clock.after(settings.connectMs, () => {
      this.#channelMail(generation, {
        type: 'gone',
        failure: {
          reason: 'unreachable',
          message: `no connection within ${durationOf(settings.connectMs)} (connectMs)`,
          carriedOut: 'no',
        },
        final: false,
      });
    });
    try {
      this.#channel = reach.channel(this.#sse ? 'sse' : 'usual');
      this.#channel.open({ address, send: (mail) => this.#channelMail(generation, mail) });
    } catch (error) {
      this.#channelMail(generation, {
        type: 'gone',
        failure: { reason: 'refused', message: messageOf(error), carriedOut: 'no', cause: error },
        final: true,
      });
    }
  }

  /** Mail of a channel that was replaced is dropped. */
  #channelMail(generation: number, mail: ChannelMail): void {
    if (generation !== this.#generation) return;
    if (mail.type === 'opened' || mail.type === 'gone') return this.#self.send({ type: 'channel', generation, mail });
    const wire = mail.type === 'text' ? this.#recordWire('in', mail.text) : 0;
    if (wire === 0) this.#self.send(mail);
    else this.#options.system.inspection.withCause(wire, () => this.#self.send(mail));
  }

  /** Ends the channel, if there is one; mail that it still sends is dropped. */
  #retireChannel(): void {
    this.#generation += 1;
    this.#askable.forget();
    const channel = this.#channel;
    this.#channel = undefined;
    // The server can no longer receive the answers to what it asked.
    this.#options.serverRequests.close();
    if (!channel) return;
    const closed: Promise<void> = channel
      .close()
      .catch((error: unknown) =>
        this.#options.log('warning', `closing the connection to ${this.#target} failed: ${messageOf(error)}`),
      )
      .then(() => void this.#closing.delete(closed));
    this.#closing.add(closed);
  }

  #knownEra(): Era | undefined {
    const { settings, reach } = this.#options;
    if (settings.eras !== 'auto') return settings.eras;
    return this.#sse ? 'legacy' : (eras.get(reach.eraKey ?? '') ?? this.#expected);
  }

  #probe(): void {
    const { settings } = this.#options;
    // Only silence of a server of unknown era shows something: a legacy server may ignore the probe. Others are merely slow.
    const silenceShows = this.#channel?.kind === 'stream' && this.#knownEra() === undefined;
    this.#server = undefined;
    this.#handshake('server/discover', {}, silenceShows ? settings.probeMs : settings.connectMs, 'discovered');
  }

  #initialize(): void {
    const { info, capabilities, settings } = this.#options;
    if (this.#options.resumes !== undefined && !this.#wasReady) return this.#self.send({ type: 'resumed' });
    // The tasks of 2025-11-25 are declared apart.
    const { [TASKS_EXTENSION]: _, ...extensions } = capabilities.extensions ?? {};
    const { extensions: __, ...others } = capabilities;
    const declared = Object.keys(extensions).length === 0 ? others : { ...others, extensions };
    this.#server = undefined;
    // A lost session takes the questions of its server with it.
    this.#options.serverRequests.close();
    this.#sessionStart = this.#requests.nextId;
    this.#handshake(
      'initialize',
      { protocolVersion: this.#proposed.current, capabilities: jsonOf(declared), clientInfo: jsonOf(info) },
      settings.connectMs,
      'initialized',
    );
  }

  /** Another process has negotiated: of what the server said, the call that continues needs only the revision. */
  #resumed(): void {
    const { resumes } = this.#options;
    if (resumes !== undefined && this.#initializing) this.#ready(this.#describe(resumes, 'legacy', {}, undefined));
  }

  #handshake(method: string, params: JsonObject, timeoutMs: number, then: 'discovered' | 'initialized'): void {
    const generation = this.#generation;
    this.#transmit({
      ...quiet(method, params, timeoutMs),
      repeatable: false,
      resolve: (result) => {
        if (generation === this.#generation) this.#self.send({ type: then, result });
      },
      reject: (error) => {
        if (generation === this.#generation) this.#self.send({ type: 'handshake failed', method, error });
      },
    });
  }

  #discovered(result: unknown): void {
    if (this.state() === 'negotiating.guessing') return this.#answeredLate(result);
    if (!this.#probing) return;
    if (!isObject(result) || !Array.isArray(result.supportedVersions)) return this.#legacyServer();
    const versions: readonly unknown[] = result.supportedVersions;
    if (!versions.some(isModernRevision)) {
      if (versions.some(isLegacyRevision)) return this.#legacyServer();
      return this.#noRevision(versions);
    }
    const meta = isObject(result._meta) ? result._meta : {};
    this.#ready(this.#describe(LATEST_MODERN, 'modern', result, meta[META.serverInfo]));
  }

  /**
   * The server reads `initialize` next, and may then take the whole connection for one of the legacy era: it gets another one, on
   * which only the probe is sent.
   */
  #answeredLate(result: unknown): void {
    const versions: unknown = isObject(result) ? result.supportedVersions : undefined;
    if (!Array.isArray(versions) || !versions.some(isModernRevision)) return;
    this.#retireChannel();
    const lost = this.#requests.drain();
    this.#expected = 'modern';
    this.#step({ type: 'answered late' });
    this.#lose(lost, { reason: 'closed', message: 'the server is asked again', carriedOut: 'no' });
  }

  get #probing(): boolean {
    const state = this.state();
    return state === 'negotiating.probing' || state === 'negotiating.reprobing';
  }

  get #initializing(): boolean {
    const state = this.state();
    return state === 'negotiating.initializing' || state === 'negotiating.guessing';
  }

  #initialized(result: unknown): void {
    if (!this.#initializing) return;
    const version = isObject(result) ? result.protocolVersion : undefined;
    if (!isObject(result) || typeof version !== 'string')
      return this.#notServable('not mcp', 'expected the result of "initialize" with a protocolVersion', 'yes');
    if (!isLegacyRevision(version)) return this.#noRevision([version]);
    const server = this.#describe(version, 'legacy', result, result.serverInfo);
    this.#server = server;
    this.#notify('notifications/initialized', undefined);
    this.#channel?.listen?.();
    this.#setLevel();
    this.#ready(server);
  }

  #describe(revision: Revision, era: Era, result: Readonly<Record<string, unknown>>, info: unknown): ConnectedServer {
    const { name, version, title } = isObject(info) ? info : {};
    return {
      name: textOf(name) ?? 'unknown',
      version: textOf(version) ?? 'unknown',
      title: textOf(title),
      revision,
      era,
      capabilities: jsonOf(readCapabilities(result.capabilities)),
      instructions: textOf(result.instructions),
    };
  }

  #ready(server: ConnectedServer): void {
    const { client, reach, settings, system } = this.#options;
    const { eraKey } = reach;
    this.#server = server;
    this.#lastFailure = undefined;
    this.#probed = undefined;
    if (eraKey !== undefined && settings.eras === 'auto') {
      eras.delete(eraKey);
      eras.set(eraKey, server.era);
      if (eras.size > MAX_ERAS) eras.delete([...eras.keys()][0] ?? '');
    }
    const again = this.#wasReady;
    this.#wasReady = true;
    // Callers continue before waiting requests are sent, so that subscriptions come first.
    client.send({ type: 'ready', server, again });
    this.#step({ type: 'negotiated', at: system.clock.now() });
  }

  /** A legacy server has one level for the whole connection; each caller gets what it asked for. */
  #widenLog(level: LogLevel): void {
    if (this.#logLevel !== undefined && isSevere(level, this.#logLevel)) return;
    this.#logLevel = level;
    if (this.#snapshot.hasTag('serving')) this.#setLevel();
  }

  #setLevel(): void {
    const { settings } = this.#options;
    const level = this.#logLevel;
    if (level === undefined || this.#server?.era !== 'legacy' || !isObject(this.#server.capabilities.logging)) return;
    this.#transmit({
      ...quiet('logging/setLevel', { level }, settings.timeoutMs),
      reject: (error) => this.#options.log('warning', `logging/setLevel failed: ${error.message}`),
    });
  }

  #handshakeFailed(method: string, error: Error): void {
    // `initialize` has followed the probe, whose failure shows nothing more.
    if (method === 'server/discover' && !this.#probing) return;
    if (this.#probing) {
      if (error instanceof ErrorResponse) {
        if (error.code === ErrorCode.UnsupportedProtocolVersion) return this.#otherRevision(error);
        // Any error that is not a modern one shows a legacy server (2026-07-28 stdio, "Backward Compatibility").
        if (error.code === ErrorCode.MissingRequiredClientCapability || error.code === ErrorCode.HeaderMismatch)
          return this.#attemptFailed(error, true);
        const fails =
          FAILS.has(error.code) || (error.code === ErrorCode.InternalError && this.#options.settings.eras === 'modern');
        return fails ? this.#attemptFailed(error, false) : this.#legacyServer();
      }
      // An answer that is no message shows no modern server either (2026-07-28 versioning, "Backward Compatibility").
      if (error instanceof ClientError && error.reason === 'malformed') {
        this.#probed = error.message.slice(this.#target.length + 2);
        return this.#legacyServer();
      }
    }
    if (error instanceof ErrorResponse && this.#initializing) {
      const { supported } = isObject(error.data) ? error.data : {};
      if (this.#proposed.refused(error.message, supported)) return this.#initialize();
    }
    if (error instanceof ErrorResponse && this.#snapshot.can({ type: 'rejected' }))
      return this.#step({ type: 'rejected' });
    if (error instanceof ErrorResponse) {
      const { code } = error;
      const final = code === ErrorCode.InvalidParams || code === ErrorCode.UnsupportedProtocolVersion;
      // The era may be remembered or guessed; the next attempt asks for it.
      return this.#attemptFailed(error, final && this.#options.settings.eras !== 'auto');
    }
    this.#attemptFailed(error instanceof ClientError ? error : this.#error('closed', messageOf(error), 'no'), false);
  }

  /** The server names the revisions that it supports: one retry with a common one (2026-07-28 versioning). */
  #otherRevision(error: ErrorResponse): void {
    const supported = isObject(error.data) && Array.isArray(error.data.supported) ? error.data.supported : [];
    if (supported.some(isModernRevision) && this.#snapshot.can({ type: 'other revision' }))
      return this.#step({ type: 'other revision' });
    if (supported.some(isLegacyRevision)) return this.#legacyServer();
    this.#noRevision(supported);
  }

  #legacyServer(): void {
    if (this.#options.settings.eras === 'modern')
      return this.#notServable(
        'no common revision',
        `the server does not know revision ${LATEST_MODERN}, and the option eras is "modern". Use "auto"`,
      );
    this.#step({ type: 'legacy' });
  }

  #noRevision(versions: readonly unknown[]): void {
    const named = versions.map(String).join(', ').slice(0, 200) || 'no revision';
    this.#notServable('no common revision', `the server speaks ${named}, and this client none of them`);
  }

  /** Another attempt would fail the same way. */
  #notServable(reason: FailureReason, message: string, carriedOut: CarriedOut = 'no'): void {
    this.#attemptFailed(this.#error(reason, message, carriedOut), true);
  }

  #attemptFailed(failure: ClientError, final: boolean): void {
    if (!this.#snapshot.can({ type: 'failed', jitter: 0, final })) return;
    const error = this.#withProbe(failure);
    this.#lastFailure = error;
    this.#forgetGuesses();
    this.#retireChannel();
    const lost = this.#requests.drain();
    this.#options.client.send({ type: 'attempt failed', error });
    this.#step({ type: 'failed', jitter: this.#options.random(), final });
    this.#lose(lost, { reason: 'closed', message: `the connection ended: ${error.message}`, carriedOut: 'unknown' });
  }

  /** The error of an attempt in which the server answered the probe strangely, and `initialize` failed, too. */
  #withProbe(error: ClientError): ClientError {
    const probed = this.#probed;
    this.#probed = undefined;
    if (probed === undefined || error instanceof ErrorResponse) return error;
    const { reason, carriedOut } = error;
    const message = error.message.slice(this.#target.length + 2).replace(/\.$/, '');
    const both = `${message}. Before that, the response to "server/discover" was ${probed}`;
    return this.#error(reason, both, carriedOut, { ...error, cause: error });
  }

  #gone(failure: ChannelFailure, final: boolean): void {
    const { client, random, settings, system } = this.#options;
    const error = this.#withProbe(this.#failureError(failure));
    if (failure.kind === 'unauthorized' && this.#snapshot.can({ type: 'unauthorized' })) {
      this.#challenge = failure;
      this.#lastFailure = error;
      this.#retireChannel();
      return this.#step({ type: 'unauthorized' });
    }
    const open = this.#snapshot.can({ type: 'gone', at: 0, jitter: 0 });
    const killed =
      this.#snapshot.can({ type: 'probe killed' }) && settings.eras === 'auto' && error.reason === 'closed';
    this.#lastFailure = error;
    this.#endSignIn();
    this.#retireChannel();
    const lost = this.#requests.drain();
    // Some legacy servers end when they read a request before `initialize`: the next process gets that first.
    if (killed) this.#step({ type: 'probe killed' });
    else if (open) {
      if (!this.#snapshot.hasTag('serving')) {
        this.#forgetGuesses();
        client.send({ type: 'attempt failed', error });
      }
      this.#step({ type: 'gone', at: system.clock.now(), jitter: random() });
    } else if (this.#snapshot.can({ type: 'failed', jitter: 0, final })) {
      this.#forgetGuesses();
      client.send({ type: 'attempt failed', error });
      this.#step({ type: 'failed', jitter: random(), final });
    }
    this.#lose(lost, failure);
    this.#settle();
  }

  /** An attempt failed: what it took for granted may be wrong, and the next attempt finds out. */
  #forgetGuesses(): void {
    this.#sse = false;
    this.#expected = undefined;
    eras.delete(this.#options.reach.eraKey ?? '');
  }

  /** The requests that were in flight when the channel ended. */
  #lose(lost: readonly OutgoingRequest[], failure: ChannelFailure): void {
    // A handshake that is lost has no caller: the attempt has failed already.
    for (const request of lost)
      if (!isHandshake(request)) this.#retryOrReject(request, this.#failureError(failure), request.repeatable);
  }

  // Sign-in

  /** The server wants another token for a request, which waits for it or is rejected. */
  #unauthorized(request: OutgoingRequest, failure: Unauthorized, error: ClientError): void {
    const handshake = isHandshake(request);
    // The token was replaced while the request was under way.
    const outdated = request.id <= this.#tokenStart;
    if (!handshake && outdated) return this.#again(request, error);
    if (!handshake && !this.#snapshot.hasTag('serving')) return this.#again(request, error);
    if (!this.#snapshot.can({ type: 'unauthorized' })) return handshake ? undefined : this.#reject(request, error);
    this.#challenge = failure;
    this.#lastFailure = error;
    if (!handshake) this.#wait(request);
    this.#step({ type: 'unauthorized' });
  }

  /** A call in flight needs another token for its stream. The connection signs in, as for a call. */
  #tokenRejected(header: string | undefined): void {
    if (!this.#snapshot.hasTag('serving') || !this.#snapshot.can({ type: 'unauthorized' })) return;
    this.#challenge = { status: 401, challenge: header, text: '' };
    this.#lastFailure = this.#failureError({ kind: 'unauthorized', ...this.#challenge });
    this.#step({ type: 'unauthorized' });
  }

  #authorized(): void {
    const at = this.#options.system.clock.now();
    this.#authorizing = undefined;
    this.#tokenStart = this.#requests.nextId - 1;
    // A person who signs in may take longer than calls wait, or than they may take.
    this.#waiting = this.#waiting.map(({ request, since }) => {
      if (request.attempts > 0) request.lastDue += at - since;
      return { request, since: at };
    });
    this.#step({ type: 'authorized', era: this.#knownEra() });
    this.#channel?.authorized?.();
  }

  #endSignIn(): void {
    this.#authorizing?.abort();
    this.#authorizing = undefined;
  }

  #authorize(): void {
    const { authorization, resource } = this.#options.reach;
    const challenge = this.#challenge;
    if (!authorization || !resource || !challenge) {
      const demand = challenge?.status === 403 ? 'more rights than its token has' : 'a token';
      return this.#refused(
        this.#error(
          challenge?.status === 403 ? 'forbidden' : 'unauthorized',
          `the server demands ${demand}${challenge ? saidOf(challenge) : ''}. Pass \`auth\`, or a header "authorization"`,
          'no',
          { challenge: challenge && this.#challengeOf(challenge) },
        ),
      );
    }
    const abort = new AbortController();
    this.#authorizing = abort;
    const demanded = { status: challenge.status, header: challenge.challenge, resource };
    const signIn = async (): Promise<void> => authorization.authorize(demanded, abort.signal);
    signIn().then(
      () => {
        if (this.#authorizing === abort) this.#self.send({ type: 'authorized' });
      },
      (error: unknown) => {
        if (this.#authorizing !== abort) return;
        const failure = error instanceof Error ? error : new Error(String(error));
        this.#self.send({
          type: 'refused',
          error: this.#error(
            challenge.status === 403 ? 'forbidden' : 'unauthorized',
            `sign-in failed: ${failure.message.replace(/\.$/, '')}${challenge.text === '' ? '' : `. The server said${challenge.text}`}`,
            'no',
            { challenge: demanded, cause: failure },
          ),
        });
      },
    );
  }

  #refused(error: Error): void {
    this.#authorizing = undefined;
    this.#lastFailure = error instanceof ClientError ? error : this.#error('unauthorized', error.message, 'no');
    const stillValid = this.#challenge?.status === 403;
    // Only the requests that need more rights fail; the token serves the others.
    if (stillValid) this.#rejectWaiting(this.#lastFailure, (request) => request.attempts > 0);
    this.#step({ type: 'refused', status: this.#challenge?.status ?? 401 });
  }

  // Requests

  #request(request: OutgoingRequest): void {
    const { settings } = this.#options;
    if (this.#requests.size + this.#waiting.length + this.#askable.waiting >= settings.maxInFlight)
      return this.#fail(
        request,
        'overloaded',
        `${settings.maxInFlight} calls are in flight. The option is maxInFlight`,
        'no',
      );
    if (this.#snapshot.hasTag('serving')) return this.#send(request);
    this.#need();
    if (this.#snapshot.hasTag('serving')) return this.#send(request);
    if (this.#snapshot.hasTag('waiting')) return this.#wait(request);
    request.reject((this.#closes ? undefined : this.#lastFailure) ?? this.#closedError());
  }

  /** Sends a request once more, now or later: the server has carried nothing out. */
  #again(request: OutgoingRequest, error: ClientError): void {
    if (this.#snapshot.hasTag('serving')) return this.#transmit(request);
    if (this.#snapshot.hasTag('waiting')) return this.#wait(request);
    this.#reject(request, error);
  }

  #fail(
    request: OutgoingRequest,
    reason: FailureReason,
    message: string,
    carriedOut: CarriedOut,
    more?: Partial<CallFailure>,
  ): void {
    this.#reject(request, this.#error(reason, message, carriedOut, more));
  }

  #reject(request: OutgoingRequest, error: Error): void {
    this.#rejectHonestly(request, error);
    this.#settle();
  }

  /** The error of the last attempt says nothing about the attempts before it. */
  #rejectHonestly(request: OutgoingRequest, error: Error): void {
    const certain = !request.doubtful || !(error instanceof ClientError) || error.carriedOut !== 'no';
    if (certain) return request.reject(error);
    const { reason, retryAfterMs } = error;
    const message = `the first attempt may have been carried out, and the second failed: ${error.message}`;
    request.reject(this.#error(reason, message, 'unknown', { retryAfterMs, cause: error }));
  }

  get #closes(): boolean {
    const state = this.state();
    return state === 'draining' || state === 'closed';
  }

  /**
   * Waits with a request that no socket could carry: the server restarts, or is not there yet. It is sent again until `waitMs` have
   * passed.
   */
  #retryLater(request: OutgoingRequest, error: ClientError): void {
    const { clock } = this.#options.system;
    request.refusedSince ??= clock.now();
    // The server has seen nothing of the attempt.
    request.attempts -= 1;
    this.#wait(request, request.refusedSince, error);
    if (this.#retryTimer) return;
    this.#refusals += 1;
    this.#retryTimer = clock.after(delayAfter(REFUSED, this.#refusals), () => this.#self.send({ type: 'again' }));
  }

  #wait(request: OutgoingRequest, since = this.#options.system.clock.now(), error?: ClientError): void {
    this.#waiting.push({ request, since, ...(error ? { error } : {}) });
    const { settings, system } = this.#options;
    const left = Math.max(0, since + settings.waitMs - system.clock.now());
    this.#waitTimer ??= system.clock.after(left, () => this.#self.send({ type: 'waited' }));
  }

  /** Rejects the requests that have waited too long. A person who signs in may take longer. */
  #waited(): void {
    this.#waitTimer = undefined;
    const { settings, system } = this.#options;
    const patient = this.#authorizing !== undefined;
    const now = system.clock.now();
    let next = Number.POSITIVE_INFINITY;
    this.#waiting = this.#waiting.filter(({ request, since, error }) => {
      const why = (error ?? this.#lastFailure)?.message;
      const limit = patient ? 'maxTimeoutMs' : 'waitMs';
      const ms = patient ? (request.maxTimeoutMs ?? settings.maxTimeoutMs) : settings.waitMs;
      if (since + ms > now) {
        next = Math.min(next, since + (patient ? Math.min(ms, settings.waitMs) : ms));
        return true;
      }
      const message = `no connection within ${durationOf(ms)} (${limit})${why === undefined ? '' : `. The last failure: ${why}`}`;
      this.#rejectHonestly(request, this.#error(patient ? 'unauthorized' : 'unreachable', message, 'no'));
      return false;
    });
    if (next === Number.POSITIVE_INFINITY) return;
    this.#waitTimer = system.clock.after(next > now ? next - now : settings.waitMs, () =>
      this.#self.send({ type: 'waited' }),
    );
  }

  #flush(): void {
    this.#waitTimer?.cancel();
    this.#waitTimer = undefined;
    this.#retryTimer?.cancel();
    this.#retryTimer = undefined;
    for (const { request } of this.#waiting.splice(0)) this.#send(request);
    for (const request of this.#askable.take()) this.#send(request);
  }

  /** Sends a request, unless it must wait until the server can ask about no other call. */
  #send(request: OutgoingRequest): void {
    if (!this.#askable.wait(request)) this.#transmit(request);
  }

  #rejectWaiting(error: Error, which: (request: OutgoingRequest) => boolean = () => true): void {
    const rejected = this.#waiting.filter(({ request }) => which(request));
    this.#waiting = this.#waiting.filter(({ request }) => !which(request));
    for (const { request } of rejected) this.#rejectHonestly(request, error);
    for (const request of this.#askable.take(which)) this.#rejectHonestly(request, error);
  }

  #transmit(request: OutgoingRequest): void {
    const channel = this.#channel;
    if (!channel) return this.#fail(request, 'closed', 'the connection ended before the request was sent', 'no');
    this.#requests.add(request);
    const { method } = request;
    const modern = this.#server ? this.#server.era === 'modern' : method === 'server/discover';
    let text: string;
    try {
      text = this.#modern.request(request, modern);
    } catch (error) {
      this.#requests.take(request.id);
      const why = `the params of ${method} are not JSON: ${messageOf(error)}`;
      return this.#fail(request, 'malformed', why, 'no', { cause: error });
    }
    const { maxMessageBytes } = this.#options.settings;
    const bytes = Buffer.byteLength(text);
    if (bytes > maxMessageBytes) {
      this.#requests.take(request.id);
      const why = `the request has ${bytes} bytes, more than maxMessageBytes (${maxMessageBytes}). Send less, or raise this option of the client`;
      return this.#fail(request, 'too long', why, 'no');
    }
    const message: OutgoingMessage = {
      text,
      method,
      id: request.id,
      revision: modern ? LATEST_MODERN : this.#server?.revision,
      headers: modern && channel.kind === 'http' ? this.#headers(request) : undefined,
      sessionless: modern || method === 'initialize',
      authorization: request.authorization,
    };
    if (request.resumesAfter !== undefined) return channel.resume?.(message, request.resumesAfter);
    this.#recordWire('out', text);
    channel.send(message);
  }

  #headers(request: OutgoingRequest): Readonly<Record<string, string>> {
    const name = nameOf(request);
    return {
      'mcp-method': request.method,
      ...(name === undefined ? {} : { 'mcp-name': encodeMirrored(name) }),
      ...request.headers,
    };
  }

  #notify(method: string, params: JsonObject | undefined): void {
    this.#post(this.#modern.notification(method, params), method);
  }

  #post(text: string, method: string): void {
    const channel = this.#channel;
    if (!channel) return;
    this.#recordWire('out', text);
    channel.send({
      text,
      method,
      id: undefined,
      revision: this.#server?.revision,
      headers: undefined,
      sessionless: false,
    });
  }

  #requestFailed(id: RequestId, failure: ChannelFailure): void {
    const request = this.#requests.take(id);
    if (!request) return;
    const error = this.#failureError(failure);
    switch (failure.kind) {
      case 'session lost':
        return this.#sessionLost(request, failure, error);
      case 'unauthorized':
        if (failure.status === 401 && failure.inSession && this.#exhausted(request))
          return this.#sessionLost(request, { kind: 'session lost', status: 401 }, error);
        // A token of this request alone says nothing about the connection's.
        if (request.attempts >= MAX_ATTEMPTS || request.authorization) return this.#reject(request, error);
        return this.#unauthorized(request, failure, error);
      case 'unknown era':
        return this.#unknownEra(request, failure.status, failure.text);
      case undefined:
        if (isRefused(failure) && request.timeoutMs !== undefined && !isHandshake(request)) {
          // The state that follows decides what happens to requests that wait.
          if (this.#snapshot.hasTag('serving') || this.#snapshot.hasTag('waiting'))
            return this.#retryLater(request, error);
        }
        this.#retryOrReject(request, error, request.repeatable || error.carriedOut === 'no');
    }
  }

  /**
   * True if no sign-in helps a request that gets 401: there is none, or the newest token was rejected, too. Some servers respond so to
   * a session that they do not know, and one new session shows it.
   */
  #exhausted(request: OutgoingRequest): boolean {
    if (isHandshake(request) || request.authorization || this.#channel?.kind !== 'http') return false;
    return this.#server?.era === 'legacy' && request.attempts === (this.#options.reach.authorization ? 2 : 1);
  }

  /** One new session for all requests: the server carried none of them out, so that each is sent again. */
  #sessionLost(request: OutgoingRequest, failure: LostSession, error: ClientError): void {
    const { status } = failure;
    // Other statuses may mean something else: one new session shows it.
    const most = isGone(status) ? MAX_ATTEMPTS : status === 401 ? 3 : 2;
    if (isHandshake(request) || request.attempts >= most) return this.#reject(request, error);
    const again = error.carriedOut === 'no' || request.repeatable;
    // The session of a stream is the stream.
    if (this.#channel?.kind === 'stream') {
      if (again) this.#wait(request);
      else this.#reject(request, error);
      return this.#gone(
        { reason: 'closed', message: 'the server has forgotten the session', carriedOut: 'unknown' },
        false,
      );
    }
    const first = request.id > this.#sessionStart && this.#snapshot.can({ type: 'session lost' });
    if (!again) this.#reject(request, error);
    else if (first) this.#wait(request);
    else this.#again(request, error);
    if (first) this.#step({ type: 'session lost' });
  }

  #unknownEra(request: OutgoingRequest, status: number, text = ''): void {
    if (request.method === 'server/discover') {
      this.#probed = `HTTP ${status}${text}`;
      return this.#legacyServer();
    }
    if (this.#initializing && request.method === 'initialize' && this.#proposed.refused(text, undefined))
      return this.#initialize();
    if (request.method === 'initialize' && !this.#sse && (status === 400 || status === 404 || status === 405)) {
      // The server may be one of 2024-11-05, with HTTP+SSE (2025-11-25 transports, "Backwards Compatibility").
      if (!this.#snapshot.can({ type: 'other transport' })) return;
      this.#retireChannel();
      const lost = this.#requests.drain();
      this.#sse = true;
      this.#step({ type: 'other transport' });
      return this.#lose(lost, {
        reason: 'closed',
        message: 'the server forgot the session, and accepts no other over this transport',
        carriedOut: 'unknown',
      });
    }
    this.#fail(request, 'not mcp', `the server responded with HTTP ${status}${text}. Check the address`, 'no');
  }

  /** Sends a request again if that is certain to do no harm; else its caller decides. */
  #retryOrReject(request: OutgoingRequest, error: ClientError, harmless: boolean): void {
    const again =
      harmless &&
      request.attempts < 2 &&
      request.timeoutMs !== undefined &&
      error.reason !== 'refused' &&
      error.retryAfterMs === undefined;
    if (again && error.carriedOut !== 'no') request.doubtful = true;
    if (again && this.#snapshot.hasTag('serving')) return this.#transmit(request);
    if (again && this.#snapshot.hasTag('waiting') && !isHandshake(request)) return this.#wait(request);
    this.#reject(request, error);
  }

  #cancel(request: OutgoingRequest, error: Error, why: string): void {
    const waiting = this.#waiting.findIndex((each) => each.request === request);
    if (waiting !== -1) {
      this.#waiting.splice(waiting, 1);
      return request.reject(error);
    }
    if (this.#askable.take((each) => each === request).length > 0) return request.reject(error);
    if (this.#requests.get(request.id) !== request) return;
    this.#requests.take(request.id);
    this.#abandon(request, why);
    request.reject(error);
    this.#settle();
  }

  /** Tells the server that no caller waits any more (MCP cancellation, "Transport-Specific Cancellation"). */
  #abandon(request: OutgoingRequest, why: string): void {
    const channel = this.#channel;
    if (!channel) return;
    if (!this.#options.oneCaller) this.#askable.abandon(request);
    // A server need not know yet what a notification is.
    if (isHandshake(request)) return channel.abandon?.(request.id);
    const modern = this.#server?.era === 'modern';
    if (channel.kind === 'stream' || !modern)
      this.#notify('notifications/cancelled', { requestId: request.id, reason: why });
    channel.abandon?.(request.id);
  }

  #timedOut(request: OutgoingRequest): void {
    // A legacy server may ignore what it does not know. Over HTTP, and to a client without that era, silence shows nothing.
    if (
      request.method === 'server/discover' &&
      this.#probing &&
      this.#channel?.kind === 'stream' &&
      this.#options.settings.eras === 'auto'
    ) {
      // A modern server that is still starting reads the probe first, and answers it before `initialize`.
      this.#requests.putBack(request);
      return this.#step({ type: 'silent' });
    }
    const passed = Math.round(this.#options.system.clock.now() - request.sentAt);
    const waited = passed < 10_000 ? passed : Math.round(passed / 1_000) * 1_000;
    this.#abandon(request, `timed out after ${durationOf(waited)}`);
    const option = request.due >= request.lastDue ? 'maxTimeoutMs' : 'timeoutMs';
    this.#fail(
      request,
      'timed out',
      `no response to ${request.method} within ${durationOf(waited)} (${option})`,
      'unknown',
    );
  }

  // Messages of the server

  #text(text: string, about: RequestId | undefined, status: number | undefined, whole: boolean): void {
    for (const incoming of readMessages(text, about, () => this.#repaired())) {
      // An address that is no MCP endpoint may respond to everything with an error, even as JSON-RPC.
      const request = status === undefined || about === undefined ? undefined : this.#requests.get(about);
      if (request?.method === 'initialize' && incoming.kind === 'response' && (status === 404 || status === 405)) {
        this.#requests.take(request.id);
        this.#unknownEra(request, status);
      } else if (request && status !== undefined && this.#losesSession(request, status, incoming)) {
        this.#channel?.answered?.(request.id);
        this.#requestFailed(request.id, {
          kind: 'session lost',
          status,
          text: `: ${readError(incoming.error).message}`,
        });
      } else this.#incoming(incoming, about, whole);
    }
    const unanswered = whole && about !== undefined ? this.#requests.take(about) : undefined;
    if (!unanswered) return;
    const why = `expected a response with the id of the request, ${unanswered.id}, got another message`;
    this.#fail(unanswered, 'malformed', why, 'yes');
  }

  #repaired(): void {
    if (this.#repairLogged) return;
    this.#repairLogged = true;
    this.#options.log(
      'warning',
      `${this.#target} sent text with half of a surrogate pair, which was replaced by U+FFFD: it cuts text inside of a character. This warning is not repeated`,
    );
  }

  /** A status with a JSON-RPC error may say that the session is unknown. The modern era has no sessions. */
  #losesSession(request: OutgoingRequest, status: number, incoming: Incoming): incoming is ErrorIncoming {
    if (this.#server?.era !== 'legacy' || isHandshake(request)) return false;
    return (
      incoming.kind === 'response' && incoming.error !== undefined && isLostSession(status, readError(incoming.error))
    );
  }

  /** A response that is too long still ends its request. */
  #dropped(envelope: string, bytes: number): void {
    const id = answeredBy(envelope);
    const request = id === undefined ? undefined : this.#requests.take(id);
    if (!request) return;
    const { maxMessageBytes } = this.#options.settings;
    const why = `the response has ${bytes} bytes, more than maxMessageBytes (${maxMessageBytes}). Ask for less, or raise this option of the client`;
    this.#fail(request, 'too long', why, 'yes');
  }

  #incoming(incoming: Incoming, about: RequestId | undefined, whole: boolean): void {
    switch (incoming.kind) {
      case 'response':
        return this.#response(incoming);
      case 'notification':
        return this.#notification(incoming, about);
      case 'request':
        return this.#serverRequest(incoming, about);
      case 'invalid': {
        const { why } = incoming;
        // A stream may still bring the response after a message that cannot be read.
        const id = incoming.id ?? (whole ? about : undefined);
        const request = id === undefined ? undefined : this.#requests.take(id);
        if (id !== undefined) this.#channel?.answered?.(id);
        if (!request) return this.#options.log('warning', `${this.#target} sent a message that cannot be read: ${why}`);
        return this.#fail(request, 'malformed', `the response cannot be read: ${why}`, 'yes');
      }
    }
  }

  #response({ id, result, error }: Extract<Incoming, { kind: 'response' }>): void {
    this.#refusals = 0;
    const request = this.#requests.take(id);
    this.#channel?.answered?.(id);
    // Cancelled, timed out, answered twice, or never sent: no caller waits for it.
    if (!request) return this.#askable.answered(ownId(id));
    if (error !== undefined) {
      const { code, message, data } = readError(error);
      request.reject(new ErrorResponse(this.#target, code, message, data));
    } else {
      this.#taskProgress.responded(request, result);
      request.resolve(result);
    }
    this.#settle();
  }

  #notification({ method, params }: Extract<Incoming, { kind: 'notification' }>, about: RequestId | undefined): void {
    const { client, serverRequests } = this.#options;
    const values = jsonParams(params);
    switch (method) {
      case 'notifications/progress': {
        const { progressToken } = values;
        if (!(typeof progressToken === 'number' || typeof progressToken === 'string')) return;
        if (!isFiniteNumber(values.progress)) return;
        const token = ownId(progressToken);
        const request = this.#requests.get(token);
        if (request) this.#requests.extend(request);
        const listener = request ? request.onProgress : this.#taskProgress.listener(token);
        const total = isFiniteNumber(values.total) ? values.total : undefined;
        const { progress } = values;
        return guarded(() => listener?.({ progress, total, message: textOf(values.message) }));
      }
      case 'notifications/message': {
        const { level, data } = values;
        if (!isLogLevel(level)) return;
        const message = { level, logger: textOf(values.logger), data: isJsonValue(data) ? data : null };
        return guarded(() => this.#listenerOf(level, about)?.(message));
      }
      case 'notifications/cancelled': {
        const { requestId } = values;
        if (typeof requestId !== 'string' && typeof requestId !== 'number') return;
        // The server ends a subscription, or gives up a request of its own.
        const request = this.#requests.get(ownId(requestId));
        if (!request || request.timeoutMs !== undefined) return serverRequests.cancelled(requestId);
        this.#requests.take(request.id);
        return request.reject(this.#error('closed', 'the server ended the subscription', 'yes'));
      }
      default:
        return client.send({ type: 'notification', notification: { method, params: values } });
    }
  }

  #serverRequest(
    { id, method, params }: Omit<Extract<Incoming, { kind: 'request' }>, 'kind'>,
    about: RequestId | undefined,
  ): void {
    if (this.#server?.era === 'modern')
      return this.#options.log(
        'warning',
        `${this.#target} sent the request ${method}, which its revision does not allow. It was ignored`,
      );
    const values = jsonParams(params);
    const { capabilities, oneCaller, serverRequests } = this.#options;
    const call = this.#askable.askedFor(values, about);
    // A repeat would ask once more.
    if (call) call.repeatable = false;
    const ask = canBeAsked(capabilities) ? call?.ask : undefined;
    const certain = !call || !ask || call.id === about || this.#askable.isCertain(call, values);
    if (!oneCaller && ask && call?.id !== about) {
      // Servers ask for roots when they start, too: their calls need not wait for each other.
      if (method !== 'roots/list') this.#askable.takeTurns();
      if (!certain) return this.#self.send({ type: 'reject', id, code: ErrorCode.InternalError, message: UNCERTAIN });
    }
    const position = call && ask && this.#positionOf(call, id);
    serverRequests.serve(
      id,
      method,
      values,
      call && (nameOf(call) ?? call.method),
      this.#self,
      call &&
        ask && {
          call,
          ask: (request, signal) => ask(certain ? request : { ...request, doubtful: true }, signal, position),
        },
    );
  }

  /** The place of a call from which another process continues it. */
  #positionOf({ id }: OutgoingRequest, asked: RequestId): CallPosition | undefined {
    const at = this.#channel?.position?.(id);
    return at && { ...at, id, asked, revision: this.#server?.revision ?? LATEST_LEGACY };
  }

  /** The listener for a log message: of the call whose stream it is, else of the only call. Relayed calls have other callers. */
  #listenerOf(level: LogLevel, about: RequestId | undefined): ((message: ServerLogMessage) => void) | undefined {
    const named = about === undefined ? undefined : this.#requests.get(about);
    const calls = (named ? [named] : this.#requests.values()).filter(({ ask, onLog }) => onLog ?? ask);
    const listening = calls.filter(({ onLog }) => onLog !== undefined);
    if (listening.length === 0) return this.#options.onLog;
    if (calls.length > 1 && !this.#options.oneCaller) return this.#options.onLog;
    return listening.findLast(({ logLevel }) => logLevel === undefined || isSevere(level, logLevel))?.onLog;
  }

  // Ends

  #settle(): void {
    if (this.#snapshot.value === 'draining' && this.#requests.size === 0) this.#step({ type: 'settled' });
    const next = this.#snapshot.hasTag('serving') ? this.#askable.takeNext() : undefined;
    if (next) this.#transmit(next);
  }

  #close(): void {
    const { client, serverRequests } = this.#options;
    this.#waitTimer?.cancel();
    this.#retryTimer?.cancel();
    this.#endSignIn();
    serverRequests.close();
    for (const request of this.#requests.drain()) {
      this.#abandon(request, 'the client closes');
      request.reject(this.#closedError(request.attempts > 0));
    }
    this.#rejectWaiting(this.#closedError());
    this.#retireChannel();
    void Promise.all(this.#closing).then(() => client.send({ type: 'closed' }));
  }

  // Errors

  #error(reason: FailureReason, message: string, carriedOut: CarriedOut, more?: Partial<CallFailure>): ClientError {
    return new ClientError(this.#target, { ...more, reason, message, carriedOut });
  }

  #closedError(sent = false): ClientError {
    return this.#error('closed', 'the client is closed', sent ? 'unknown' : 'no');
  }

  #failureError(failure: ChannelFailure): ClientError {
    switch (failure.kind) {
      case 'session lost': {
        if (isGone(failure.status))
          return this.#error('closed', `the server has forgotten the session (HTTP ${failure.status})`, 'no');
        const message = `the server responded with HTTP ${failure.status}${failure.text ?? ''}`;
        // A server may have begun before it failed. One that is not available has not (RFC 9110 section 15.6.4).
        return failure.status >= 500 && failure.status !== 503
          ? this.#error('unreachable', message, 'unknown')
          : this.#error('refused', message, 'no');
      }
      case 'unauthorized':
        return this.#error(
          failure.status === 403 ? 'forbidden' : 'unauthorized',
          `the server rejected the token${saidOf(failure)}`,
          'no',
          { challenge: this.#challengeOf(failure) },
        );
      case 'unknown era':
        return this.#error('not mcp', `the server responded with HTTP ${failure.status}`, 'no');
      case undefined:
        return new ClientError(this.#target, failure);
    }
  }

  #challengeOf({ status, challenge }: Pick<Unauthorized, 'status' | 'challenge'>): Challenge | undefined {
    const { resource } = this.#options.reach;
    return resource && { status, header: challenge, resource };
  }

  /** @returns the record; 0 without a viewer */
  #recordWire(direction: 'in' | 'out', text: string): number {
    const { inspection } = this.#options.system;
    if (!inspection.full) return 0;
    return inspection.record({ type: 'wire', connection: this.#options.address, direction, text });
  }
}

/** The error for a question that no caller gets. A tool that fails with it shows it to its model. */
const UNCERTAIN =
  'several clients use this connection, and it is not certain whose call asks. Call again when no other call runs: calls now wait up to 2 s for each other, and a call that was cancelled may ask for another minute';

/** True if nothing listens at the address, so that the server has received nothing. */
function isRefused({ carriedOut, cause }: CallFailure): boolean {
  return carriedOut === 'no' && isObject(cause) && cause.code === 'ECONNREFUSED';
}

function isHandshake({ method }: OutgoingRequest): boolean {
  return method === 'initialize' || method === 'server/discover';
}

/** The name, URI or task of a request, for headers and people. */
function nameOf({ method, params }: OutgoingRequest): string | undefined {
  const member = NAMED[method];
  return member === undefined ? undefined : textOf(params?.[member]);
}

/** A request of the connection itself, without a caller. */
export function quiet(method: string, params: JsonObject, timeoutMs: number): OutgoingRequest {
  const ignore = (): void => {};
  const maxTimeoutMs = timeoutMs;
  const unsent = { id: 0, attempts: 0, due: 0, lastDue: 0, sentAt: 0, doubtful: false };
  return { ...unsent, method, params, timeoutMs, maxTimeoutMs, repeatable: true, resolve: ignore, reject: ignore };
}

/** True if a message of this level is at least as severe as the wanted one. */
function isSevere(level: LogLevel, wanted: LogLevel): boolean {
  return LOG_LEVELS.indexOf(level) >= LOG_LEVELS.indexOf(wanted);
}

/** A listener of the program must not harm the connection: its error surfaces as an unhandled rejection of its own. */
function guarded(listener: () => void): void {
  try {
    listener();
  } catch (error) {
    void Promise.reject(error);
  }
}

/** The words of the server beside a 401 or 403: the challenge names a missing scope, and the body often the cause. */
function saidOf({ status, challenge, text }: Pick<Unauthorized, 'status' | 'challenge' | 'text'>): string {
  return ` with HTTP ${status}${challenge === undefined ? '' : ` (${challenge.slice(0, 200)})`}${text}`;
}

/** A value that is JSON by its type's members. */
function jsonOf(value: object): JsonObject {
  const members: Record<string, JsonObject[string]> = {};
  for (const [key, member] of Object.entries(value)) if (isJsonValue(member)) members[key] = member;
  return members;
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined;
}

/** JSON can contain numbers that become Infinity, such as 1e999. */
function isFiniteNumber(value: unknown): value is number {
  return typeof value === 'number' && Number.isFinite(value);
}
