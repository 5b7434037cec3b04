/**
 * Frames that an inspector sends to its viewers: plain JSON, the same on the stream, in a recording, and in an exported
 * page. Types only, without Node and without a browser.
 */

import type { ChartNode } from '../core/kernel/charts/chart-node.ts';
import type { ActorKind, JournalKind, RecordHeader } from '../core/kernel/inspection/record-header.ts';
import type { ControlAction, HopEnd } from '../core/kernel/inspection/records.ts';

export type { ChartEdge, ChartNode } from '../core/kernel/charts/chart-node.ts';
export type { ActorKind, JournalKind, RecordHeader } from '../core/kernel/inspection/record-header.ts';

/** The version of this format. A recording of another version is rejected. */
export const FORMAT = 1;

/** Any JSON value. {@link REDACTED} replaces secrets, and large values are cut before they get this form. */
export type Plain = null | boolean | number | string | readonly Plain[] | { readonly [key: string]: Plain };

/** The replacement for a secret. */
export const REDACTED = '«redacted»';

export interface Created {
  readonly type: 'created';
  readonly actor: string;
  readonly kind: ActorKind;
  /** The actor that owns it: the request of an input request, or the machine that invoked it. */
  readonly parent?: string;
  /** The connection that it serves. */
  readonly connection?: string;
  /** Its display name: the name of a client or a tool, or the message of an input request. Default: its address. */
  readonly label?: string;
  /** The {@link ChartFrame.id} of the statechart that governs it. */
  readonly chart?: string;
  /**
   * The time of its creation, in milliseconds of the server's clock: earlier than the record if it existed before the
   * observation. Default: the time of the record.
   */
  readonly since?: number;
}

export interface Mailed {
  readonly type: 'mail';
  readonly actor: string;
  /** The type of the message. */
  readonly name: string;
  readonly data: Plain;
  /** `queued`: it waits until its receiver has finished the current turn. `dropped`: it has no receiver any more. */
  readonly fate?: 'queued' | 'dropped';
}

export interface Stated {
  readonly type: 'state';
  readonly actor: string;
  /** One word, or the paths of the active states of its chart, joined by ` & `. */
  readonly state: string;
}

/** A statechart received an event. */
export interface Stepped {
  readonly type: 'step';
  readonly actor: string;
  /**
   * The {@link ChartFrame.id} of the statechart. A handle has none when it is created, and another one after a change
   * by its author.
   */
  readonly chart?: string;
  readonly event: string;
  readonly data?: Plain;
  /**
   * The transitions that were taken, in order, by {@link ChartEdge.id}; empty for the start, and for an unhandled
   * event.
   */
  readonly edges: readonly string[];
  /** The paths of the active states, without their ancestors. */
  readonly active: readonly string[];
  readonly status: 'active' | 'done' | 'error' | 'stopped';
  /** False: no state handled the event. */
  readonly handled: boolean;
  /** Only for actors in a viewer's focus, and in recordings. */
  readonly context?: Plain;
}

/** A timer of a statechart started or ended. */
export interface Timed {
  readonly type: 'timer';
  readonly actor: string;
  readonly id: string;
  readonly event: string;
  /** Milliseconds. */
  readonly delay: number;
  /** In milliseconds of the server's clock. Absent: the timer fired or was cancelled. */
  readonly due?: number;
}

/** A statechart emitted an event to its listeners. */
export interface Emitted {
  readonly type: 'emit';
  readonly actor: string;
  readonly event: string;
  readonly data: Plain;
}

export interface Crashed {
  readonly type: 'crashed';
  readonly actor: string;
  /** The type of the message that it crashed on. */
  readonly mail: string;
  readonly error: string;
  readonly quarantined: boolean;
}

/** A handler threw an error. Its cause leads to the wire record of the request. */
export interface Failed {
  readonly type: 'failed';
  /** The executor that ran the handler. */
  readonly actor: string;
  /** The element, such as `tool "echo"`. */
  readonly element: string;
  /** The message and the stack. */
  readonly error: string;
  /** The id in the operator's log. Absent: the author wrote the error for the client. */
  readonly incident?: string;
}

export interface Gone {
  readonly type: 'gone';
  readonly actor: string;
  readonly why: string;
}

/** A JSON-RPC message, or a batch of them, crossed the wire. */
export interface Wired {
  readonly type: 'wire';
  readonly connection: string;
  readonly direction: 'in' | 'out';
  /** Absent for a text that is not JSON; `text` has it then. */
  readonly message?: Plain;
  readonly text?: string;
  /** The length of the whole text. */
  readonly bytes: number;
  /**
   * The `seq` of the wire record of the request to which this message belongs. 0 or absent: it belongs to none, or the
   * request is unknown.
   */
  readonly about?: number;
}

/** A request crosses nodes: it was sent to the owner of its cell, or arrived from its entry. */
export interface Hopped {
  readonly type: 'hop';
  readonly way: 'to' | 'from';
  /** The other node. */
  readonly node: string;
  /** The number of the exchange on the link: the same at both nodes. */
  readonly number: number;
  /** At the entry, once it has ended. */
  readonly end?: HopEnd;
}

/** The run of a script did something. */
export interface Journaled {
  readonly type: 'journal';
  readonly actor: string;
  /** Its place in the journal, from 1. An entry may come again. */
  readonly index: number;
  readonly what: JournalKind;
  /** In milliseconds since 1970. Absent: unknown. */
  readonly date?: number;
  /** The number of the call. */
  readonly call?: number;
  readonly name?: string;
  /** The line of the script. */
  readonly line?: number;
  readonly data?: Plain;
}

/** A viewer controlled the server. */
export interface Controlled {
  readonly type: 'control';
  readonly action: ControlAction;
  readonly data: Plain;
}

export type TraceRecord = RecordHeader &
  (
    | Created
    | Mailed
    | Stated
    | Stepped
    | Timed
    | Emitted
    | Crashed
    | Failed
    | Gone
    | Wired
    | Hopped
    | Journaled
    | Controlled
  );

/** The first frame. */
export interface HelloFrame {
  readonly type: 'hello';
  readonly format: number;
  readonly server: { readonly name: string; readonly version: string; readonly title?: string };
  readonly troupe: string;
  readonly pid: number;
  /** The name of the node, if several processes serve the program. */
  readonly node?: string;
  /** Add this to a record's `at` for milliseconds since 1970. */
  readonly epoch: number;
  /** The current time in milliseconds of the server's clock. */
  readonly now: number;
  /** True: the server is another program. One client makes all calls, so they have no caller of their own. */
  readonly remote?: boolean;
  /** True if this viewer may control the server. */
  readonly control: boolean;
  /** True if live records follow; false in a recording. */
  readonly live: boolean;
  /** Instructions for connecting a client; only for viewers. */
  readonly connect?: ConnectHelp;
}

/** Instructions for connecting a client to the server. */
export interface ConnectHelp {
  /** One or two sentences. */
  readonly note: string;
  readonly ways: readonly ConnectWay[];
}

/** Instructions for one client. */
export interface ConnectWay {
  /** The client's name, such as `Cursor`. */
  readonly client: string;
  /** An entry of its configuration, or a command. */
  readonly text: string;
  /** The file that contains the entry. */
  readonly file?: string;
  /** The next step of the person. */
  readonly next?: string;
}

/** A statechart. It precedes the first actor that it governs. */
export interface ChartFrame {
  readonly type: 'chart';
  /** Equal charts have equal ids. */
  readonly id: string;
  readonly chart: ChartNode;
}

export interface RecordsFrame {
  readonly type: 'records';
  readonly records: readonly TraceRecord[];
}

/** Records that are not shown, because more happened than can be shown. Every omission has such a frame. */
export interface GapFrame {
  readonly type: 'gap';
  /** The sequence numbers of the first and the last missing record. Some records between them may be present. */
  readonly from: number;
  readonly to: number;
  readonly at: number;
  /** The number of known missing records. A flood has more: most records of an omitted exchange are never made. */
  readonly records: number;
  /** The number of exchanges that are missing completely. */
  readonly exchanges: number;
  /**
   * `flood`: more happened than can be shown at once. `lagging`: this viewer reads too slowly. `forgotten`: older than
   * the backlog.
   */
  readonly why: 'flood' | 'lagging' | 'forgotten';
}

/**
 * The current view of an actor. Sent for each actor in a viewer's focus whenever it changes. The recordings' format
 * names it `look`.
 */
export interface ActorViewFrame {
  readonly type: 'look';
  readonly look: ActorView;
}

export interface ActorView {
  readonly actor: string;
  readonly kind: ActorKind;
  /** In milliseconds of the server's clock, and the sequence number of the last record before this view. */
  readonly at: number;
  readonly seq: number;
  readonly state: string;
  /** The number of messages in its mailbox. */
  readonly mailbox: number;
  /** The active states of its statechart, if it has one. */
  readonly active?: readonly string[];
  readonly context?: Plain;
  /** Further facts: the client and revision of a session, the method and deadline of a request. */
  readonly facts: { readonly [name: string]: Plain };
  /** Everything for which it waits: the addressee, the deadline and the cause. */
  readonly waits: readonly Wait[];
  /** Transitions that are possible next. */
  readonly next: readonly Next[];
}

export interface Wait {
  /** Such as `the answer to "Refund 20 €?"`. */
  readonly what: string;
  /** Such as `the user of claude`. */
  readonly whom?: string;
  /** In milliseconds of the server's clock. Absent: without a deadline. */
  readonly until?: number;
  /** The whole duration of a timer, in milliseconds. */
  readonly lasts?: number;
  /** The record that started the wait. */
  readonly because?: number;
}

/** A transition out of the active states. */
export interface Next {
  readonly edge: string;
  readonly event: string;
  readonly guard?: string;
  /** The result of the guard for an event without data. `unknown`: it threw or needs data. */
  readonly allowed: 'yes' | 'no' | 'unknown';
}

/** The visits to the authors' statecharts since the inspector opened: the pages count only what they see. */
export interface CoverageFrame {
  readonly type: 'coverage';
  /** The time from which visits count, in milliseconds of the server's clock. */
  readonly since: number;
  /** First the statecharts that the server offers, by name. */
  readonly charts: readonly CountedChart[];
}

export interface CountedChart {
  /** The {@link ChartFrame.id}. */
  readonly id: string;
  readonly name: string;
  readonly chart: ChartNode;
  /** By path. */
  readonly states: { readonly [path: string]: number };
  /** By id. */
  readonly edges: { readonly [id: string]: number };
}

/** The last frame before the server stops. */
export interface ByeFrame {
  readonly type: 'bye';
  readonly why: string;
}

/** Everything that the server offers. The stream has none: the page reads it when its view is opened. */
export interface CatalogueFrame {
  readonly type: 'catalogue';
  readonly catalogue: ServerCatalogue;
}

export interface ServerCatalogue {
  /** Increases with each change of a registry. */
  readonly version: number;
  /** Name, version, title, description, icons and website, as clients receive them. */
  readonly server: Plain;
  readonly instructions?: string;
  readonly capabilities: Plain;
  /** The supported revisions, newest first. */
  readonly revisions: readonly string[];
  readonly limits: Plain;
  readonly tools: readonly CatalogueElement[];
  readonly resources: readonly CatalogueElement[];
  readonly templates: readonly CatalogueElement[];
  readonly prompts: readonly CatalogueElement[];
  readonly machines: readonly CatalogueMachine[];
}

/** A tool, a resource, a resource template or a prompt. */
export interface CatalogueElement {
  /** The name of a tool or a prompt; the URI or the URI template of a resource. */
  readonly name: string;
  /** Its source: `code`, a file, or a machine. */
  readonly source: string;
  /** False: hidden from clients. */
  readonly enabled?: false;
  /** The machine for which it was generated. */
  readonly machine?: string;
  /** The arguments or variables that the server completes. */
  readonly completes?: readonly string[];
  /** The definition, as clients of the newest revision receive it. */
  readonly definition: Plain;
  /** The definition is longer than what is shown. */
  readonly cut?: boolean;
}

export interface CatalogueMachine {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly version?: string;
  readonly ttlMs?: number;
  readonly idleMs?: number;
  /** The events that clients may send. */
  readonly events: readonly string[];
  /** Each `principal`, `tenant`, `session` or value of an argument has an instance of its own. Absent: handles. */
  readonly key?: string;
  readonly roles?: readonly MachineRole[];
}

/** A role of the callers of an instance. */
export interface MachineRole {
  readonly name: string;
  /** The events that they may send; `*` for all. */
  readonly events: readonly string[];
  /** True: they see other data than the view of the machine. */
  readonly ownView: boolean;
}

export type Frame =
  | HelloFrame
  | ChartFrame
  | RecordsFrame
  | GapFrame
  | ActorViewFrame
  | CatalogueFrame
  | CoverageFrame
  | ByeFrame;

/** A recording: frames in their order; the first is the hello. */
export interface Recording {
  readonly format: 'troupe-recording';
  readonly version: number;
  readonly frames: readonly Frame[];
}

/** The consequences of an event, computed without an effect on the actor. */
export interface WhatIf {
  readonly allowed: boolean;
  /**
   * The reason if it is not allowed, such as `no state handles it: expected one of …`, or the guards that rejected it.
   */
  readonly why?: string;
  readonly edges: readonly string[];
  readonly active: readonly string[];
  readonly status: Stepped['status'];
  readonly context?: Plain;
  /** The actions that would run. */
  readonly actions: readonly string[];
}
