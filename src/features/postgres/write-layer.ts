/**
 * The writes of a group, folded: the last write of each key. A layer is one statement, in which no table sees what
 * another part of the statement writes; writes to an actor that was deleted begin another layer.
 */
import type {
  ActorRow,
  DeadLetter,
  JournalEvent,
  ReplyWrite,
  SnapshotSwap,
  Stored,
  TimerRow,
} from '../../core/store/store.ts';

interface LayeredEvent extends JournalEvent {
  readonly previous: number;
}

/** The folded writes of one actor. */
interface LayeredActor {
  row: ActorRow | undefined;
  snapshot: Stored['snapshot'];
  /** Its only write, if it has one. */
  swap: SnapshotSwap | undefined;
  /** The last event of its history that the snapshot covers; 0 if unknown. */
  covered: number;
  events: LayeredEvent[];
  /** By request; undefined deletes the reply. */
  readonly replies: Map<string, ReplyWrite | undefined>;
  /** Replies to store unless there is one, by request. */
  readonly claims: Map<string, ReplyWrite>;
  /** By name; undefined deletes the timer. */
  readonly timers: Map<string, TimerRow | undefined>;
  /** The last deleted event of each stream. */
  readonly purged: Map<string, number>;
  forgotten: boolean;
}

export class WriteLayer {
  readonly actors = new Map<string, LayeredActor>();
  readonly letters: DeadLetter[] = [];

  of(actor: string): LayeredActor {
    const found = this.actors.get(actor);
    if (found) return found;
    const fresh: LayeredActor = {
      row: undefined,
      snapshot: undefined,
      swap: undefined,
      covered: 0,
      events: [],
      replies: new Map(),
      claims: new Map(),
      timers: new Map(),
      purged: new Map(),
      forgotten: false,
    };
    this.actors.set(actor, fresh);
    return fresh;
  }

  /** Returns whether a later write of the actor needs the next layer: this one deletes it, or swaps its snapshot. */
  isFull(actor: string): boolean {
    const found = this.actors.get(actor);
    return found !== undefined && (found.forgotten || found.swap !== undefined);
  }

  /** Deletes the actor; its earlier writes in this layer are dropped. */
  forget(actor: string): void {
    this.actors.delete(actor);
    this.of(actor).forgotten = true;
  }
}
