/** Folds the batches of a group into layers, and rejects a batch that cannot be stored before it spoils its group. */
import type { ReplyWrite, SnapshotSwap, StoreError, Write } from '../../core/store/store.ts';
import { disorderIn } from '../../core/store/writes.ts';
import type { PostgresOptions } from './postgres-options.ts';
import { type ActorHeads, appendToHead, type StreamHeads, streamHeadOf, trimHead } from './stream-heads.ts';
import { WriteLayer } from './write-layer.ts';

/** The actors whose streams must be known before a batch is folded. */
export function needsHeads(writes: readonly Write[], heads: StreamHeads, missing: Set<string>): void {
  for (const write of writes)
    if ((write.type === 'event' || write.type === 'trim') && !heads.find(write.actor)) missing.add(write.actor);
}

/** The way in which a claim of the group ends. */
export type FoldedClaim =
  /** An earlier write of the group is the reply. */
  | { readonly type: 'found'; readonly data: string }
  /** The group deletes an earlier reply, so it stores this one. */
  | { readonly type: 'won' }
  /** The database decides. */
  | { readonly type: 'asked' }
  /** An earlier claim of the group is before it, with this reply unless the database has another. */
  | { readonly type: 'lost'; readonly to: string };

type EventLimits = Pick<PostgresOptions, 'maxStreamEvents' | 'maxActorBytes'>;

export class GroupFold {
  readonly layers: WriteLayer[] = [new WriteLayer()];
  /** Actors whose events may exceed a limit. */
  readonly crowded = new Set<string>();
  readonly #heads: StreamHeads;
  readonly #limits: EventLimits;

  constructor(heads: StreamHeads, limits: EventLimits) {
    this.#heads = heads;
    this.#limits = limits;
  }

  /** Adds a batch. @returns the reason why it cannot be stored; then nothing of it is added */
  add(writes: readonly Write[]): StoreError | undefined {
    const wrong = disorderIn(writes, (actor, stream) => this.#heads.find(actor)?.streams.get(stream)?.last);
    if (wrong) return wrong;
    for (const write of writes) this.#write(write);
    return undefined;
  }

  claim(reply: ReplyWrite): FoldedClaim {
    const { actor, request } = reply;
    for (let index = this.layers.length - 1; index >= 0; index -= 1) {
      const found = this.layers[index]?.actors.get(actor);
      if (!found) continue;
      const earlier = found.replies.get(request);
      if (earlier) return { type: 'found', data: earlier.data };
      const before = found.claims.get(request);
      if (before) return { type: 'lost', to: before.data };
      if (!found.forgotten && !found.replies.has(request)) continue;
      this.#layerFor(actor).of(actor).replies.set(request, reply);
      return { type: 'won' };
    }
    this.#layerFor(actor).of(actor).claims.set(request, reply);
    return { type: 'asked' };
  }

  /** Adds a swap, in a layer without other writes of its actor: the statement does not see them. */
  swap(swap: SnapshotSwap): void {
    const { id } = swap.actor;
    const newest = this.layers.at(-1);
    const layer = newest && !newest.actors.has(id) ? newest : this.#next();
    layer.of(id).swap = swap;
  }

  /** The newest layer, or a further one if no other write of the actor may join the newest. */
  #layerFor(actor: string): WriteLayer {
    const newest = this.layers.at(-1);
    return newest && !newest.isFull(actor) ? newest : this.#next();
  }

  #headsOf(actor: string): ActorHeads {
    return this.#heads.find(actor) ?? this.#heads.clear(actor);
  }

  #write(write: Write): void {
    switch (write.type) {
      case 'actor':
        this.#layerFor(write.actor.id).of(write.actor.id).row = write.actor;
        return;
      case 'snapshot': {
        const { actor, version, data } = write;
        const into = this.#layerFor(actor).of(actor);
        into.snapshot = { version, data };
        const heads = this.#heads.find(actor);
        if (!heads) return;
        heads.covered = Math.max(heads.covered, heads.streams.get('')?.last ?? 0);
        into.covered = heads.covered;
        return;
      }
      case 'event': {
        const { actor, stream, seq, kind, data } = write;
        const heads = this.#headsOf(actor);
        const head = streamHeadOf(heads, stream);
        this.#layerFor(actor).of(actor).events.push({ stream, seq, previous: head.last, kind, data });
        appendToHead(heads, head, seq, data.length);
        const { maxStreamEvents, maxActorBytes } = this.#limits;
        if (head.events > maxStreamEvents || heads.bytes > maxActorBytes) this.crowded.add(actor);
        return;
      }
      case 'reply': {
        const layer = this.#layerFor(write.actor);
        // A claim and another write of one reply need two statements.
        const into = layer.of(write.actor).claims.has(write.request) ? this.#next() : layer;
        into.of(write.actor).replies.set(write.request, write.data === '' ? undefined : write);
        return;
      }
      case 'timer':
        this.#layerFor(write.timer.actor).of(write.timer.actor).timers.set(write.timer.timer, write.timer);
        return;
      case 'timer off':
        this.#layerFor(write.actor).of(write.actor).timers.set(write.timer, undefined);
        return;
      case 'dead letter':
        this.layers.at(-1)?.letters.push(write.letter);
        return;
      case 'trim':
        return this.#trim(write.actor, write.stream, write.upto);
      case 'forget': {
        const newest = this.layers.at(-1);
        // Its claims and swaps are decided before it is deleted.
        const found = newest?.actors.get(write.actor);
        const layer = newest && (found?.claims.size ?? 0) === 0 && !found?.swap ? newest : this.#next();
        layer.forget(write.actor);
        this.#heads.clear(write.actor);
      }
    }
  }

  #next(): WriteLayer {
    const layer = new WriteLayer();
    this.layers.push(layer);
    return layer;
  }

  #trim(actor: string, stream: string, upto: number): void {
    const heads = this.#headsOf(actor);
    const head = heads.streams.get(stream);
    const to = Math.min(upto, head?.last ?? 0);
    if (!head || to <= head.purged) return;
    trimHead(heads, head, to);
    const into = this.#layerFor(actor).of(actor);
    into.purged.set(stream, to);
    // The statement deletes only events that were there before it.
    into.events = into.events.filter((event) => event.stream !== stream || event.seq > to);
  }
}
