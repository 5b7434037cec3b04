/** The methods of a client, for programs and for tests: `connect` of `troupe/client` and of `troupe/testing` returns them. */
import type { InspectionListener } from '../core/kernel/inspection/records.ts';
import type { JsonObject, JsonValue } from '../core/protocol/json.ts';
import type {
  ArgumentsOf,
  CallArguments,
  InputOf,
  KnownUri,
  NoneKnown,
  OutputOf,
  ResultOf,
  ServerTypes,
  UntypedServer,
} from '../core/protocol/server-types.ts';
import type { SkillEntry } from '../core/protocol/skills.ts';
import type {
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  Tool,
} from '../core/protocol/types.ts';
import type { CallbackSubscription, SubscribeOptions } from './callback-subscription.ts';
import type { ConnectedServer } from './client-connection.actor.ts';
import type { CallOptions, ListOptions } from './client-options.ts';
import type { ClientTask } from './client-task.ts';
import type { Changes, ChangesFilter } from './server-changes.ts';
import type { EventsOptions, ServerEvents, ServerEventType } from './server-events.ts';
import type { Skill } from './server-skills.ts';

/** An argument whose values the server completes. */
export type CompletionReference = { readonly prompt: string } | { readonly resource: string };

/** Tools of a server without types. */
export interface AnyTools {
  /**
   * Calls a tool, answers what the server asks, and waits for a task to end. A result with `isError` is returned, not
   * thrown.
   *
   * @example const result = await client.call('search', { q: 'tea' }, { timeoutMs: 10_000 });
   */
  call(name: string, args?: JsonObject, options?: CallOptions): Promise<CallToolResult>;
  /**
   * Starts a tool call as a task, which outlives the connection.
   *
   * @throws {ClientError} if the server ran the call at once, without a task; its result is in `cause`
   * @example const task = await client.start('report', { year: 2026 }); save(task.id);
   */
  start(name: string, args?: JsonObject, options?: CallOptions): Promise<ClientTask>;
  /**
   * Calls a tool, and returns the structured content of its result.
   *
   * @throws {ClientError} `tool error` with the text of the tool if the result has `isError`, and `malformed` if it has no
   *   structured content; `cause` is the result. Otherwise as `call`
   * @example const { hits } = await client.data('search', { q: 'tea' });
   */
  data(name: string, args?: JsonObject, options?: CallOptions): Promise<JsonValue>;
}

/** Tools of a server with types. */
export interface ToolsOf<Tools> {
  /**
   * Calls a tool, answers what the server asks, and waits for a task to end. A result with `isError` is returned, not
   * thrown.
   *
   * @example const result = await client.call('search', { q: 'tea' }, { timeoutMs: 10_000 });
   */
  call<Name extends keyof Tools & string>(
    name: Name,
    ...given: CallArguments<InputOf<Tools[Name]>, CallOptions>
  ): Promise<ResultOf<Tools[Name]>>;
  /**
   * Starts a tool call as a task, which outlives the connection.
   *
   * @throws {ClientError} if the server ran the call at once, without a task; its result is in `cause`
   * @example const task = await client.start('report', { year: 2026 }); save(task.id);
   */
  start<Name extends keyof Tools & string>(
    name: Name,
    ...given: CallArguments<InputOf<Tools[Name]>, CallOptions>
  ): Promise<ClientTask>;
  /**
   * Calls a tool, and returns the structured content of its result.
   *
   * @throws {ClientError} `tool error` with the text of the tool if the result has `isError`, and `malformed` if it has no
   *   structured content; `cause` is the result. Otherwise as `call`
   * @example const { hits } = await client.data('search', { q: 'tea' });
   */
  data<Name extends keyof Tools & string>(
    name: Name,
    ...given: CallArguments<InputOf<Tools[Name]>, CallOptions>
  ): Promise<Exclude<OutputOf<Tools[Name]>, undefined>>;
}

/** Prompts of a server without types. */
export interface AnyPrompts {
  /** Gets a prompt. */
  prompt(name: string, args?: Readonly<Record<string, string>>, options?: CallOptions): Promise<GetPromptResult>;
}

/** Prompts of a server with types. */
export interface PromptsOf<Prompts> {
  /** Gets a prompt. */
  prompt<Name extends keyof Prompts & string>(
    name: Name,
    ...given: CallArguments<ArgumentsOf<Prompts[Name]>, CallOptions>
  ): Promise<GetPromptResult>;
}

/** Resources of a server without types. */
export interface AnyResources {
  /** Reads a resource. */
  read(uri: string, options?: CallOptions): Promise<ReadResourceResult>;
}

/** Resources of a server with types. */
export interface ResourcesOf<Resources> {
  /** Reads a resource. The compiler checks an address that is written in the program. */
  read<const Uri extends string>(uri: KnownUri<Resources, Uri>, options?: CallOptions): Promise<ReadResourceResult>;
}

/**
 * A connection to one server, of any revision. It reconnects by itself; a call that may have been carried out is never
 * repeated. Each method that sends a request throws an `ErrorResponse` for a JSON-RPC error of the server, and a `ClientError`
 * with `carriedOut` for every other failure.
 *
 * @typeParam Types of the server: `typeof server`'s, or those of a file of `troupe types`. Without them each name is accepted.
 */
export type Client<Types extends ServerTypes = UntypedServer> = Connected &
  (NoneKnown<Types['tools']> extends true ? AnyTools : ToolsOf<Types['tools']>) &
  (NoneKnown<Types['prompts']> extends true ? AnyPrompts : PromptsOf<Types['prompts']>) &
  (NoneKnown<Types['resources']> extends true ? AnyResources : ResourcesOf<Types['resources']>);

/** The methods of each client that do not depend on the types of its server. */
export interface Connected {
  /** The server: name, revision, era, capabilities, instructions. @throws {Error} before the client has connected */
  readonly server: ConnectedServer;
  /** The state of the connection: `ready`, `connecting`, `backingOff`, `suspended`, `closed` and others (docs/client.md). */
  readonly state: string;
  /** The last lines that the server's process wrote to stderr, at most 64 KiB. Empty for other targets. */
  readonly stderr: string;

  /** All tools, of all pages. Cached; `fresh` asks the server. */
  tools(options?: ListOptions): Promise<readonly Tool[]>;
  resources(options?: ListOptions): Promise<readonly Resource[]>;
  /** All resource templates. */
  templates(options?: ListOptions): Promise<readonly ResourceTemplate[]>;
  prompts(options?: ListOptions): Promise<readonly Prompt[]>;
  /** The entries of all skills (SEP-2640). Reads no file of a skill. */
  skills(options?: ListOptions): Promise<readonly SkillEntry[]>;

  /** A task of an earlier call, of this process or another. Nothing is sent before its first method is called. */
  task(id: string): ClientTask;
  /**
   * Loads a skill: reads its SKILL.md, and checks size, digest and frontmatter against the entry. Other files are read by
   * the skill when they are needed.
   *
   * @param skill an entry of {@link skills}, or the address of a SKILL.md, for which the server is asked
   * @throws {ClientError} `malformed` for a file or frontmatter that is not the listed one, and as `call`
   * @example const { instructions } = await client.skill('skill://pdf-processing/SKILL.md');
   */
  skill(skill: string | SkillEntry, options?: CallOptions): Promise<Skill>;
  /**
   * Completes an argument of a prompt, or a variable of a resource template.
   *
   * @param known the arguments that are known already
   */
  complete(
    reference: CompletionReference,
    argument: { readonly name: string; readonly value: string },
    known?: Readonly<Record<string, string>>,
    options?: CallOptions,
  ): Promise<CompleteResult['completion']>;
  /** Sends any request, and returns its result as it came. Input requests are not answered. */
  request(method: string, params?: JsonObject, options?: CallOptions): Promise<JsonValue>;
  /**
   * The changes of the server, until the loop is left or the client closes. After a lost connection it subscribes again
   * and reports `missed`.
   *
   * @example for await (const change of client.changes({ tools: true, resources: ['notes://1'] })) console.log(change);
   */
  changes(filter: ChangesFilter): Changes;
  /** The event types of the server (SEP-3415; experimental). None if it has no events. */
  eventTypes(options?: ListOptions): Promise<readonly ServerEventType[]>;
  /**
   * The events of a type, until the loop is left or the client closes (experimental). Each event once, in the order of the server;
   * `{ gap: true }` where some may be missing. After a lost connection it continues.
   *
   * @param args the arguments of the subscription
   * @example for await (const event of client.events('order.paid', {}, { since: kept })) if (!event.gap) handle(event.data);
   */
  events(name: string, args?: JsonObject, options?: EventsOptions): ServerEvents;
  /**
   * Subscribes a URL to the events of a type: the server delivers them there, whether or not this client is connected (experimental).
   * The subscription is refreshed as long as this client is open.
   *
   * @param args the arguments of the subscription
   * @throws {TypeError | RangeError} for an invalid option
   * @throws {ClientError} if the server rejects the subscription, or cannot reach the URL
   * @example const subscription = await client.subscribe('order.paid', {}, { url: 'https://mine.example.com/events', secret });
   */
  subscribe(name: string, args: JsonObject, options: SubscribeOptions): Promise<CallbackSubscription>;
  /** Announces that the result of `roots` has changed, to servers that keep it (2025-11-25 and earlier). */
  rootsChanged(): void;
  /**
   * Calls the listener with each record of what the client's actors do, beginning with those that exist now, until the
   * returned function is called.
   */
  inspect(listener: InspectionListener): () => void;
  /** Ends the connection and what it started. Idempotent. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
