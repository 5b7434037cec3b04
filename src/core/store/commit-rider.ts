/** Writes that join the next commit of another part of the server, so that they cost no transaction of their own. Types only. */
import type { Write } from './store.ts';

export interface CommitRider {
  /** Takes the writes that wait; undefined if there are none. */
  board(): readonly Write[] | undefined;
  /** Called with the commit that they have joined. */
  joined(commit: Promise<unknown>): void;
}

/** The rider of a store, if it has one. */
export interface CommitRiders {
  rider: CommitRider | undefined;
}
