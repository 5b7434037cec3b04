/** The messages between the page and the calls that it makes. Types only: plain JSON, without Node and without a browser. */

import type { JsonObject } from '../../core/protocol/json.ts';
import type { Approval, ApprovalGrant } from '../../features/approvals/approval-interface.ts';
import type { Plain } from '../frames.ts';
import type { ScheduleRun } from '../traffic/traffic-messages.ts';

type Texts = { readonly [name: string]: string };

/** One request to the server. */
export type CallRequest =
  | {
      readonly kind: 'tool';
      readonly name: string;
      readonly arguments: JsonObject;
      /** True: as a task, where the revision lets the client choose. */
      readonly task?: boolean;
    }
  | { readonly kind: 'resource'; readonly uri: string }
  | { readonly kind: 'template'; readonly template: string; readonly variables: Texts }
  | { readonly kind: 'prompt'; readonly name: string; readonly arguments: Texts }
  /** Any request, such as `ping`. */
  | { readonly kind: 'request'; readonly method: string; readonly params: JsonObject };

/** The requests of the server that a viewer answers. Each is a capability of the client. */
export type Answerable = 'form' | 'url' | 'sampling' | 'roots';

/** The client that sends a request. Clients with equal options share a session. */
export interface CallerOptions {
  /** A supported revision. Default: the newest. */
  readonly revision?: string;
  /**
   * The principal of its requests. Default: that of the clients on stdio or on a socket; anonymous if the server serves
   * neither.
   */
  readonly principal?: string;
  /** Default: all. */
  readonly answers?: readonly Answerable[];
  /** The least severe log messages that the server sends. Default: `info`. */
  readonly logLevel?: string;
  /** True: a host that shows views. */
  readonly views?: true;
}

export type CallStatus = 'running' | 'done' | 'failed' | 'cancelled';

/** A call that a viewer made. */
export interface ViewerCall {
  readonly id: number;
  readonly request: CallRequest;
  readonly caller: CallerOptions;
  readonly status: CallStatus;
  /** The tool reports an error. */
  readonly isError?: boolean;
  /** In milliseconds of the server's clock. */
  readonly at: number;
  readonly endedAt?: number;
  /** The sequence number of its `control` record; 0 if the server was not observed. */
  readonly record: number;
  readonly progress?: { readonly progress: number; readonly total?: number; readonly message?: string };
  readonly logs: readonly CallNotice[];
  /** The id of the task that runs it. */
  readonly task?: string;
  /** The reason of a failure. */
  readonly error?: string;
  /** True if {@link CallResult} can be read. */
  readonly hasResult: boolean;
}

/** Something that the server sent without being asked, or in the middle of a call. */
export interface CallNotice {
  readonly at: number;
  readonly type: 'log' | 'resource changed' | 'subscription';
  readonly level?: string;
  readonly text: string;
}

/** A request of the server that waits for a viewer. */
export interface ServerQuestion {
  readonly id: number;
  readonly kind: Answerable;
  /** The call for which the server asks, if that is known. */
  readonly call?: number;
  readonly at: number;
  /** The parameters of the request. */
  readonly params: Plain;
}

export type QuestionAnswer =
  | { readonly action: 'accept'; readonly content?: JsonObject }
  | { readonly action: 'decline' | 'cancel' }
  /** A message of the model. */
  | { readonly action: 'sample'; readonly result: JsonObject }
  | { readonly action: 'roots'; readonly roots: readonly { readonly uri: string; readonly name?: string }[] };

/** Everything that changes while viewers call the server. */
export interface CallsState {
  /** Increases with each change. */
  readonly version: number;
  /** The newest first. */
  readonly calls: readonly ViewerCall[];
  readonly questions: readonly ServerQuestion[];
  /** The newest first. */
  readonly notices: readonly CallNotice[];
  /** The principal of a call that names none; undefined: anonymous. */
  readonly principal?: string;
  /** The URIs of the watched resources. */
  readonly watched: readonly string[];
  /** The open sessions, as their servers negotiated them. */
  readonly sessions: readonly { readonly caller: CallerOptions; readonly revision: string; readonly state: string }[];
}

/** A part of a result. Texts have no secrets, and are cut. */
export type ResultBlock =
  | { readonly type: 'text'; readonly text: string; readonly mimeType?: string }
  /** Base64 of an image or a sound of a known type. */
  | { readonly type: 'image' | 'audio'; readonly mimeType: string; readonly data: string; readonly bytes: number }
  /** Bytes that are not shown. `data` is absent if there are too many. */
  | { readonly type: 'binary'; readonly mimeType: string; readonly data?: string; readonly bytes: number }
  | { readonly type: 'link'; readonly uri: string; readonly name?: string; readonly description?: string }
  | { readonly type: 'resource'; readonly uri: string; readonly inside: ResultBlock }
  | { readonly type: 'other'; readonly value: Plain };

export interface CallResult {
  readonly id: number;
  /** The description of a prompt. */
  readonly description?: string;
  readonly blocks: readonly { readonly role?: string; readonly note?: string; readonly block: ResultBlock }[];
  readonly structured?: Plain;
  /** The result as JSON, cut. */
  readonly raw: Plain;
  /** True if parts of the result are left out. */
  readonly cut: boolean;
}

/** Commands of a viewer to a server whose inspector was opened with control. */
/** The approvals, for viewers. */
export interface ApprovalsView {
  readonly open: readonly Approval[];
  readonly grants: readonly ApprovalGrant[];
}

/** A decision about an approval, or the end of an approval or a grant. */
export type ApprovalControl = {
  readonly approval: string;
  /** The person who decides, for the audit, and so that one person counts once. */
  readonly person: string;
  readonly reason?: string;
} & ({ readonly action: 'approve'; readonly remember: boolean } | { readonly action: 'deny' | 'revoke' });

export type Control =
  | ApprovalControl
  | { readonly action: 'send'; readonly actor: string; readonly event: { readonly type: string } }
  | { readonly action: 'call'; readonly tool: string; readonly arguments: JsonObject }
  | { readonly action: 'close'; readonly connection: string }
  /** Sends a request; the page follows it in the list of calls. */
  | { readonly action: 'start'; readonly request: CallRequest; readonly caller: CallerOptions }
  /** Sends the request of an earlier call again. */
  | { readonly action: 'again'; readonly call: number }
  | { readonly action: 'cancel'; readonly call: number }
  | { readonly action: 'answer'; readonly question: number; readonly answer: QuestionAnswer }
  /** Asks for the values of an argument of a prompt, or of a variable of a template. */
  | {
      readonly action: 'complete';
      readonly reference: { readonly prompt: string } | { readonly resource: string };
      readonly argument: { readonly name: string; readonly value: string };
      readonly known: { readonly [name: string]: string };
      readonly caller: CallerOptions;
    }
  | { readonly action: 'watch'; readonly uri: string; readonly caller: CallerOptions }
  | { readonly action: 'unwatch'; readonly uri: string }
  /** Passes on a request of a view, or of the host that shows it, and responds with a {@link ViewAnswer}. */
  | {
      readonly action: 'view';
      readonly method: ViewMethod;
      readonly params: JsonObject;
      readonly caller: CallerOptions;
    }
  /** Delivers a delivery of a webhook, or a dead letter, again. */
  | { readonly action: 'redeliver'; readonly ref: string }
  /** Emits an event of a type. */
  | { readonly action: 'emit'; readonly event: string; readonly data: JsonObject }
  /** Runs a schedule now, without a slot. */
  | ({ readonly action: 'run' } & ScheduleRun)
  /** Forgets the ended calls. */
  | { readonly action: 'forget' };

/** The requests that a host passes on for its views, and the list in which it finds them. */
export type ViewMethod = 'tools/list' | 'tools/call' | 'resources/read' | 'resources/list';

/** The answer of the server to a view, complete and without redaction: the view needs it as a chat client passes it on. */
export type ViewAnswer =
  | { readonly result: JsonObject }
  | { readonly error: { readonly code: number; readonly message: string } };
