/** What an inspected server tells its viewers: plain JSON, the same on the stream, in a recording, and in an exported page. Types only; it knows neither Node nor a browser. */

import type { ChartNode } from '../charts/chart-node.ts';
import type { ActorKind, RecordHeader } from '../inspection/record-header.ts';

export type { ChartEdge, ChartNode } from '../charts/chart-node.ts';
export type { ActorKind, RecordHeader } from '../inspection/record-header.ts';

/** The version of this format: a recording of another one is refused. */
export const FORMAT = 1;

/** Any JSON value. Secrets are replaced by {@link REDACTED} and what is too large is cut before it gets this form. */
export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/** What stands where a secret was. */
export const REDACTED = '«redacted»';

export interface Created {
  readonly type: 'created';
  readonly actor: string;
  readonly kind: ActorKind;
  /** The actor that it belongs to: the request of an ask, the machine of what it has invoked. */
  readonly parent?: string;
  /** The connection that it serves. */
  readonly connection?: string;
  /** What people call it: a client's name, a tool's, a question's message. Default: its address. */
  readonly label?: string;
  /** The {@link ChartFrame.id} of the statechart that governs it. */
  readonly chart?: string;
}

export interface Mailed {
  readonly type: 'mail';
  readonly actor: string;
  /** The type of the mail. */
  readonly name: string;
  readonly data: Plain;
  /** It waits until its receiver has done what it does now; or nobody is there any more to receive it. */
  readonly fate?: 'queued' | 'dropped';
}

export interface Stated {
  readonly type: 'state';
  readonly actor: string;
  /** In words: a word, or the paths of what is active in its chart, joined by ` & `. */
  readonly state: string;
}

/** A statechart was given an event. */
export interface Stepped {
  readonly type: 'step';
  readonly actor: string;
  /** The {@link ChartFrame.id} of the statechart: a handle has none yet when it is created, and another after its author's change. */
  readonly chart?: string;
  readonly event: string;
  readonly data?: Plain;
  /** The transitions that were taken, in order, by {@link ChartEdge.id}; none for the beginning, and for an event that nothing took. */
  readonly edges: readonly string[];
  /** The paths of the active states without those around them. */
  readonly active: readonly string[];
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  /** False: no state took the event. */
  readonly handled: boolean;
  /** Only of an actor that a viewer looks at, and in recordings. */
  readonly context?: Plain;
}

/** A delay of a statechart began, or came to its end. */
export interface Timed {
  readonly type: 'timer';
  readonly actor: string;
  readonly id: string;
  readonly event: string;
  /** Milliseconds. */
  readonly delay: number;
  /** In milliseconds of the server's clock. Absent: it fired, or was cancelled. */
  readonly due?: number;
}

/** A statechart emitted an event to whoever listens. */
export interface Emitted {
  readonly type: 'emit';
  readonly actor: string;
  readonly event: string;
  readonly data: Plain;
}

export interface Crashed {
  readonly type: 'crashed';
  readonly actor: string;
  /** The type of the mail that it crashed of. */
  readonly mail: string;
  readonly error: string;
  readonly setAside: boolean;
}

export interface Gone {
  readonly type: 'gone';
  readonly actor: string;
  readonly why: string;
}

/** A message crossed the wire: one JSON-RPC message, or a batch of them. */
export interface Wired {
  readonly type: 'wire';
  readonly connection: string;
  readonly direction: 'in' | 'out';
  /** Absent for a text that is no JSON: then there is `text`. */
  readonly message?: Plain;
  readonly text?: string;
  /** Of the whole text. */
  readonly bytes: number;
  /** What the message is about: the `seq` of the wire record with the request. 0 or absent: it is not about a request, or that is not known. */
  readonly about?: number;
}

/** A viewer has told the server to do something. */
export interface Controlled {
  readonly type: 'control';
  readonly action: Control['action'];
  readonly data: Plain;
}

export type TraceRecord = RecordHeader &
  (Created | Mailed | Stated | Stepped | Timed | Emitted | Crashed | Gone | Wired | Controlled);

/** The first frame. */
export interface HelloFrame {
  readonly type: 'hello';
  readonly format: number;
  readonly server: { readonly name: string; readonly version: string; readonly title?: string };
  readonly troupe: string;
  readonly pid: number;
  /** What to add to a record's `at` for milliseconds since 1970. */
  readonly epoch: number;
  /** Milliseconds of the server's clock, now. */
  readonly now: number;
  /** Whether this viewer may control the server. */
  readonly control: boolean;
  /** Whether records follow as they come; false in a recording. */
  readonly live: boolean;
}

/** A statechart, told before the first actor that it governs. */
export interface ChartFrame {
  readonly type: 'chart';
  /** Equal for equal charts. */
  readonly id: string;
  readonly chart: ChartNode;
}

export interface RecordsFrame {
  readonly type: 'records';
  readonly records: readonly TraceRecord[];
}

/** Records that are not shown: there were more than could be told. Nothing is left out without one. */
export interface GapFrame {
  readonly type: 'gap';
  /** The places of the first and the last that is missing; others between them may be there. */
  readonly from: number;
  readonly to: number;
  readonly at: number;
  /** Those that are known of. In a flood there are more: most of what an exchange that is left out leads to is not even recorded. */
  readonly records: number;
  /** Exchanges that are missing whole. */
  readonly exchanges: number;
  /** `flood`: more happened than can be told at once; `lagging`: this viewer reads too slowly; `forgotten`: older than what is kept. */
  readonly why: 'flood' | 'lagging' | 'forgotten';
}

/** What an actor looks like now. Told for each that a viewer looks at, whenever it has changed. */
export interface LookFrame {
  readonly type: 'look';
  readonly look: Look;
}

export interface Look {
  readonly actor: string;
  readonly kind: ActorKind;
  /** In milliseconds of the server's clock, and the place in the stream that this is the state of. */
  readonly at: number;
  readonly seq: number;
  readonly state: string;
  /** Mail that waits for its turn. */
  readonly mailbox: number;
  /** Of its statechart, where it has one. */
  readonly active?: readonly string[];
  readonly context?: Plain;
  /** What else is worth knowing: of a session its client and revision; of a request its method and deadline. */
  readonly facts: { readonly [name: string]: Plain };
  /** What it waits for, for whom, until when, and why. */
  readonly waits: readonly Wait[];
  /** What could happen next. */
  readonly next: readonly Next[];
}

export interface Wait {
  /** Such as `the answer to "Refund 20 €?"`. */
  readonly what: string;
  /** Such as `the user of claude`. */
  readonly whom?: string;
  /** In milliseconds of the server's clock. Absent: for as long as it takes. */
  readonly until?: number;
  /** Of a delay: how long it is in all, in milliseconds. */
  readonly lasts?: number;
  /** The record that made it wait. */
  readonly because?: number;
}

/** A transition out of the active states. */
export interface Next {
  readonly edge: string;
  readonly event: string;
  readonly guard?: string;
  /** What the guard says for an event without data: `unknown` when it threw, or needs data. */
  readonly allowed: 'yes' | 'no' | 'unknown';
}

/** The last frame of a viewer whose server stops. */
export interface ByeFrame {
  readonly type: 'bye';
  readonly why: string;
}

export type Frame = HelloFrame | ChartFrame | RecordsFrame | GapFrame | LookFrame | ByeFrame;

/** A recording: frames in the order in which they were told; the first is the hello. */
export interface Recording {
  readonly format: 'troupe-recording';
  readonly version: number;
  readonly frames: readonly Frame[];
}

/** What an event would lead to, found out without the actor noticing. */
export interface WhatIf {
  readonly allowed: boolean;
  /** When it is not: why, such as `no state takes it: expected one of …`, or the guards that said no. */
  readonly why?: string;
  readonly edges: readonly string[];
  readonly active: readonly string[];
  readonly status: Stepped['status'];
  readonly context?: Plain;
  /** The actions that would run. */
  readonly actions: readonly string[];
}

/** What a viewer may tell a server to do that was started with control. */
export type Control =
  | { readonly action: 'send'; readonly actor: string; readonly event: { readonly type: string } }
  | { readonly action: 'call'; readonly tool: string; readonly arguments: { readonly [name: string]: Plain } }
  | { readonly action: 'close'; readonly connection: string };
