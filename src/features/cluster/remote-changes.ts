/**
 * Tells other nodes of changes, and passes on theirs: a change of a handle to the nodes that listen for it, a change that
 * belongs to no cell to all nodes.
 */

import type { CellPlace, LinkNews, LinkPort } from '../../core/http/other-nodes.ts';
import type { Clock, Timer } from '../../core/kernel/clock.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { ListenedResources, RemoteChange } from '../../core/messages/remote-change.ts';
import type { SubscriptionsMail } from '../../core/messages/subscription-messages.ts';

interface RemoteChangesOptions {
  readonly clock: Clock;
  /** Milliseconds for which changes are coalesced. */
  readonly gatherMs: number;
  readonly link: Pick<LinkPort, 'tell'> & { reaches(node: string): boolean };
  /** All other nodes that are not fenced. */
  peers(): Iterable<string>;
  placeOf(cell: number): CellPlace;
  /** The cell of a resource; undefined for one of which all nodes tell each other. */
  cellOf(uri: string): number | undefined;
}

/** A resource that has listeners at this node. */
interface ListenedResource {
  readonly cell: number | undefined;
  /** The other node that was asked to tell of its changes. */
  asked: string | undefined;
  /** True if the question waits for a link. */
  waits: boolean;
}

interface RecentChange {
  readonly at: number;
  readonly change: RemoteChange;
}

/** Maximum number of changes that wait for one node. More are sent before the coalescing time is over. */
const MOST_COLLECTED = 1_000;
/** Milliseconds for which a node that begins to listen learns of an earlier change: its question was on its way. */
const RECENT_MS = 5_000;
const MOST_RECENT = 10_000;
const LISTS = ['tools', 'resources', 'prompts'] as const;

export class RemoteChanges implements ListenedResources {
  readonly #options: RemoteChangesOptions;
  /** The subscriptions actor, which notifies the listeners of this node. */
  #listeners: Pick<Mailbox<SubscriptionsMail>, 'send'> | undefined;
  readonly #listened = new Map<string, ListenedResource>();
  /** The nodes that have listeners, by the URI of a resource of this node. */
  readonly #watchers = new Map<string, Set<string>>();
  /** The last changes of handles of this node, by URI, in two halves: the older half is dropped as a whole. */
  #recent = new Map<string, RecentChange>();
  #lessRecent: ReadonlyMap<string, RecentChange> = new Map();
  /** The changes to tell, by node and subject. */
  readonly #collecting = new Map<string, Map<string, RemoteChange>>();
  #timer: Timer | undefined;

  constructor(options: RemoteChangesOptions) {
    this.#options = options;
  }

  /** Puts itself in front of the subscriptions actor: other nodes learn of changes of this node, too. */
  around(listeners: Mailbox<SubscriptionsMail>): Mailbox<SubscriptionsMail> {
    this.#listeners = listeners;
    return {
      address: listeners.address,
      send: (mail) => {
        listeners.send(mail);
        if (mail.type === 'resource updated' || mail.type === 'list changed') this.#publish(mail);
      },
    };
  }

  listened(uri: string): void {
    const resource: ListenedResource = { cell: this.#options.cellOf(uri), asked: undefined, waits: false };
    this.#listened.set(uri, resource);
    this.#ask(uri, resource);
  }

  unlistened(uri: string): void {
    const asked = this.#listened.get(uri)?.asked;
    this.#listened.delete(uri);
    if (asked !== undefined) this.#options.link.tell(asked, { news: 'unwatch', topics: [uri] });
  }

  /** The owners of cells have changed: asks the next ones. What happened in between may have been missed. */
  moved(): void {
    for (const [uri, resource] of this.#listened) if (this.#ask(uri, resource)) this.#mayHaveChanged(uri);
  }

  /** A link is open: the question of a listener that waited for it may be later than a change. */
  opened(node: string): void {
    for (const [uri, resource] of this.#listened) {
      if (!resource.waits || resource.asked !== node) continue;
      resource.waits = false;
      this.#mayHaveChanged(uri);
    }
  }

  /** News for a node were discarded: asks it again about all resources that it was asked about. */
  dropped(node: string): void {
    let topics: string[] = [];
    for (const [uri, { asked }] of this.#listened) {
      if (asked !== node) continue;
      topics.push(uri);
      if (topics.length < MOST_COLLECTED) continue;
      this.#options.link.tell(node, { news: 'watch', topics });
      topics = [];
    }
    if (topics.length > 0) this.#options.link.tell(node, { news: 'watch', topics });
  }

  /** A node is gone for good: its last news may be lost. */
  gone(node: string): void {
    this.#collecting.delete(node);
    for (const [uri, nodes] of this.#watchers) if (nodes.delete(node) && nodes.size === 0) this.#watchers.delete(uri);
    this.#missed();
    this.moved();
  }

  /** Changes of other nodes may be lost, except those of handles, whose owners are asked again. */
  #missed(): void {
    for (const [uri, { cell }] of this.#listened) if (cell === undefined) this.#mayHaveChanged(uri);
    for (const what of LISTS) this.#listeners?.send({ type: 'list changed', what });
  }

  news(from: string, news: LinkNews): void {
    switch (news.news) {
      case 'watch':
        for (const uri of news.topics) {
          this.#watchers.set(uri, (this.#watchers.get(uri) ?? new Set()).add(from));
          const recent = this.#recent.get(uri) ?? this.#lessRecent.get(uri);
          if (recent && this.#options.clock.now() - recent.at < RECENT_MS) this.#collect(from, recent.change);
        }
        return;
      case 'unwatch':
        for (const uri of news.topics) {
          const nodes = this.#watchers.get(uri);
          if (nodes?.delete(from) && nodes.size === 0) this.#watchers.delete(uri);
        }
        return;
      case 'changed':
        for (const change of news.changes) this.#listeners?.send(change);
        return;
      case 'missed':
        for (const [uri, { asked }] of this.#listened) if (asked === from) this.#mayHaveChanged(uri);
        return this.#missed();
    }
  }

  end(): void {
    this.#timer?.cancel();
  }

  /** Asks the owner of a resource to tell of its changes. @returns true if that is another owner than before */
  #ask(uri: string, resource: ListenedResource): boolean {
    const { link, placeOf } = this.#options;
    if (resource.cell === undefined) return false;
    const place = placeOf(resource.cell);
    // Until the cell has an owner, nothing changes.
    if (place.at === 'nobody') return false;
    const owner = place.at === 'peer' ? place.peer.node : undefined;
    const before = resource.asked;
    if (owner === before) return false;
    resource.asked = owner;
    resource.waits = owner !== undefined && !link.reaches(owner);
    if (before !== undefined) link.tell(before, { news: 'unwatch', topics: [uri] });
    if (owner !== undefined) link.tell(owner, { news: 'watch', topics: [uri] });
    return true;
  }

  #mayHaveChanged(uri: string): void {
    this.#listeners?.send({ type: 'resource updated', uri });
  }

  #publish(change: RemoteChange): void {
    const uri = change.type === 'resource updated' ? change.uri : '';
    if (this.#options.cellOf(uri) === undefined) {
      for (const node of this.#options.peers()) this.#collect(node, change);
      return;
    }
    if (this.#recent.size >= MOST_RECENT / 2) {
      this.#lessRecent = this.#recent;
      this.#recent = new Map();
    }
    this.#recent.set(uri, { at: this.#options.clock.now(), change });
    for (const node of this.#watchers.get(uri) ?? []) this.#collect(node, change);
  }

  #collect(node: string, change: RemoteChange): void {
    const collected = this.#collecting.get(node) ?? new Map<string, RemoteChange>();
    this.#collecting.set(node, collected);
    collected.set(change.type === 'list changed' ? change.what : `resource ${change.uri}`, change);
    if (collected.size >= MOST_COLLECTED) this.#tell(node, collected);
    this.#timer ??= this.#options.clock.after(this.#options.gatherMs, () => {
      this.#timer = undefined;
      for (const [each, changes] of this.#collecting) this.#tell(each, changes);
    });
  }

  #tell(node: string, collected: ReadonlyMap<string, RemoteChange>): void {
    this.#collecting.delete(node);
    this.#options.link.tell(node, { news: 'changed', changes: [...collected.values()] });
  }
}
