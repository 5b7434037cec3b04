/** What live records and those that viewers are told have in common. Types only; it knows neither XState nor Node. */

/** The kinds of actors. `invoked`: an actor that an author's statechart has invoked or spawned. */
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
  | 'task';

/** Each record's place in the stream, its time in milliseconds of the server's clock, and the record that caused it (0: none known). */
export interface RecordHeader {
  readonly seq: number;
  readonly at: number;
  readonly cause: number;
}
