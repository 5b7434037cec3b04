/** The middleware contract: a function around every request, typed by its method. Types only. */

import type { MethodContext } from '../../core/execution/context.ts';
import type { InputRequest } from '../../core/messages/client-input.ts';
import type { TaskState } from '../../core/messages/results.ts';
import type { AddedMethod, CompletionRef } from '../../core/protocol/operations.ts';
import type { SkillEntry } from '../../core/protocol/skills.ts';
import type { SubscriptionFilter } from '../../core/protocol/subscription-filter.ts';
import type {
  CallToolResult,
  ClientCapabilities,
  CompleteResult,
  GetPromptResult,
  Implementation,
  LogLevel,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  ServerCapabilities,
  Tool,
} from '../../core/protocol/types.ts';

/** The result of a request whose response carries no data. */
export type NoResult = Readonly<Record<string, never>>;

/** The server's description of itself, in the results of `initialize` and `server/discover`. */
export interface Introduction {
  readonly serverInfo: Implementation;
  readonly capabilities: ServerCapabilities;
  readonly instructions?: string | undefined;
}

/** A task, as its requests show it. */
export type TaskInfo = Omit<TaskState, 'outcome' | 'inputs'>;

/** The call has become a task: its result comes later, to the client's `tasks/…` requests. */
export interface TaskStarted {
  readonly resultType: 'task';
  readonly task: TaskInfo;
}

/** The handler asks its client for input. The client sends a new request with the answers, which middleware sees as well. */
export interface InputRequired {
  readonly resultType: 'input_required';
  readonly inputRequests: Readonly<Record<string, InputRequest>>;
}

type NextPage = { readonly nextCursor?: string | undefined };
type Cursor = { readonly cursor: string | undefined };
type TaskId = { readonly taskId: string };
type Watched = { readonly params: { readonly uri: string }; readonly result: NoResult };

/** The parameters and the result of each request of both eras. Notifications are not requests. */
export interface RequestMethods {
  readonly 'tools/call': {
    /** The arguments as the client sent them: the tool's schema checks them after the last middleware. */
    readonly params: { readonly name: string; readonly arguments: Readonly<Record<string, unknown>> };
    readonly result: CallToolResult | TaskStarted | InputRequired;
  };
  readonly 'tools/list': { readonly params: Cursor; readonly result: { readonly tools: readonly Tool[] } & NextPage };
  readonly 'resources/read': {
    readonly params: { readonly uri: string };
    readonly result: ReadResourceResult | InputRequired;
  };
  readonly 'resources/list': {
    readonly params: Cursor;
    readonly result: { readonly resources: readonly Resource[] } & NextPage;
  };
  readonly 'resources/templates/list': {
    readonly params: Cursor;
    readonly result: { readonly resourceTemplates: readonly ResourceTemplate[] } & NextPage;
  };
  readonly 'resources/directory/read': {
    readonly params: { readonly uri: string } & Cursor;
    readonly result: { readonly resources: readonly Resource[] } & NextPage;
  };
  readonly 'skills/list': {
    readonly params: Cursor;
    readonly result: { readonly skills: readonly SkillEntry[] } & NextPage;
  };
  readonly 'skills/get': { readonly params: { readonly uri: string }; readonly result: { readonly skill: SkillEntry } };
  readonly 'resources/subscribe': Watched;
  readonly 'resources/unsubscribe': Watched;
  readonly 'prompts/get': {
    readonly params: { readonly name: string; readonly arguments: Readonly<Record<string, string>> };
    readonly result: GetPromptResult | InputRequired;
  };
  readonly 'prompts/list': {
    readonly params: Cursor;
    readonly result: { readonly prompts: readonly Prompt[] } & NextPage;
  };
  readonly 'completion/complete': {
    readonly params: {
      readonly ref: CompletionRef;
      readonly argument: { readonly name: string; readonly value: string };
      /** The arguments that the client has already resolved. */
      readonly resolved: Readonly<Record<string, string>>;
    };
    readonly result: CompleteResult;
  };
  readonly initialize: {
    readonly params: {
      readonly protocolVersion: string;
      readonly capabilities: ClientCapabilities;
      readonly clientInfo: Implementation;
    };
    readonly result: Introduction;
  };
  readonly 'server/discover': { readonly params: NoResult; readonly result: Introduction };
  readonly ping: { readonly params: NoResult; readonly result: NoResult };
  readonly 'logging/setLevel': { readonly params: { readonly level: LogLevel }; readonly result: NoResult };
  /** `next` resolves when the subscription has been passed on, not when it ends. */
  readonly 'subscriptions/listen': {
    readonly params: { readonly filter: SubscriptionFilter };
    readonly result: NoResult;
  };
  readonly 'tasks/get': { readonly params: TaskId; readonly result: { readonly task: TaskInfo } };
  readonly 'tasks/cancel': { readonly params: TaskId; readonly result: { readonly task: TaskInfo } | NoResult };
  readonly 'tasks/result': { readonly params: TaskId; readonly result: CallToolResult | NoResult };
  readonly 'tasks/update': {
    readonly params: TaskId & { readonly responses: Readonly<Record<string, unknown>> };
    readonly result: NoResult;
  };
  readonly 'tasks/list': {
    readonly params: Cursor;
    readonly result: { readonly tasks: readonly TaskInfo[] } & NextPage;
  };
  /** Their params and their results are for the events of the server only. */
  readonly 'events/list': { readonly params: NoResult; readonly result: NoResult };
  readonly 'events/poll': { readonly params: NoResult; readonly result: NoResult };
  readonly 'events/subscribe': { readonly params: NoResult; readonly result: NoResult };
  readonly 'events/unsubscribe': { readonly params: NoResult; readonly result: NoResult };
  /** `next` resolves when the stream has been passed on, not when it ends. */
  readonly 'events/stream': { readonly params: NoResult; readonly result: NoResult };
  /** A method that a feature of the program has added. Its params and its result are for the feature only. */
  readonly [method: AddedMethod]: { readonly params: NoResult; readonly result: NoResult };
}

export type RequestMethodName = keyof RequestMethods;

/** One request, as a middleware receives it. `call.method` decides the type of `call.params`. */
export type RequestCall<M extends RequestMethodName = RequestMethodName> = {
  readonly [N in M]: { readonly method: N; readonly params: RequestMethods[N]['params'] };
}[M];

/** The result of a request. */
export type RequestResult<M extends RequestMethodName = RequestMethodName> = RequestMethods[M]['result'];

/**
 * Passes the request on: to the next middleware, then to the server. Rejects with a {@link ProtocolError} if the
 * response is an error. A tool that fails has a result with `isError`. Call it at most once.
 */
export interface NextFunction<M extends RequestMethodName = RequestMethodName> {
  (): Promise<RequestResult<M>>;
  /**
   * Passes on this call. It may have other parameters than the call that the middleware received, if its method is
   * `tools/call`, `resources/read`, `prompts/get` or `completion/complete`.
   *
   * @example if (call.method === 'tools/call') return next({ ...call, params: { ...call.params, arguments: {} } });
   */
  <N extends M>(call: { readonly method: N; readonly params: RequestMethods[N]['params'] }): Promise<RequestResult<N>>;
}

/** The context of a middleware: that of the handler, without what asks the client and without `step`. */
export type MiddlewareContext = MethodContext;

/**
 * A function around requests. It returns the result of `next()`, unchanged or changed, or another result without
 * calling `next`, or throws. See docs/authors.md, "Middleware".
 */
export type Middleware<M extends RequestMethodName = RequestMethodName> = (
  call: RequestCall<M>,
  ctx: MiddlewareContext,
  next: NextFunction<M>,
) => RequestResult<M> | Promise<RequestResult<M>>;
