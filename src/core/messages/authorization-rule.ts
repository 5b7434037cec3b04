/** The rules that decide who may use an element: what they receive, and what they return. Types only. */
import type { JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { Era, Revision } from '../protocol/revisions.ts';
import type {
  ClientCapabilities,
  EventType,
  Implementation,
  Prompt,
  Resource,
  ResourceTemplate,
  Tool,
} from '../protocol/types.ts';
import type { Auth } from './auth.ts';
import type { RequestView } from './request-view.ts';

/** The element that a request uses. */
export interface GuardedElement {
  readonly kind: 'tool' | 'resource' | 'template' | 'prompt' | 'event';
  /** The name of a tool, a prompt or an event type; the URI of a resource; the text of a template. */
  readonly name: string;
  /** The description that clients list; undefined for a name that is not registered, for which rules run, too. */
  readonly definition: Tool | Resource | ResourceTemplate | Prompt | EventType | undefined;
  /** Its own scopes. */
  readonly scopes: readonly string[];
  /** The machine to which a generated tool or resource belongs, and what the tool does: `create`, `get`, `list`, `end` or an event. */
  readonly machine: { readonly name: string; readonly event: string } | undefined;
}

/** One use of one element. */
export interface AuthorizationCall {
  /**
   * The method of the request, such as `tools/call`. A list asks for each of its elements: a rule that returns
   * `{ hidden: true }` removes the element from the list.
   */
  readonly method: string;
  readonly element: GuardedElement;
  /**
   * The arguments of a tool, a prompt or a subscription to events, not yet checked by its schema; the variables of a template, decoded, as its handler
   * receives them; of a completion, the arguments that the client has resolved, and the text of the one being completed. Otherwise
   * empty.
   */
  readonly arguments: JsonObject;
  /** The URI of a resource, in one spelling: characters that need no encoding are decoded (`%39` is `9`). */
  readonly uri: string | undefined;
  /** The authenticated caller; undefined for an anonymous one. */
  readonly auth: Auth | undefined;
  readonly principal: string;
}

/** The place of a call in the run of a script. */
export interface CallVia {
  /** The id of the run. */
  readonly run: string;
  /** The number of the call in the run. */
  readonly call: number;
  /** The tool that runs the script. */
  readonly tool: string;
}

/** The request that a rule decides about. */
export interface AuthorizationContext {
  readonly auth: Auth | undefined;
  readonly principal: string;
  readonly session: { readonly id: string } | undefined;
  /** The client's description of itself, which it may choose: never a reason to allow. */
  readonly client: {
    readonly info: Implementation | undefined;
    readonly capabilities: ClientCapabilities;
    readonly revision: Revision;
    readonly era: Era;
  };
  readonly requestId: RequestId;
  readonly meta: JsonObject;
  /** Set for a call that a script makes (docs/code-mode.md). Undefined for a call of a client. */
  readonly via: CallVia | undefined;
  /** Aborted when the client cancels or disconnects, or the deadline passes. */
  readonly signal: AbortSignal;
}

/** The results of rules that features add, by their member. */
// biome-ignore lint/suspicious/noEmptyInterface: each feature declares its own results here (`declare module`).
export interface AddedDecisions {}

/**
 * The result of a rule. `true`: this rule has no objection. `{ scopes }`: allowed with these scopes, which are demanded
 * in one challenge with all others. `{ deny }` or `false`: rejected; the reason is for the operator. `{ hidden }`: the
 * element does not exist for this caller.
 */
export type AuthorizationDecision =
  | boolean
  | { readonly scopes: readonly string[] }
  | { readonly deny: string }
  | { readonly hidden: true }
  | AddedDecisions[keyof AddedDecisions];

/**
 * Decides about one use of one element. Every rule must agree. A rule that throws, returns anything else, or takes
 * longer than a second rejects the request.
 *
 * @example (call) => call.arguments.amount < 100 || { scopes: ['orders:refund:large'] }
 */
export type AuthorizationRule = (
  call: AuthorizationCall,
  ctx: AuthorizationContext,
) => AuthorizationDecision | Promise<AuthorizationDecision>;

/** The name and the version of a rule, for people and for what must change with the rule. */
export interface RuleName {
  /** 1 to 100 characters. Default: the name of the function. */
  readonly name?: string | undefined;
  /** 1 to 100 characters. Raise it when the rule decides otherwise about what people have decided by it. */
  readonly version?: string | undefined;
}

/** A rule about every element. */
export interface NamedRule extends RuleName {
  readonly rule: AuthorizationRule;
}

/** A result of a rule that a feature reads: the call runs once its condition is met. */
export interface RuleCondition {
  /** The value that the feature has read. */
  readonly value: unknown;
  readonly rule: RuleName;
}

/** The options of an element that decide who may use it. */
export interface Guarded {
  /** The scopes that a caller needs. An element whose scopes are missing is listed, so that clients can ask for them. */
  readonly scopes?: readonly string[] | undefined;
  /** A rule for this element, in addition to those of `server.authorize`. */
  readonly allow?: AuthorizationRule | undefined;
}

/** The same of a registered element. */
export interface ElementAccess {
  readonly scopes: readonly string[];
  readonly allow: AuthorizationRule | undefined;
  /** Further rules, which hide it from no caller: lists do not ask them. */
  readonly rules?: readonly NamedRule[] | undefined;
  readonly machine?: GuardedElement['machine'];
  /** The cell whose owner serves a use of it; undefined for one that its arguments and its caller do not decide. */
  cellOf?(args: Readonly<Record<string, unknown>>, request: Pick<RequestView, 'client' | 'auth'>): number | undefined;
  /** True if the element does not exist for the caller of a request. Asked before any rule. */
  hiddenFrom?(request: RequestView): boolean;
  /** More scopes, which depend on the arguments of a call. */
  demands?(args: JsonObject): readonly string[];
}

/** The part of a list that a caller sees. One object for all callers that see the same. */
export interface ListView {
  /** Names the view in cursors. Reveals nothing of its content. */
  readonly id: string;
  readonly hides: ReadonlySet<string>;
  /** The hidden keys as one text. */
  readonly text: string;
}
