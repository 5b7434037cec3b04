/** Header that live records and frames have in common. Types only, without XState and Node. */

/** The kinds of actors. `invoked`: an actor that an author's statechart invokes or spawns. */
export type ActorKind =
  | 'server'
  | 'session'
  | 'requests'
  | 'registry'
  | 'executor'
  | 'emitter'
  | 'request'
  | 'ask'
  | 'machine'
  | 'handle'
  | 'invoked'
  | 'subscriptions'
  | 'task'
  | 'client'
  | 'mount'
  | 'audit'
  | 'state'
  | 'approval'
  | 'run'
  | 'schedule'
  | 'webhook';

/** The kinds of entries of the journal of a run. `called` and `logged` are in no store: they happen between two entries. */
export type JournalKind =
  | 'begun'
  | 'called'
  | 'logged'
  | 'started'
  | 'asked'
  | 'answered'
  | 'held'
  | 'following'
  | 'sleeping'
  | 'delivered'
  | 'ended';

/**
 * A record's sequence number, its time in milliseconds of the server's clock, and its cause: the record that led to it,
 * or 0 if unknown.
 */
export interface RecordHeader {
  readonly seq: number;
  readonly at: number;
  readonly cause: number;
}
