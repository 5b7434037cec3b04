/**
 * The actor of a mount: lists its upstream, stores the catalogue, and offers it in the registries. Its chart decides what is
 * offered and when the upstream is listed; calls step no chart.
 */

import { isDeepStrictEqual } from 'node:util';
import { type MountEvent, mountMachine } from '../../../machines/mount.ts';
import { ClientError } from '../../client/client-errors.ts';
import type { ConnectedClient } from '../../client/connected-client.ts';
import type { Changes } from '../../client/server-changes.ts';
import type { CallOwner } from '../../core/execution/request-context.ts';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../../core/kernel/actor.ts';
import { pathOf } from '../../core/kernel/charts/paths.ts';
import { type Timer, within } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { Charted, Facts } from '../../core/kernel/inspection/records.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import { initial, stepMachine } from '../../core/kernel/step-machine.ts';
import { throttledLog } from '../../core/kernel/throttled-log.ts';
import type { ListKind } from '../../core/messages/change-notices.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { SubscriptionsMail } from '../../core/messages/subscription-messages.ts';
import { EVENTS_EXTENSION, settingsIn } from '../../core/protocol/extensions.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import type { Store } from '../../core/store/store.ts';
import { CatalogueRecord } from './catalogue-record.ts';
import { EventRelays, type TopicsOfMounts } from './event-relays.ts';
import type { MountSettings } from './mount-options.ts';
import {
  type AnnouncedCapabilities,
  MountedElements,
  type MountRegistrations,
  type Waiter,
} from './mounted-elements.ts';
import type { SkillsOfMounts } from './mounted-skills.ts';
import type { NameClaims } from './name-claims.ts';
import { OwnerViews, type ViewedCatalogue } from './owner-views.ts';
import { type JudgedCatalogue, PinGuard } from './pin-guard.ts';
import { FilePins, StoredPins } from './pin-record.ts';
import type { ReplaceableUpstream } from './replaceable-upstream.ts';
import type { Upstream } from './upstream.ts';
import { freshMsOf, listUpstream, type UpstreamCatalogue, withCertainEra } from './upstream-catalogue.ts';
import { WatchedResources } from './watched-resources.ts';

export type MountMail =
  /**
   * The store is open. Resolves when the stored catalogue is offered, or none is there. `expects`: nothing is listed before the
   * only client of the server is there.
   */
  | { readonly type: 'start'; readonly store: Store; readonly expects: boolean; readonly reply: Waiter }
  /** The only client of the server is there. */
  | { readonly type: 'client' }
  | {
      readonly type: 'restored';
      readonly stored: { readonly at: number; readonly judged: ViewedAndJudged } | undefined;
    }
  /** A listing has ended. Listings are counted: the outcome of one that took too long is dropped. */
  | { readonly type: 'listed'; readonly listing: number; readonly catalogue: ViewedAndJudged }
  | { readonly type: 'failed'; readonly listing: number; readonly error: unknown }
  /** The upstream has changed. `client`: the connection of an owner that reports it. */
  | { readonly type: 'changed'; readonly client?: ConnectedClient | undefined }
  /** The connection of an owner was listed; undefined: it could not be. */
  | {
      readonly type: 'owner listed';
      readonly client: ConnectedClient;
      readonly catalogue: UpstreamCatalogue | undefined;
    }
  | { readonly type: 'due' }
  /** Resolves with the end of the current listing, or of the next one. */
  | { readonly type: 'refresh'; readonly reply: Waiter }
  /** Resolves when a catalogue is offered, or the first listing has failed. */
  | { readonly type: 'first'; readonly reply: Waiter }
  /** Clients begin or cease to watch a resource, by its offered URI. */
  | { readonly type: 'listened' | 'unlistened'; readonly uri: string }
  | { readonly type: 'approve'; readonly element: string | undefined; readonly reply: Waiter<readonly string[]> }
  /** The catalogue was compared with other pins, or with other views of owners; `moved`: it is that of another upstream. */
  | { readonly type: 'judged' | 'moved'; readonly judged: ViewedAndJudged; readonly done: () => void }
  /** Other options, or another upstream, which was listed. */
  | { readonly type: 'change'; readonly change: ChangedMount; readonly reply: Waiter }
  /** The data of a principal is deleted. */
  | { readonly type: 'forget'; readonly principal: string; readonly reply: Waiter }
  | { readonly type: 'close'; readonly reply: Waiter };

/** A catalogue with the views of owners, and the part of it that may be offered. */
interface ViewedAndJudged extends JudgedCatalogue, ViewedCatalogue {
  /** The catalogue of the mount's own connection, as the upstream sent it. */
  readonly shared: UpstreamCatalogue;
  /** The version of the views. */
  readonly version: number;
}

/** A change that was checked, and another upstream with its first catalogue. */
interface ChangedMount {
  readonly settings: MountSettings;
  readonly moved:
    | {
        readonly upstream: Upstream;
        readonly targetKey: string | undefined;
        /** Undefined for a direct upstream. */
        readonly client: ConnectedClient | undefined;
        readonly catalogue: UpstreamCatalogue;
      }
    | undefined;
}

/** The parts of a server that the actors of its mounts use. */
export interface MountServer {
  readonly system: ActorSystem;
  readonly registrations: MountRegistrations;
  /** Serves the skills of upstreams. */
  readonly skills: SkillsOfMounts;
  /** The event types of the server. Created with the first one. */
  topics(): TopicsOfMounts;
  readonly capabilities: AnnouncedCapabilities;
  readonly gatherMs: number;
  /** Notifies the clients that watch a resource. */
  readonly subscriptions: Mailbox<SubscriptionsMail>;
}

interface MountActorOptions extends MountServer {
  readonly name: string;
  /** Identifies the target: a catalogue of another target is not offered. */
  readonly targetKey: string | undefined;
  readonly settings: MountSettings;
  readonly upstream: ReplaceableUpstream;
  readonly claims: NameClaims;
  /** Opens the store. */
  store(): Promise<Store>;
  /** Shows the tools by search alone, or not any more. */
  showBySearch(shown: boolean): Promise<void>;
  /** 0 to 1, for back-off. */
  readonly random: () => number;
}

const BACK_OFF = { fromMs: 1_000, toMs: 60_000 } as const;
/** A server that announces a change at each listing is listed 12 times a minute. */
const PACE = { listings: 20, everyMs: 5_000 } as const;
/** The shares of `staleMs` after which a catalogue is listed again although no change was announced. */
const RENEWALS = 24;
/** Milliseconds that a closing mount waits for the store. */
const CLOSE_MS = 2_000;

/** @throws {DefinitionError} for invalid names */
export function spawnMount(options: MountActorOptions): Actor<MountMail> {
  return spawn(
    { kind: 'mount', address: `mount/${options.name}`, label: options.name },
    options.system,
    (self) => new MountActor(options, self),
  );
}

class MountActor implements Behaviour<MountMail> {
  #options: MountActorOptions;
  readonly #self: Mailbox<MountMail>;
  readonly #elements: MountedElements;
  #record: CatalogueRecord;
  readonly #watched: WatchedResources;
  readonly #relays: EventRelays;
  /** Resources that clients watch, and that no catalogue of this mount had yet. */
  readonly #unknown = new Set<string>();
  #store: Store | undefined;
  #guard: PinGuard | undefined;
  /** The catalogue as the upstream sent it. */
  #catalogue: UpstreamCatalogue | undefined;
  #snapshot;
  #failure: unknown;
  #listings = 0;
  #timer: Timer | undefined;
  #late: Timer | undefined;
  #restoring: Waiter | undefined;
  #waiters: Waiter[] = [];
  /** The callers that wait until a catalogue is offered. */
  #first: Waiter[] = [];
  /** The connection of the catalogue, and the changes that it reports. */
  #changes: { readonly client: ConnectedClient; readonly changes: Changes } | undefined;

  /** The changes that connections to a legacy upstream report: it may announce what a call changes only there. */
  readonly #changesOfOwners = new Map<ConnectedClient, { readonly owner: CallOwner; readonly changes: Changes }>();
  readonly #views = new OwnerViews();
  /** The connections of owners that have reported a change, and were not listed since. */
  readonly #changed = new Set<ConnectedClient>();
  /** The lists of owners that differ from those before, to announce when they are offered. */
  #unannounced: { readonly owner: CallOwner; readonly lists: readonly ListKind[] }[] = [];

  constructor(options: MountActorOptions, self: Mailbox<MountMail>) {
    const { name, targetKey, system, settings, gatherMs } = options;
    this.#options = options;
    this.#self = self;
    this.#relays = new EventRelays({
      ...{ mount: name, upstream: options.upstream, clock: system.clock, most: settings.maxEventRelays },
      ...{ log: throttledLog(system.log, system.clock), store: options.store, topics: options.topics },
    });
    this.#elements = new MountedElements({
      ...options,
      ...{ mount: name, clock: system.clock, log: system.log, relays: this.#relays },
    });
    this.#watched = new WatchedResources({
      ...{ upstream: options.upstream, clock: system.clock, gatherMs },
      log: (level, message, fields) => system.log(level, `mount "${name}": ${message}`, fields),
      updated: (uri) => options.subscriptions.send({ type: 'resource updated', uri: this.#elements.offeredUri(uri) }),
    });
    options.upstream.follow({
      opened: (client, owner) => {
        this.#watched.opened(client);
        if (!this.#closed) this.#changesOfOwners.set(client, { owner, changes: this.#listChanges(client, client) });
      },
      closed: (client) => {
        this.#watched.closed(client);
        this.#changesOfOwners.get(client)?.changes.end();
        if (this.#catalogue) this.#noteView(client, this.#catalogue);
        this.#changesOfOwners.delete(client);
        this.#changed.delete(client);
        if (this.#views.delete(client) && !this.#closed) void this.#judgeAgain();
      },
    });
    this.#record = new CatalogueRecord({ mount: name, targetKey, clock: system.clock, file: settings.catalogueFile });
    this.#snapshot = initial(mountMachine, {
      ...{ backOff: BACK_OFF, pace: PACE, gatherMs },
      staleMs: settings.staleMs,
    });
  }

  // For the inspector

  state(): string {
    return pathOf(this.#snapshot);
  }

  chart(): Charted {
    return { machine: mountMachine, snapshot: this.#snapshot };
  }

  facts(): Facts {
    const { failures, listedAt } = this.#snapshot.context;
    const { tools = 0, resources = 0, prompts = 0, events = 0, problems = [] } = this.#elements.offered ?? {};
    return {
      upstream: this.#options.upstream.current.state,
      ...{ tools, resources, prompts, events, failures, problems, 'watched resources': this.#watched.size },
      ...(events > 0 && { 'subscriptions to events': this.#relays.size }),
      ...(listedAt === 0 ? {} : { 'ms since its listing': this.#options.system.clock.date() - listedAt }),
      ...(this.#failure === undefined ? {} : { 'last failure': messageOf(this.#failure) }),
    };
  }

  // Mail

  receive(mail: MountMail): void {
    const { system } = this.#options;
    switch (mail.type) {
      case 'start':
        if (!this.#snapshot.can({ type: 'start', expects: mail.expects })) return mail.reply.resolve();
        this.#step({ type: 'start', expects: mail.expects });
        this.#restoring = mail.reply;
        return this.#restore(mail.store);
      case 'restored':
        return this.#restored(mail.stored);
      case 'listed':
        if (mail.listing === this.#listings) this.#listed(mail.catalogue, 'listed');
        return;
      case 'failed':
        if (mail.listing !== this.#listings) return;
        this.#failed(mail.error);
        this.#step({ type: 'failed', at: system.clock.date(), jitter: this.#options.random() });
        this.#listOwners();
        return this.#offerSignIn(mail.error);
      case 'changed':
        if (mail.client) this.#changed.add(mail.client);
        return this.#step({ type: 'changed' });
      case 'owner listed':
        return this.#ownerListed(mail.client, mail.catalogue);
      case 'client':
      case 'due':
        return this.#step(mail);
      case 'refresh':
        if (this.#closed) return mail.reply.reject(this.#closedError());
        this.#waiters.push(mail.reply);
        return this.#step({ type: 'refresh' });
      case 'first':
        if (this.#closed) return mail.reply.reject(this.#closedError());
        if (this.#snapshot.hasTag('offering')) return mail.reply.resolve();
        // The next attempt may be a minute away.
        if (this.#snapshot.context.failures > 0 && !this.#snapshot.hasTag('listing'))
          return mail.reply.reject(this.#failure);
        this.#first.push(mail.reply);
        return;
      case 'listened':
      case 'unlistened':
        if (this.#closed) return;
        return this.#listens(mail.uri, mail.type === 'listened');
      case 'approve':
        return this.#approve(mail.element, mail.reply);
      case 'judged':
        // A later catalogue was compared with the same pins, or later ones.
        if (mail.judged.shared === this.#catalogue && !this.#closed) this.#offer(mail.judged);
        return mail.done();
      case 'moved':
        if (!this.#closed) this.#listed(mail.judged, 'moved');
        return mail.done();
      case 'change':
        return this.#change(mail.change, mail.reply);
      case 'forget':
        return void this.#relays.forget(mail.principal).then(mail.reply.resolve, mail.reply.reject);
      case 'close':
        return this.#close(mail.reply);
    }
  }

  crashed(mail: MountMail, error: unknown): void {
    this.#options.system.incident(`mount/${this.#options.name}`, error);
    if ('reply' in mail) mail.reply.reject(error);
    else if ('done' in mail) mail.done();
    else if (mail.type === 'listed') this.#self.send({ type: 'failed', listing: mail.listing, error });
  }

  // The chart

  #step(event: MountEvent): void {
    const before = this.#snapshot;
    const recorder = { inspection: this.#options.system.inspection, actor: `mount/${this.#options.name}` };
    this.#snapshot = stepMachine(mountMachine, before, event, recorder) ?? before;
    if (before !== this.#snapshot && this.state() !== pathOf(before))
      this.#entered(before.hasTag('listing'), before.hasTag('offering'));
  }

  /** Acts on the state that the chart has entered. */
  #entered(wasListing: boolean, wasOffering: boolean): void {
    const { clock } = this.#options.system;
    this.#timer?.cancel();
    this.#timer = undefined;
    if (this.#snapshot.hasTag('timed'))
      this.#timer = clock.after(this.#snapshot.context.delayMs, () => this.#self.send({ type: 'due' }));
    if (this.#snapshot.hasTag('listing') && !wasListing) this.#list();
    if (this.#closed) this.#elements.close();
    else if (wasOffering && !this.#snapshot.hasTag('offering')) this.#elements.withdraw();
  }

  // The catalogue

  #restore(store: Store): void {
    const { name, system } = this.#options;
    this.#store = store;
    const restored = async (): Promise<void> => {
      const stored = await this.#record.read(store);
      const judged = stored && { at: stored.at, judged: await this.#judged(stored.catalogue) };
      this.#self.send({ type: 'restored', stored: judged });
    };
    restored().catch((error: unknown) => {
      const problem = `mount "${name}": the stored catalogue cannot be read: ${messageOf(error)}`;
      system.log('warning', problem, errorFields('store', error));
      this.#self.send({ type: 'restored', stored: undefined });
    });
  }

  #restored(stored: { readonly at: number; readonly judged: ViewedAndJudged } | undefined): void {
    this.#restoring?.resolve();
    // The mount may be closed, or another upstream may have taken its place.
    if (!this.#snapshot.matches('restoring')) return;
    if (!stored) return this.#step({ type: 'nothing stored' });
    this.#options.upstream.current.expect(stored.judged.shared.era);
    this.#offer(stored.judged);
    this.#step({ type: 'stored', at: stored.at });
    for (const waiter of this.#first.splice(0)) waiter.resolve();
  }

  /** Lists the upstream within `listMs`. */
  #list(): void {
    const { name, settings, system, upstream } = this.#options;
    const listing = ++this.#listings;
    const failed = (error: unknown): void => this.#self.send({ type: 'failed', listing, error });
    this.#late = system.clock.after(settings.listMs, () =>
      failed(new Error(`mount "${name}": not listed within ${durationOf(settings.listMs)}. The option is listMs`)),
    );
    const { direct } = upstream.current;
    const listed = direct
      ? direct.list(() => this.#self.send({ type: 'changed' }))
      : upstream.current.catalogue().then((client) => {
          // First: a change during the listing must not be missed.
          this.#follow(client);
          return listUpstream(client, settings.maxListBytes, settings.listMs);
        });
    listed
      .then((catalogue) => this.#judged(catalogue))
      .then((catalogue) => this.#self.send({ type: 'listed', listing, catalogue }), failed);
  }

  /** Compares a catalogue with the pins, together with what owners have beyond it. */
  async #judged(shared: UpstreamCatalogue): Promise<ViewedAndJudged> {
    const { version } = this.#views;
    const viewed = this.#views.over(shared);
    const { expose } = this.#options.settings;
    if (expose === undefined) await this.#options.showBySearch(shared.expose === 'search');
    return { shared, version, ...viewed, ...(await this.#guarded().judge(viewed.whole)) };
  }

  #listed(judged: ViewedAndJudged, type: 'listed' | 'moved'): void {
    const { settings, system } = this.#options;
    const before = this.#catalogue;
    this.#late?.cancel();
    this.#offer(judged);
    const at = system.clock.date();
    this.#failure = undefined;
    const longestMs = Math.ceil(settings.staleMs / RENEWALS);
    const { direct } = this.#options.upstream.current;
    const freshMs = direct
      ? Math.min(direct.refreshMs, longestMs)
      : this.#changes
        ? freshMsOf(this.#changes.client, longestMs)
        : longestMs;
    this.#step({ type, at, freshMs });
    this.#record.write({ at, catalogue: withCertainEra(judged.shared, before) });
    this.#watched.listed();
    if (before && !isDeepStrictEqual(before, judged.shared))
      for (const client of this.#views.clients) this.#changed.add(client);
    this.#listOwners();
    for (const waiter of [...this.#first.splice(0), ...this.#waiters.splice(0)]) waiter.resolve();
  }

  #failed(error: unknown): void {
    const { name, system } = this.#options;
    this.#late?.cancel();
    // The result of this listing, if one comes, is dropped.
    this.#listings += 1;
    // Further failures in a row are no news.
    if (this.#snapshot.context.failures === 0)
      system.log(
        'warning',
        `mount "${name}": its server could not be listed; ${this.#snapshot.hasTag('offering') ? 'the catalogue stays as it was' : 'nothing is offered'}: ${messageOf(error)}`,
        errorFields('mount', error),
      );
    this.#failure = error;
    for (const waiter of [...this.#first.splice(0), ...this.#waiters.splice(0)]) waiter.reject(error);
  }

  #listens(uri: string, begins: boolean): void {
    // It has no resources.
    if (this.#options.upstream.current.direct) return;
    const upstream = this.#elements.upstreamUri(uri);
    if (upstream !== undefined) return begins ? this.#watched.watch(upstream) : this.#watched.unwatch(upstream);
    // With `prefix: false`, a later catalogue may have the resource.
    if (begins && this.#options.settings.prefix === false) this.#unknown.add(uri);
    else this.#unknown.delete(uri);
  }

  /** Offers a tool to sign in with if no grant shows the catalogue. */
  #offerSignIn(error: unknown): void {
    if (this.#snapshot.hasTag('offering') || this.#closed || !this.#options.upstream.current.signsIn) return;
    if (error instanceof ClientError && error.challenge) this.#elements.offerSignIn(this.#self);
  }

  #offer({ shared, offered, problems, version, views }: ViewedAndJudged): void {
    this.#catalogue = shared;
    this.#elements.offer(offered, problems, views);
    // The views have changed while the catalogue was compared with the pins.
    if (version !== this.#views.version) void this.#judgeAgain();
    else for (const { owner, lists } of this.#unannounced.splice(0)) this.#announce(owner, lists);
    for (const uri of [...this.#unknown]) {
      this.#unknown.delete(uri);
      this.#listens(uri, true);
    }
  }

  // Owners

  /** Lists the connections of owners that have reported a change. The mount is listed first: a change may be one for all. */
  #listOwners(): void {
    const { settings, system } = this.#options;
    if (!this.#catalogue) return;
    for (const client of this.#changed) {
      const listed = (catalogue?: UpstreamCatalogue): void =>
        this.#self.send({ type: 'owner listed', client, catalogue });
      const late = (): Error => new Error(`not listed within ${durationOf(settings.listMs)}. The option is listMs`);
      const listing = listUpstream(client, settings.maxListBytes, settings.listMs);
      // Its next change, or call, shows whether the connection is there.
      within(listing, system.clock, settings.listMs, late).then(listed, () => listed());
    }
    this.#changed.clear();
  }

  #ownerListed(client: ConnectedClient, catalogue: UpstreamCatalogue | undefined): void {
    const { name, settings, system } = this.#options;
    const shared = this.#catalogue;
    const owner = this.#changesOfOwners.get(client)?.owner;
    // The connection has ended meanwhile, or a change has come that leads to another listing.
    if (!catalogue || !shared || !owner || this.#closed) return;
    if (!this.#noteView(client, catalogue)) return;
    try {
      this.#views.set(client, owner, catalogue, settings.maxListBytes);
    } catch (error) {
      system.log('warning', `mount "${name}": ${messageOf(error)}`, errorFields('mount', error));
    }
    void this.#judgeAgain();
  }

  /** @returns false if an owner sees the same lists as before */
  #noteView(client: ConnectedClient, now: UpstreamCatalogue): boolean {
    const owner = this.#changesOfOwners.get(client)?.owner;
    const lists = this.#catalogue ? this.#views.changes(client, this.#catalogue, now) : [];
    if (!owner || lists.length === 0) return false;
    this.#unannounced.push({ owner, lists });
    return true;
  }

  /** Offers the catalogue with the views of owners as they are now. */
  async #judgeAgain(): Promise<void> {
    if (!this.#catalogue) return;
    const judged = await this.#judged(this.#catalogue);
    this.#self.send({ type: 'judged', judged, done() {} });
  }

  #announce({ key, session }: CallOwner, lists: readonly ListKind[]): void {
    for (const what of lists) {
      const change = { type: 'list changed', what } as const;
      this.#options.subscriptions.send(
        session
          ? { type: 'session changed', session: session.mailbox, change }
          : { type: 'owner changed', owner: key, change },
      );
    }
  }

  // Pins and changes

  /** The guard of the present options. The store is open. */
  #guarded(): PinGuard {
    const { name, settings, system } = this.#options;
    const { pins, pinFile } = settings;
    if (this.#guard) return this.#guard;
    const record =
      pinFile === undefined
        ? new StoredPins(this.#store, name, () => system.clock.date())
        : new FilePins(pinFile, name);
    const advice =
      pinFile === undefined
        ? 'approve with mount.approve()'
        : `compare with troupe gateway CONFIG --diff, approve with --approve ${name}`;
    this.#guard = new PinGuard({ mode: pins, record, advice });
    return this.#guard;
  }

  #approve(element: string | undefined, approved: Waiter<readonly string[]>): void {
    const catalogue = this.#catalogue;
    if (!catalogue || this.#closed)
      return approved.reject(new Error(`mount "${this.#options.name}": nothing to approve: no catalogue is known`));
    const guard = this.#guarded();
    const approve = async (): Promise<void> => {
      const changes = await guard.approve(this.#views.over(catalogue).whole, element);
      const judged = await this.#judged(catalogue);
      this.#self.send({ type: 'judged', judged, done: () => approved.resolve(changes) });
    };
    approve().catch((error: unknown) =>
      approved.reject(new Error(`mount "${this.#options.name}": ${messageOf(error)}`, { cause: error })),
    );
  }

  #change({ settings, moved }: ChangedMount, done: Waiter): void {
    if (this.#closed) {
      void moved?.upstream.close();
      return done.reject(this.#closedError());
    }
    const { name, system, upstream } = this.#options;
    const { clock } = system;
    this.#options = { ...this.#options, settings, targetKey: moved ? moved.targetKey : this.#options.targetKey };
    if (settings.pins !== this.#guard?.mode) this.#guard = undefined;
    if (moved) upstream.replace(moved.upstream);
    this.#elements.configure(settings);
    if (moved) {
      // The result of a listing of the earlier upstream is dropped.
      this.#listings += 1;
      this.#late?.cancel();
      this.#record = new CatalogueRecord({
        ...{ mount: name, targetKey: moved.targetKey, clock, file: settings.catalogueFile },
      });
      if (this.#store) this.#record.open(this.#store);
      if (moved.client) this.#follow(moved.client);
      else this.#unfollow();
      this.#watched.subscribeAgain();
      this.#relays.reconnect();
      this.#views.clear();
      this.#changed.clear();
      this.#catalogue = moved.catalogue;
    }
    const catalogue = this.#catalogue;
    if (!catalogue) return done.resolve();
    void this.#judged(catalogue).then((judged) =>
      this.#self.send({ type: moved ? 'moved' : 'judged', judged, done: () => done.resolve() }),
    );
  }

  /** Follows the connection of the catalogue. */
  #follow(client: ConnectedClient): void {
    if (this.#changes?.client === client) return;
    this.#unfollow();
    this.#changes = { client, changes: this.#listChanges(client) };
  }

  #unfollow(): void {
    this.#changes?.changes.end();
    this.#changes = undefined;
  }

  /**
   * Receives the changes of lists that a connection reports.
   *
   * @param owned the same connection if it is that of an owner
   */
  #listChanges(client: ConnectedClient, owned?: ConnectedClient): Changes {
    const { tools, prompts, resources, extensions } = client.server.capabilities;
    const announces = (capability: unknown): boolean => isObject(capability) && capability.listChanged === true;
    const changes = client.changes({
      tools: announces(tools),
      prompts: announces(prompts),
      resourceList: announces(resources),
      eventTypes: announces(settingsIn(extensions, EVENTS_EXTENSION)),
    });
    const follow = async (): Promise<void> => {
      for await (const _ of changes) this.#self.send({ type: 'changed', client: owned });
    };
    // A server without subscriptions is listed again after a while.
    follow().catch(() => {});
    return changes;
  }

  // The end

  get #closed(): boolean {
    return this.#snapshot.status === 'done';
  }

  #closedError(): Error {
    return new Error(`mount "${this.#options.name}" is closed`);
  }

  #close({ resolve }: Waiter): void {
    this.#step({ type: 'close' });
    this.#restoring?.resolve();
    this.#late?.cancel();
    this.#listings += 1;
    this.#unfollow();
    for (const { changes } of this.#changesOfOwners.values()) changes.end();
    this.#changesOfOwners.clear();
    this.#watched.close();
    for (const waiter of [...this.#first.splice(0), ...this.#waiters.splice(0)]) waiter.reject(this.#closedError());
    const { clock } = this.#options.system;
    const stored = Promise.all([this.#record.written(), this.#relays.close()]);
    // A store that does not answer writes later, or never: the next start then lists the upstream first.
    const late = (): Error => new Error('the store does not answer');
    const end = (): void => resolve();
    within(stored, clock, CLOSE_MS, late).then(end, end);
  }
}
