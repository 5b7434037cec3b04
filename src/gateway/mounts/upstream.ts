/** One upstream of a mount with its connections: one for all calls, or one for each owner of calls. A call or a listing opens each. */

import { isDeepStrictEqual } from 'node:util';
import type { Authorization } from '../../client/authorization.ts';
import { ClientError } from '../../client/client-errors.ts';
import type { ConnectOptions, ConnectTarget } from '../../client/client-options.ts';
import type { ConnectedClient } from '../../client/connected-client.ts';
import type { ServerInMemory } from '../../client/in-memory.ts';
import { type ClientHost, openClient } from '../../client/open-client.ts';
import type { CallPosition } from '../../client/relayed-request.ts';
import type { Context } from '../../core/execution/context.ts';
import type { CallOwner } from '../../core/execution/request-context.ts';
import { type Clock, systemClock, type Timer, within } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { isExcess, type Quota, type Reservation } from '../../core/kernel/quota.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { VIEWS_EXTENSION } from '../../core/protocol/extensions.ts';
import { isObject, type JsonObject } from '../../core/protocol/json.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { Era } from '../../core/protocol/revisions.ts';
import type { ClientCapabilities } from '../../core/protocol/types.ts';
import { PAGE_TYPE } from '../../core/protocol/views.ts';
import type { DirectUpstream } from './direct-target.ts';
import type { RelayConnection } from './event-relay.ts';
import type { MountSettings } from './mount-options.ts';
import type { UpstreamSignIn } from './sign-ins.ts';
import { offeredPage } from './uris.ts';

/** Follows the connections on which calls run. */
export interface ConnectionFollower {
  opened(client: ConnectedClient, owner: CallOwner): void;
  closed(client: ConnectedClient): void;
}

export interface UpstreamOptions
  extends Pick<
    MountSettings,
    'share' | 'maxUpstreamConnections' | 'maxUpstreamInFlight' | 'upstreamWaitMs' | 'upstreamIdleMs'
  > {
  /** The name of the mount. */
  readonly name: string;
  /** Undefined for a direct upstream, which has no connections. */
  readonly target: ConnectTarget | ServerInMemory | undefined;
  readonly direct?: DirectUpstream | undefined;
  /** Identifies the target without its secrets; undefined for a server in this process. */
  readonly key?: string | undefined;
  readonly connect: ConnectOptions;
  /** The sign-ins at an upstream with an address. */
  readonly signIn?: UpstreamSignIn | undefined;
  /** The server of which the connections are a part. Default: each has an actor system of its own. */
  readonly host?: Pick<ClientHost, 'system' | 'parent'> | undefined;
  /** Connections of all upstreams of the server: `limits.maxUpstreamConnections`. */
  readonly quota: Quota;
}

/** Maximum number of connections of one owner: one for each set of capabilities that its clients declare. */
const MAX_OF_OWNER = 8;

/** A connection, from its opening to its end. */
interface Link {
  readonly capabilities: ClientCapabilities;
  /** Undefined for the connection of the catalogue. */
  owner: CallOwner | undefined;
  /** Rejects if the connection cannot be opened. */
  readonly opening: Promise<ConnectedClient>;
  client: ConnectedClient | undefined;
  /** Ends the opening. */
  readonly abort: AbortController;
  usedAt: number;
  /** The announcements of other roots that the upstream has received. */
  rootsChanges: number;
  /** The upstream has asked for roots when they were not known. */
  rootsWanted: boolean;
  readonly slot: Reservation;
}

export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #clock: Clock;
  /** The connection for the catalogue. */
  #shared: Link | undefined;
  /** The era of the upstream, as the newest connection found it, or an earlier process. */
  #era: Era | undefined;
  /** The only client of the server: the catalogue of a legacy upstream is read on its connection. */
  #only: CallOwner | undefined;
  /** By the key of the owner. An owner whose clients declare different capabilities has several. */
  readonly #owned = new Map<string, Link[]>();
  readonly #roots = new Map<string, JsonObject>();
  readonly #closing = new Set<Promise<void>>();
  #follower: ConnectionFollower | undefined;
  #count = 0;
  #sweep: Timer | undefined;
  #closed = false;

  constructor(options: UpstreamOptions) {
    this.#options = options;
    this.#clock = options.connect.clock ?? systemClock;
  }

  /** `idle`, `closed`, or the state of the shared connection (docs/client.md, "Connections"). */
  get state(): string {
    if (this.#closed) return 'closed';
    if (this.direct) return this.direct.state;
    const link = this.#shared ?? this.#owned.get(this.#only?.key ?? '')?.[0];
    return link?.client?.state ?? (link ? 'connecting' : 'idle');
  }

  /** The upstream itself, if it answers without MCP. Nothing else of this object is used then, except its end. */
  /** Identifies its target. */
  get key(): string | undefined {
    return this.#options.key;
  }

  get direct(): DirectUpstream | undefined {
    return this.#options.direct;
  }

  /** The number of connections. */
  get connections(): number {
    return this.#count;
  }

  /** The server has one client: its connection serves the catalogue, too. Without effect once another connection does. */
  serves(only: CallOwner): void {
    const { share, signIn } = this.#options;
    // The lists behind a sign-in may be read with other credentials than those of calls.
    if (share !== 'everyone' && signIn?.grants.serveLists(only.principal) !== false) this.#only ??= only;
  }

  /** The era of the upstream when it was listed last: a connection need not ask for it. */
  expect(era: Era | undefined): void {
    this.#era ??= era;
  }

  /**
   * The connection for the catalogue and its changes. It is that of the only client, if there is one. Otherwise no call of an
   * owner that can be asked uses it if the upstream is legacy.
   *
   * @throws {ClientError}
   */
  async catalogue(): Promise<ConnectedClient> {
    if (this.#closed) throw this.#closedError();
    if (!this.#shared && this.#only) return this.for(this.#only);
    return this.#connected(this.#share());
  }

  #share(): Link {
    const { share } = this.#options;
    // Calls use the connection for the catalogue only if it is that of all: the upstream must not ask on it.
    const declared = share === 'everyone' ? {} : { ...ASKABLE, extensions: VIEWS };
    this.#shared ??= this.#open(undefined, declared);
    return this.#shared;
  }

  /** Waits for a connection. It may have found another era since it was opened. */
  async #connected(link: Link): Promise<ConnectedClient> {
    const client = link.client ?? (await this.#within(link.opening));
    this.#era = client.server.era;
    return client;
  }

  /**
   * The connection for a call of this owner. A modern upstream shares one connection. A legacy one declares the
   * capabilities of its client for the whole connection, so that each owner has its own.
   *
   * @throws {ClientError} `overloaded`, `unreachable` and others, always with `carriedOut: 'no'`
   */
  async for(owner: CallOwner): Promise<ConnectedClient> {
    if (this.#closed) throw this.#closedError();
    // A session with a legacy upstream belongs to the principal whose token opened it.
    const separate = this.#options.signIn?.grants.separate === true;
    if (this.#options.share === 'everyone' && !separate) return this.#connected(this.#share());
    // An upstream of unknown era gets one process for the catalogue and the only client.
    const asks = this.#only?.key !== owner.key || this.#shared !== undefined;
    if ((this.#era === undefined && asks) || this.#era === 'modern') {
      const shared = await this.#connected(this.#share());
      if (this.#era === 'modern') return shared;
    }
    const links = this.#owned.get(owner.key) ?? [];
    const known = links.find(
      ({ capabilities }) => capabilities === owner.capabilities || isDeepStrictEqual(capabilities, owner.capabilities),
    );
    if (known) {
      known.usedAt = this.#clock.now();
      this.#announceRoots(known, owner);
      return known.client ?? this.#within(known.opening);
    }
    return this.#connected(this.#own(owner));
  }

  /** The principal whose grant reads events for a caller; undefined if the credentials of the mount read them for all. */
  readerOfEvents(principal: string): string | undefined {
    return this.#options.signIn?.grants.separate ? principal : undefined;
  }

  /**
   * A connection on which events are read, whether or not a client is there.
   *
   * @param principal as {@link readerOfEvents} returns it
   * @throws {ClientError}
   */
  async forEvents(principal: string | undefined): Promise<RelayConnection> {
    if (principal === undefined) return { client: await this.catalogue(), authorization: undefined, target: this.key };
    const owner = { key: `events/${principal}`, capabilities: {}, principal, session: undefined, several: false };
    const client = await this.for(owner);
    // The connection of a legacy upstream has the grant of its owner.
    const authorization = client.server.era === 'modern' ? this.#options.signIn?.grants.of(principal) : undefined;
    return { client, authorization, target: this.key };
  }

  /** True if each principal signs in at the upstream. */
  get signsIn(): boolean {
    return this.#options.signIn?.grants.personal === true;
  }

  /** True if the catalogue may be read with the grant of this principal. */
  readsCatalogue(principal: string): boolean {
    return this.#options.signIn?.grants.mayRead(principal) === true;
  }

  /**
   * Does a part of a call that needs the upstream, with the authorization of its caller, who signs in if the upstream demands
   * it. The part is repeated after a sign-in.
   *
   * @param work passes the authorization to `Client.relay`; undefined: the connection's own
   * @throws {SignInRequired} if the caller does not sign in; else what `work` throws
   */
  authorized<T>(ctx: Context, work: (authorization: Authorization | undefined) => Promise<T>): Promise<T> {
    const { signIn } = this.#options;
    return signIn ? signIn.run(ctx, work) : work(undefined);
  }

  /** True if the caller was signing in when an earlier run of the call ended, so that the upstream had carried out nothing. */
  signingIn(earlierSteps: JsonObject): boolean {
    return this.#options.signIn?.pending(earlierSteps) === true;
  }

  /**
   * A connection for one call that another process has begun, in its session. Release it when the call has ended.
   *
   * @throws {ClientError}
   */
  async resume(
    owner: CallOwner,
    position: CallPosition,
  ): Promise<{ readonly client: ConnectedClient; release(): void }> {
    if (this.#closed) throw this.#closedError();
    // The session is that of the other process, so that no other call of the owner uses this connection.
    const key = `${owner.key} ${position.session} ${position.id}`;
    const { opening } = this.#own({ ...owner, key, several: false }, position);
    return { client: await this.#within(opening), release: () => this.released(key) };
  }

  /** Receives the connections to a legacy upstream that calls of owners use, those that are open already first. */
  follow(follower: ConnectionFollower): void {
    this.#follower = follower;
    for (const link of this.#links)
      if (link.client && link.owner && link.client.server.era === 'legacy' && !this.#isOnly(link))
        follower.opened(link.client, link.owner);
  }

  /** Keeps the roots of an owner that is one client, for a legacy upstream that asks for them outside of a call. */
  keepRoots({ key, several }: CallOwner, roots: JsonObject): void {
    if (this.#owned.has(key) && !several) this.#roots.set(key, roots);
  }

  /** The owner has ended: its connections close. */
  released(ownerKey: string): void {
    if (this.#only?.key === ownerKey) this.#only = undefined;
    const links = this.#owned.get(ownerKey);
    if (!links) return;
    this.#owned.delete(ownerKey);
    this.#roots.delete(ownerKey);
    for (const link of links) this.#end(link);
  }

  /**
   * Closes all connections. Idempotent.
   *
   * @param drainMs milliseconds for the calls in flight. Default: 2,000
   */
  async close(drainMs?: number): Promise<void> {
    this.#options.signIn?.close();
    this.#closed = true;
    this.#sweep?.cancel();
    const links = [...this.#links, ...(this.#shared ? [this.#shared] : [])];
    this.#owned.clear();
    this.#roots.clear();
    this.#shared = undefined;
    for (const link of links) this.#end(link, drainMs);
    await Promise.all([...this.#closing, this.direct?.close()]);
  }

  // Owners

  /** The connections of owners. */
  get #links(): readonly Link[] {
    return [...this.#owned.values()].flat();
  }

  #own(owner: CallOwner, resumes?: CallPosition): Link {
    const link = this.#open(owner, owner.capabilities, resumes);
    this.#owned.set(owner.key, [...(this.#owned.get(owner.key) ?? []), link]);
    this.#sweepLater();
    return link;
  }

  /** Announces roots that the session has changed since its last call, or that the upstream has asked for in vain. */
  #announceRoots(link: Link, { key, session, capabilities: { roots } }: CallOwner): void {
    const changed = session !== undefined && session.rootsChanges !== link.rootsChanges;
    const wanted = link.rootsWanted && isObject(roots) && roots.listChanged === true;
    link.rootsWanted = false;
    if (changed) {
      link.rootsChanges = session.rootsChanges;
      this.#roots.delete(key);
    }
    if (changed || wanted) link.client?.rootsChanged();
  }

  /**
   * The roots for an upstream that asks outside of a call: what the owner has given during one.
   *
   * @throws {ProtocolError} if it has given none: an empty list would be remembered as its roots
   */
  #rootsFor(link: Link): ReturnType<typeof rootsOf> {
    if (!link.owner) return [];
    const kept = this.#roots.get(link.owner.key);
    if (kept) return rootsOf(kept);
    link.rootsWanted = true;
    throw new ProtocolError(
      ErrorCode.InternalError,
      'the roots of this client are not known yet: ask again during one of its calls',
    );
  }

  // Connections

  /** @throws {ClientError} if a limit is reached */
  #open(owner: CallOwner | undefined, capabilities: ClientCapabilities, resumes?: CallPosition): Link {
    const room = this.#makeRoom(owner);
    const { name, quota, target, connect, host, maxUpstreamInFlight, signIn, upstreamWaitMs } = this.#options;
    if (target === undefined) throw this.#error('unreachable', 'it has no connections');
    const auth = (owner && signIn?.grants.of(owner.principal)) ?? signIn?.grants.shared;
    const slot = quota.reserve(owner?.principal ?? name);
    if (isExcess(slot)) throw this.#error('overloaded', slot.message);
    this.#count += 1;
    const options: ConnectOptions = {
      ...connect,
      ...(auth ? { auth } : {}),
      ...(resumes ? { eras: 'legacy' } : {}),
      maxInFlight: maxUpstreamInFlight,
      waitMs: upstreamWaitMs,
      ...(capabilities.roots ? { roots: () => this.#rootsFor(link) } : {}),
    };
    const inside = host && {
      ...host,
      era: this.#era,
      label:
        owner === undefined ? name : `${name} for ${owner.principal === ANONYMOUS ? 'one client' : owner.principal}`,
    };
    const abort = new AbortController();
    const link: Link = {
      capabilities,
      owner,
      opening: room.then(() =>
        openClient(target, options, capabilities, owner?.several === false, inside, resumes, abort.signal),
      ),
      client: undefined,
      abort,
      usedAt: this.#clock.now(),
      rootsChanges: owner?.session?.rootsChanges ?? 0,
      rootsWanted: false,
      slot,
    };
    link.opening.then(
      (client) => {
        link.client = client;
        this.#era = client.server.era;
        // The first connection of the only client has reached a modern upstream: it serves everything.
        if (this.#era === 'modern' && this.#isOnly(link)) {
          this.#disown(link);
          link.owner = undefined;
          this.#shared = link;
        }
        client.pageCompleted = (id) =>
          link.owner?.session?.mailbox.send({ type: 'page completed', elicitationId: offeredPage(name, id) });
        if (link.owner && link.usedAt !== REMOVED && client.server.era === 'legacy' && !this.#isOnly(link))
          this.#follower?.opened(client, link.owner);
      },
      () => {
        if (this.#shared === link) this.#shared = undefined;
        // The era that an earlier process has found may be wrong.
        this.#era = undefined;
        this.#remove(link);
      },
    );
    return link;
  }

  /**
   * If an owner has all its connections, or all are open, the one that was unused longest closes first.
   *
   * @throws {ClientError} if each of them has a call in flight
   */
  #makeRoom(owner: CallOwner | undefined): Promise<void> {
    const { maxUpstreamConnections: most } = this.#options;
    const own = (owner && this.#owned.get(owner.key)) ?? [];
    const full = own.length >= MAX_OF_OWNER;
    if (!full && this.#count < most) return Promise.resolve();
    const [oldest] = (full ? own : this.#links)
      .filter((link) => link.client && !link.client.busy && !this.#isOnly(link))
      .sort((one, other) => one.usedAt - other.usedAt);
    if (oldest) return this.#end(oldest);
    throw this.#error(
      'overloaded',
      full
        ? `${MAX_OF_OWNER} connections of ${owner?.principal} are in use, each with other capabilities of clients. Call again when a call has ended`
        : `${most} connections to it are in use. Call again when a call has ended; the option is maxUpstreamConnections`,
    );
  }

  /** Closes a connection. */
  #end(link: Link, drainMs?: number): Promise<void> {
    this.#remove(link);
    link.abort.abort();
    const closed = link.client ? link.client.close(drainMs) : link.opening.then((client) => client.close());
    const ended = closed.catch(() => {}).then(() => void this.#closing.delete(ended));
    this.#closing.add(ended);
    return ended;
  }

  #remove(link: Link): void {
    if (link.usedAt === REMOVED) return;
    link.usedAt = REMOVED;
    this.#count -= 1;
    if (link.client) this.#follower?.closed(link.client);
    link.slot.release();
    this.#disown(link);
  }

  /** Takes a connection from its owner. */
  #disown(link: Link): void {
    const key = link.owner?.key ?? '';
    const others = this.#owned.get(key)?.filter((each) => each !== link) ?? [];
    if (others.length > 0) this.#owned.set(key, others);
    else {
      this.#owned.delete(key);
      this.#roots.delete(key);
    }
  }

  /** True for the connection of the only client, on which the catalogue is read. */
  #isOnly(link: Link): boolean {
    return this.#only !== undefined && link.owner?.key === this.#only.key && !this.#shared;
  }

  /** Closes the connections of owners that have been unused for `idleMs`. */
  #sweepLater(): void {
    const { upstreamIdleMs: idleMs } = this.#options;
    this.#sweep ??= this.#clock.after(idleMs, () => {
      this.#sweep = undefined;
      const now = this.#clock.now();
      for (const link of this.#links) {
        if (link.client?.busy) link.usedAt = now;
        else if (link.usedAt + idleMs <= now && !this.#isOnly(link)) this.#end(link);
      }
      if (this.#owned.size > 0) this.#sweepLater();
    });
  }

  /** Waits for a connection, at most `waitMs`. */
  #within(opening: Promise<ConnectedClient>): Promise<ConnectedClient> {
    const { upstreamWaitMs: waitMs } = this.#options;
    const why = `no connection within ${durationOf(waitMs)} (upstreamWaitMs)`;
    return within(opening, this.#clock, waitMs, () => this.#error('unreachable', why));
  }

  #error(reason: 'overloaded' | 'unreachable' | 'closed', message: string): ClientError {
    return new ClientError(this.#options.name, { reason, message, carriedOut: 'no' });
  }

  #closedError(): ClientError {
    return this.#error('closed', 'the mount is closed');
  }
}

/** Declared for the catalogue: some servers list pages, and the tools of pages, only for clients that show them. */
const VIEWS = { [VIEWS_EXTENSION]: { mimeTypes: [PAGE_TYPE] } } as const;

/** Declared for the catalogue of a legacy upstream: some servers list certain tools only for clients that can be asked. */
const ASKABLE: ClientCapabilities = {
  elicitation: { form: {}, url: {} },
  sampling: { tools: {} },
  roots: { listChanged: true },
};

/** Of a connection that is no longer counted. */
const REMOVED = -1;

function rootsOf(kept: JsonObject): { readonly uri: string; readonly name?: string }[] {
  const listed = Array.isArray(kept.roots) ? kept.roots : [];
  return listed.flatMap((root) => {
    if (!isObject(root) || typeof root.uri !== 'string') return [];
    return [typeof root.name === 'string' ? { uri: root.uri, name: root.name } : { uri: root.uri }];
  });
}
