/** The server object of the public API: register elements, listen, close, supervise. */

import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AnyStateMachine } from 'xstate';
import type { Context } from '../../core/execution/context.ts';
import type { State } from '../../core/execution/state.ts';
import { MountedTransport } from '../../core/http/mount.ts';
import { systemClock } from '../../core/kernel/clock.ts';
import type { InspectionListener } from '../../core/kernel/inspection/records.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import { type MetricsFormat, metricsText } from '../../core/kernel/telemetry/prometheus.ts';
import type { AuthorizationRule, RuleName } from '../../core/messages/authorization-rule.ts';
import { describe, isObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { ServerTypes, UntypedServer } from '../../core/protocol/server-types.ts';
import type { Implementation, PromptArgument } from '../../core/protocol/types.ts';
import type {
  AnyPrompt,
  AnyTool,
  MachineToolOptions,
  PromptHandler,
  PromptOptions,
  ResourceDefinition,
  ResourceHandler,
  ResourceOptions,
  ThreadToolOptions,
  ToolHandler,
  ToolOptions,
  WithoutHandler,
} from '../../core/registry/define.ts';
import { checkHandler, checkOptionsOf, DefinitionError, isHandler } from '../../core/registry/definition-checks.ts';
import type {
  MachineOutput,
  OnePrompt,
  OneResource,
  OneTool,
  ReturnedOutput,
  SchemaOutput,
  TypesIn,
} from '../../core/registry/offered-types.ts';
import { elementLabel, resourceLabel } from '../../core/registry/offers.ts';
import type { PromptRegistration, Registration, ToolRegistration } from '../../core/registry/registration.ts';
import type { AuthorSchema, Infer, MaybeInput, UnknownArguments } from '../../core/schema/schema-types.ts';
import { type Feature, featuresIn, optionRows } from '../../core/server/feature.ts';
import { launcher } from '../../core/server/launcher.ts';
import type { ServerOptions } from '../../core/server/options.ts';
import { createRuntime, type Runtime } from '../../core/server/runtime.ts';
import { LaunchedStore } from '../../core/store/launched-store.ts';
import type { DeadLetter } from '../../core/store/store.ts';
import type { Readiness, Transport } from '../../core/transports/transport.ts';
import type { MountArguments, MountRegistration } from '../../gateway/mounts/define-mount.ts';
import type { Mount, MountOptions, MountTarget } from '../../gateway/mounts/mount-options.ts';
import { mounts } from '../../gateway/mounts/mounts.feature.ts';
import type { Approvals } from '../approvals/approval-interface.ts';
import { approvals } from '../approvals/approvals.feature.ts';
import type { AppOptions } from '../apps/app-options.ts';
import type { AppRegistration, RegisteredApp } from '../apps/app-registration.ts';
import { apps } from '../apps/apps.feature.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { checkClusterOptions } from '../cluster/cluster-options.ts';
import type { ClusterReport } from '../cluster/cluster-report.ts';
import { type Discovered, type DiscoverOptions, discover } from '../discovery/discover.ts';
import type { EventData, EventOptions } from '../events/event-definition.ts';
import type { RegisteredEvent } from '../events/event-topics.ts';
import { events } from '../events/events.feature.ts';
import { forgetting } from '../forgetting/forgetting.feature.ts';
import type { ForgottenData } from '../forgetting/forgotten-data.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import type { AuditQuery, AuditRecord } from '../guard/audit/audit-record.ts';
import { authorization } from '../guard/authorization/authorization.feature.ts';
import type { HookOptions } from '../hooks/define-hook.ts';
import { hooks } from '../hooks/hooks.feature.ts';
import type { Hook } from '../hooks/registered-hooks.ts';
import type { AnyMachine, MachineOptions, TakesInput } from '../machines/define-machine.ts';
import type { HandleView } from '../machines/handle-messages.ts';
import type { CreateOption, MachineKey } from '../machines/key-options.ts';
import type { SendOptions } from '../machines/machine-definition.ts';
import type { EventSchemas, MachineInput, OneMachine } from '../machines/machine-types.ts';
import { machines } from '../machines/machines.feature.ts';
import type { MachineRegistration } from '../machines/registered-machines.ts';
import { middleware as registered } from '../middleware/middleware.feature.ts';
import type { Middleware, RequestMethodName } from '../middleware/middleware.ts';
import { MiddlewareLinks } from '../middleware/middleware-links.ts';
import type { RegisteredSchedule, ScheduleHandler, ScheduleOptions } from '../schedules/schedule-definition.ts';
import { schedules } from '../schedules/schedules.feature.ts';
import { skills } from '../skills/skills.feature.ts';
import type { RegisteredSkills, SkillsOptions } from '../skills/skills-options.ts';
import { state } from '../state/state.feature.ts';
import type { Supervised } from '../workers/supervised.ts';
import { workers } from '../workers/workers.feature.ts';
import { DeadLetters } from './dead-letters.ts';
import { FEATURES } from './features.ts';
import { INTERNALS, type Internals } from './internals.ts';

/** Marks a server of any copy of this package: `troupe dev` loads modules afresh. */
const SERVER = Symbol.for('troupe.server');

/**
 * Creates a server. It serves what is registered, in every revision of the protocol, on each transport that it listens
 * on.
 * @throws {TypeError} if the name or version is missing
 * @throws {RangeError} if a limit is not a whole number of at least 1
 * @throws {TypeError | RangeError} if an option of `http` is invalid
 * @example
 * const server = createServer({ name: 'greeter', version: '1.0.0' });
 * server.tool('greet', { input: z.object({ name: z.string() }) }, ({ name }) => `Hello, ${name}!`);
 * await server.listen(stdio());
 */
export function createServer<
  const T extends readonly AnyTool[] = [],
  const P extends readonly AnyPrompt[] = [],
  const R extends readonly ResourceDefinition[] = [],
  const M extends readonly AnyMachine[] = [],
>(
  options: ServerOptions & {
    readonly tools?: T | undefined;
    readonly prompts?: P | undefined;
    readonly resources?: R | undefined;
    readonly machines?: M | undefined;
  },
): Server<TypesIn<readonly [...T, ...P, ...R, ...M]>> {
  return new Server(options);
}

/** True for a server from {@link createServer}, of this copy of the package or another. */
export function isServer(value: unknown): value is Server {
  return typeof value === 'object' && value !== null && SERVER in value;
}

/**
 * A server.
 *
 * @typeParam Known the types of the elements of which it knows: those of the lists of {@link createServer}, and of a chain of
 *   `tool`, `prompt`, `resource` and `machine`. `connect<typeof server>(…)` has their names, arguments and results.
 */
export class Server<out Known extends ServerTypes = UntypedServer> {
  /** Types only: no value has it. */
  declare readonly '~types': Known;
  readonly [SERVER] = true;
  readonly info: Implementation;
  /** The options it was created with. */
  readonly options: ServerOptions;
  readonly tools: ToolRegistration;
  readonly resources: Registration<ResourceDefinition>;
  readonly prompts: PromptRegistration;
  readonly #runtime: Runtime;
  readonly #mount: Lazy<MountedTransport>;
  #opening: Promise<void> | undefined;
  #open = false;

  constructor(options: ServerOptions) {
    if (!isObject(options))
      throw new TypeError(
        `createServer: expected options such as { name: 'my-server', version: '1.0.0' }, got ${describe(options)}`,
      );
    const features = [...FEATURES, ...featuresIn(options)];
    option.check('createServer: ', options, optionRows(features));
    this.info = readInfo(options);
    // The launcher of the program may provide a store (`troupe run --data DIR`).
    const given = options.store ? undefined : launcher()?.store?.();
    const store = options.store ?? (given && new LaunchedStore(given, this.info.name));
    const cluster = options.cluster ?? launcher()?.cluster?.();
    const provided = store !== options.store || cluster !== options.cluster;
    this.options = provided ? { ...options, ...(store && { store }), ...(cluster && { cluster }) } : options;
    if (cluster && cluster !== options.cluster) checkClusterOptions(cluster);
    if (cluster && !store?.nodes)
      throw new TypeError(
        `createServer: cluster: expected a store that several processes share, such as postgres(url), got ${store?.name ?? 'none'}. Name a PostgreSQL database with the option store, with --store or with TROUPE_STORE`,
      );
    this.#runtime = createRuntime(this.options, this.info, features);
    const { http } = options;
    this.#mount = new Lazy(() => new MountedTransport(http ?? {}));
    // Now, so that an invalid option is reported here and not to the first client.
    if (http !== undefined) void this.#mount.value;
    const { core } = this.#runtime;
    this.tools = core.elements.tools();
    this.resources = core.elements.resources();
    this.prompts = core.elements.prompts();
    for (const definition of options.tools ?? []) this.tools.register(definition);
    for (const definition of options.resources ?? []) this.resources.register(definition);
    for (const definition of options.prompts ?? []) this.prompts.register(definition);
    for (const definition of options.machines ?? []) this.machines.register(definition);
  }

  get machines(): MachineRegistration {
    return this.#service(machines);
  }

  get apps(): AppRegistration {
    return this.#service(apps).registration;
  }

  get mounts(): MountRegistration {
    return this.#service(mounts);
  }

  #service<S>(feature: Feature<S>): S {
    return this.#runtime.core.service(feature);
  }

  /**
   * Registers a tool. Its input and the return type of its handler become a part of the type of the server that it returns,
   * which is this server.
   * @throws {DefinitionError | SchemaError} if the definition is invalid or the name is taken; the message names the
   *   fix
   * @example server.tool('add', { input: z.object({ a: z.number(), b: z.number() }) }, ({ a, b }) => a + b);
   */
  tool<const N extends string, const I extends MaybeInput = undefined, R = unknown>(
    name: N,
    options: ToolOptions<I, undefined>,
    handler: (args: Infer<I>, ctx: Context) => R,
  ): Server<Known & OneTool<N, I, ReturnedOutput<Awaited<R>>>>;
  /**
   * Registers a tool whose results have a schema, which checks them before they are sent.
   * @throws {DefinitionError | SchemaError} as without a schema of the result
   * @example server.tool('weigh', { output: z.object({ grams: z.number() }) }, () => ({ grams: 12 }));
   */
  tool<const N extends string, const I extends MaybeInput = undefined, const O extends AuthorSchema = AuthorSchema>(
    name: N,
    options: ToolOptions<I, O>,
    handler: ToolHandler<I, O>,
  ): Server<Known & OneTool<N, I, SchemaOutput<O>>>;
  /**
   * Registers a tool without parameters and without a description.
   * @throws {DefinitionError} if the name is invalid or taken
   * @example server.tool('ping', () => 'pong');
   */
  tool<const N extends string, R>(
    name: N,
    handler: (args: UnknownArguments, ctx: Context) => R,
  ): Server<Known & OneTool<N, undefined, ReturnedOutput<Awaited<R>>>>;
  /**
   * Registers a statechart as a tool: a call runs it to its final state, and its output is the result. See {@link
   * MachineToolOptions}.
   * @example server.tool('order', { input: z.object({ item: z.string() }), machine: orderMachine });
   */
  tool<const N extends string, const I extends MaybeInput = undefined, M extends AnyStateMachine = AnyStateMachine>(
    name: N,
    options: MachineToolOptions<I, M>,
  ): Server<Known & OneTool<N, I, MachineOutput<M>>>;
  /**
   * Registers a tool whose handler computes for long and runs in a thread. See {@link ThreadToolOptions}.
   * @example server.tool('primes', { input: z.object({ upTo: z.int() }), cpu: new URL('./primes.ts', import.meta.url) });
   */
  tool<
    const N extends string,
    const I extends MaybeInput = undefined,
    const O extends AuthorSchema | undefined = undefined,
  >(
    name: N,
    options: ThreadToolOptions<I, O>,
  ): Server<Known & OneTool<N, I, [O] extends [AuthorSchema] ? SchemaOutput<O> : JsonValue | undefined>>;
  /** The compiler reports the last overload: this one names the missing handler, machine or module of a call. */
  tool<T extends object>(name: string, options: T & WithoutHandler<T>): this;
  tool(
    name: string,
    options: Omit<AnyTool, 'name' | 'handler'> | AnyTool['handler'] | string,
    handler?: AnyTool['handler'],
  ): object {
    if (isHandler(options) && handler === undefined) this.tools.register({ name, handler: options });
    else {
      checkOptionsOf(elementLabel('tool', name), options);
      this.tools.register({ ...options, name, ...(handler === undefined ? {} : { handler }) });
    }
    return this;
  }

  /**
   * Registers a statechart whose instances live behind handles. Clients get tools that create an instance, send it each
   * of the listed events, and show, list and end instances; each instance is also a resource. Instances outlive their
   * clients and, with a durable store, the process. See {@link MachineOptions}.
   * @throws {DefinitionError | SchemaError | TypeError} if the definition is invalid or a name is taken; the message
   *   names the fix
   * @example server.machine('order', orderMachine, { events: { add_item: z.object({ sku: z.string() }), pay: true } });
   */
  machine<
    const N extends string,
    M extends AnyStateMachine,
    const I extends MaybeInput = undefined,
    const E extends EventSchemas = EventSchemas,
    V = unknown,
    const Single extends boolean = false,
    const K extends MachineKey | undefined = undefined,
    const C extends CreateOption | undefined = undefined,
  >(
    name: N,
    machine: M & TakesInput<M, MachineInput<I, K>>,
    options: MachineOptions<M, I, E, V, Single, K, C>,
  ): Server<Known & OneMachine<N, M, I, E, V, Single, K, C>>;
  /** Rejects a call without options: the compiler's message names the missing events. */
  machine(
    name: string,
    machine: 'The events are missing. Pass them as the third argument: server.machine(name, machine, { events: { pay: true } })',
  ): this;
  machine(
    name: string,
    machine: AnyStateMachine | string,
    options: Omit<AnyMachine, 'name' | 'machine'> = { events: {} },
  ): object {
    if (typeof machine === 'string')
      throw new DefinitionError(`machine "${name}": expected a statechart, got ${describe(machine)}`);
    checkOptionsOf(`machine "${name}"`, options);
    this.machines.register({ ...options, name, machine });
    return this;
  }

  /**
   * Registers a resource or, with a URI template (RFC 6570), a family of resources. The types of the variables follow
   * from the literal text: `order://{id}/items{?page}` gives `{ id: string; page?: string }`.
   * @throws {DefinitionError | TemplateError} if the definition is invalid or the URI is taken; the message names the
   *   fix
   * @example server.resource('notes://{id}', { mimeType: 'text/plain' }, ({ variables: { id } }) => notes.get(id) ?? '');
   */
  resource<const U extends string>(
    uri: U,
    options: ResourceOptions<U>,
    handler: ResourceHandler<U>,
  ): Server<Known & OneResource<U>>;
  /**
   * Registers a resource without options.
   * @throws {DefinitionError | TemplateError} if the URI is invalid or taken
   * @example server.resource('app://time', () => new Date().toISOString());
   */
  resource<const U extends string>(uri: U, handler: ResourceHandler<U>): Server<Known & OneResource<U>>;
  resource(uri: string, options: ResourceOptions | ResourceHandler, handler?: ResourceHandler): object {
    if (isHandler(options) && handler === undefined) this.resources.register({ uri, handler: options });
    else {
      checkHandler(handler, resourceLabel(uri));
      checkOptionsOf(resourceLabel(uri), options);
      this.resources.register({ ...options, uri, handler });
    }
    return this;
  }

  /**
   * Registers a prompt.
   * @throws {DefinitionError | SchemaError} if the definition is invalid or the name is taken; the message names the
   *   fix
   * @example server.prompt('review', { arguments: [{ name: 'code', required: true }] }, ({ code }) => `Review this:\n${code}`);
   */
  prompt<
    const N extends string,
    const I extends MaybeInput = undefined,
    const A extends readonly PromptArgument[] | undefined = undefined,
  >(name: N, options: PromptOptions<I, A>, handler: PromptHandler<I, A>): Server<Known & OnePrompt<N, I, A>>;
  /**
   * Registers a prompt without options.
   * @throws {DefinitionError} if the name is invalid or taken
   * @example server.prompt('standup', () => 'Summarize the commits since yesterday.');
   */
  prompt<const N extends string>(
    name: N,
    handler: PromptHandler<undefined>,
  ): Server<Known & OnePrompt<N, undefined, undefined>>;
  prompt(
    name: string,
    options: Omit<AnyPrompt, 'name' | 'handler'> | AnyPrompt['handler'],
    handler?: AnyPrompt['handler'],
  ): object {
    if (isHandler(options) && handler === undefined) this.prompts.register({ name, handler: options });
    else {
      const label = elementLabel('prompt', name);
      checkOptionsOf(label, options);
      checkHandler(handler, label);
      this.prompts.register({ ...options, name, handler });
    }
    return this;
  }

  /**
   * Registers an app: a page that hosts with views show beside the results of the tools that open it (MCP Apps). Other
   * clients get the same answers as without it. See docs/apps.md.
   *
   * @throws {DefinitionError} if the page cannot be read, an origin is too wide, or the name is taken
   * @example server.app('board', { html: new URL('./board.html', import.meta.url), tools: ['board_show'] });
   */
  app(name: string, options: AppOptions): RegisteredApp {
    if (!isObject(options)) throw new DefinitionError(`app "${name}": expected options, got ${describe(options)}`);
    return this.apps.register({ ...options, name });
  }

  /**
   * Registers an event type, whose events clients poll or stream (SEP-3415; experimental). See docs/events.md.
   *
   * @param name 1 to 128 letters, digits, `_`, `-` and `.`
   * @returns emits its events
   * @throws {DefinitionError | SchemaError} if the definition is invalid or the name is taken; the message names the fix
   * @example
   * const paid = server.event('order.paid', { description: 'An order was paid.', payload: z.object({ order: z.string() }) });
   * await paid.emit({ order: 'o1' });
   */
  event<const P extends AuthorSchema, const I extends AuthorSchema | undefined = undefined>(
    name: string,
    options: EventOptions<P, I>,
  ): RegisteredEvent<EventData<P>> {
    return this.#service(events).register(name, options, () => this.#runtime.openStore());
  }

  /**
   * Offers a folder of skills (SEP-2640): each folder in it that has a SKILL.md is listed with the digests of its files. Files
   * that change are served without a restart. An invalid skill is left out, with a warning that has its file and line. See
   * docs/skills.md.
   *
   * @param folder relative to the working directory, or a URL such as `new URL('./skills', import.meta.url)`
   * @throws {DefinitionError | TypeError | RangeError} if the folder does not exist, an option is invalid, or, with `strict`,
   *   a skill is
   * @example await server.skills(new URL('./skills', import.meta.url), { prefix: 'acme' });
   */
  skills(folder: string | URL, options: SkillsOptions = {}): Promise<RegisteredSkills> {
    return this.#service(skills).folder(folder, options);
  }

  /**
   * Offers another server as a part of this one: its tools and prompts as `name_tool`, its resources as `name+scheme:rest`. The
   * server may be of any revision, and in another process, on another machine or in this process. Its catalogue is kept, so that a
   * server that does not respond affects only the calls to it. See docs/gateway.md.
   *
   * @param name 1 to 24 lower-case letters, digits and `-`, such as `gh`
   * @param target as for `connect` of `troupe/client`: a URL, `{ command, args }`, `{ socket }`, or a `Server`
   * @returns resolves when the mount exists; `ready()` waits for its catalogue, and so does `listen`, for a time
   * @throws {DefinitionError | TypeError} for an invalid or taken name, or an invalid option
   * @example await server.mount('files', { command: 'npx', args: ['-y', '@modelcontextprotocol/server-filesystem', '.'] });
   */
  mount(name: string, target: MountTarget, options?: MountOptions): Promise<Mount>;
  /**
   * Offers another server of this process as a part of this one, under its own name.
   *
   * @throws as with a name
   * @example await server.mount(shop, { prefix: false });
   */
  mount(server: Server, options?: MountOptions): Promise<Mount>;
  mount(...given: MountArguments): Promise<Mount> {
    return this.#service(mounts).mount(given);
  }

  /**
   * Calls a handler at dates: once in a cluster, and with a durable store also after downtime. It runs while the server
   * listens. See docs/schedules.md.
   *
   * @param name 1 to 64 letters, digits, `_`, `-` or `.`
   * @throws {DefinitionError | TypeError | RangeError} for a taken name, an unknown time zone, or a pattern without a date
   * @example server.schedule('nightly', { cron: '0 3 * * *', timeZone: 'Europe/Berlin' }, async ({ scheduledFor }) => tidy(scheduledFor));
   */
  schedule(name: string, options: ScheduleOptions, handler: ScheduleHandler): RegisteredSchedule {
    return this.#service(schedules).define(name, options, handler);
  }

  /**
   * Receives the webhooks of another service at a path of the HTTP transport. A delivery is verified, then stored, then answered with
   * 200; its handler runs after that, at least once, also after a crash. See docs/webhooks.md.
   *
   * @param path as the sender requests it, without a slash at its end
   * @throws {DefinitionError} for a path that is none or is taken, or an invalid option
   * @example
   * server.webhook('/hooks/github', {
   *   verify: github({ secret: process.env.GITHUB_SECRET }),
   *   to: ({ type, body }) => console.error(type, body),
   * });
   */
  webhook(path: string, options: HookOptions): Hook {
    return this.#service(hooks)(true).register(path, options);
  }

  /**
   * Sends an event to the instance of a key, and creates the instance if there is none. The sender is the program: it needs no
   * role, and may send every event of the chart. See docs/keys.md.
   *
   * @param key of a machine that is keyed by principal, the principal
   * @param options.create `false`: an event for a key without an instance is rejected with the reason `unknown`
   * @param options.idempotencyKey the event of a repeated call is not sent again. Without one, an error of the reason `storage` may
   *   mean that the event has arrived
   * @returns the instance after the event, once that is durable
   * @throws {HandleError} if the machine is unknown or not keyed, or the instance does not accept the event
   * @throws {TypeError} for an event without a type
   * @example await server.send('room', 'lobby', { type: 'say', text: 'Good morning' });
   */
  async send(
    machine: string,
    key: string,
    event: { readonly type: string; readonly [member: string]: unknown },
    options: SendOptions = {},
  ): Promise<HandleView> {
    await this.#runtime.openStore();
    return this.#service(machines).send(machine, key, event, options);
  }

  /**
   * The state of a principal, as `ctx.state` has it in the calls of that principal: for code outside of a call, such as the
   * deletion of an account. The server must listen. See docs/state.md.
   *
   * @param principal as `ctx.principal` has it
   * @throws {StateError} `no caller` for `anonymous`, which is everybody
   * @example await server.stateOf('user-4711').clear();
   */
  stateOf(principal: string): State {
    return this.#service(state).of(principal);
  }

  /**
   * Loads the modules below files and directories in a stable order, and registers the tools, resources and prompts
   * that they export. A module that fails is logged with its path and the reason; the others are served. Another call
   * with the same paths replaces what they registered before.
   * @param paths files or directories, relative to `options.from` (default: the working directory)
   * @example await server.discover(['./tools'], { from: import.meta.url });
   */
  discover(paths: readonly string[], options?: DiscoverOptions): Promise<Discovered> {
    return discover(this, paths, this.#runtime.core.log, options);
  }

  /**
   * Serves on these transports. Resolves when they are open.
   * @throws the error of a transport that cannot open; the server can then listen on another transport, or be closed
   * @example await server.listen(stdio(), http({ port: 3000 }));
   */
  async listen(...transports: readonly Transport[]): Promise<void> {
    if (transports.length === 0)
      throw new TypeError('server.listen: expected at least one transport, such as stdio(), got none');
    for (const transport of transports) {
      if (typeof transport?.open === 'function') continue;
      throw new TypeError(
        `server.listen: expected transports, such as stdio() or memory().transport, got ${describe(transport)}`,
      );
    }
    // Under `troupe dev` a reload must not open transports again: the launcher serves them on the program's behalf.
    const served = launcher()?.listens(this, transports);
    if (served) return served;
    for (const transport of transports) await this.#runtime.open(transport);
  }

  /**
   * Answers one HTTP request of another server or framework, as a web standard `Request`. Its options are those of
   * `createServer({ http })`; without `allowedHosts`, only clients that address this machine by a loopback name are
   * served.
   * @example Bun.serve({ fetch: (request) => server.fetch(request) });
   */
  fetch(request: Request): Promise<Response> {
    return this.#open
      ? this.#mount.value.fetch(request)
      : this.#openMount().then(() => this.#mount.value.fetch(request));
  }

  /**
   * Answers one HTTP request of a `node:http` server or of Express. Mount it before any body parser. Its options are
   * those of `createServer({ http })`; without `allowedHosts`, only clients that address this machine by a loopback
   * name are served.
   * @example app.all('/mcp', (request, response) => server.node(request, response));
   */
  node(request: IncomingMessage, response: ServerResponse): void {
    if (this.#open) this.#mount.value.node(request, response);
    else void this.#openMount().then(() => this.#mount.value.node(request, response));
  }

  /**
   * Opens the mounted transport. The first request waits until the store is open. If the server cannot open, or is
   * closed, requests get an error.
   */
  #openMount(): Promise<void> {
    this.#opening ??= this.#runtime
      .open(this.#mount.value)
      .catch((error: unknown) =>
        this.#runtime.core.log(
          'warning',
          `cannot serve HTTP requests: ${messageOf(error)}`,
          errorFields('transport', error),
        ),
      )
      .then(() => {
        this.#open = true;
      });
    return this.#opening;
  }

  /**
   * Accepts no new requests, lets those in flight finish within `limits.graceMs` milliseconds, then closes every
   * transport. Idempotent.
   * @example await server.close('the machine restarts');
   */
  close(reason = 'the server was closed'): Promise<void> {
    return this.#runtime.close(reason);
  }

  /**
   * Adds a rule about every use of every element, in either era and on every transport. All rules must agree; they run
   * before middleware, before anything is stored, and before a response begins. See docs/guard.md.
   *
   * @param about the name of the rule for people, and its version: an approval that a rule demands is void when they change
   * @throws {TypeError} if the rule is no function
   * @example server.authorize(({ element, auth }) => !element.name.startsWith('admin_') || { scopes: ['admin'] });
   */
  authorize(rule: AuthorizationRule, about: RuleName = {}): this {
    if (typeof rule !== 'function')
      throw new TypeError(`server.authorize: expected a function (call, ctx), got ${describe(rule)}`);
    option.check('server.authorize: ', about, RULE_NAME);
    this.#service(authorization).authorize({
      rule,
      name: about.name ?? (rule.name || undefined),
      version: about.version,
    });
    return this;
  }

  /**
   * The approvals of calls: what waits for people, and their decisions. The server must listen. See docs/approvals.md.
   *
   * @example
   * for (const { id, text } of await server.approvals.list()) console.error(id, text);
   * await server.approvals.decide(id, { approver: { principal: 'ada', scopes: ['ops'] }, decision: 'approve' });
   */
  get approvals(): Approvals {
    return this.#service(approvals);
  }

  /**
   * Puts a function around every request, or around the requests of one method. Middleware runs in the order of
   * registration, after the request was admitted and before the server looks at its parameters; it sees each request
   * once, in either era. A function that is registered while the server runs applies to later requests. See
   * docs/authors.md, "Middleware".
   *
   * @throws {TypeError} if the method is unknown, or the middleware is no function
   * @example
   * server.use(async (call, ctx, next) => {
   *   const result = await next();
   *   console.error(`${call.method}: ${ctx.elapsedMs} ms`);
   *   return result;
   * });
   */
  use(middleware: Middleware): this;
  /**
   * Puts a function around the requests of one method. Its parameters and its result have their types.
   *
   * @throws {TypeError} if the method is unknown, or the middleware is no function
   * @example
   * server.use('tools/call', async (call, ctx, next) => {
   *   if (ctx.principal === 'anonymous') throw new ToolError('Sign in first.');
   *   return next();
   * });
   */
  use<M extends RequestMethodName>(method: M, middleware: Middleware<M>): this;
  use(method: RequestMethodName | Middleware, middleware?: Middleware): this {
    if (typeof method === 'function') this.#service(registered).use(undefined, method);
    else this.#service(registered).use(method, middleware);
    return this;
  }

  /** Notifies the clients that watch this resource of a change. */
  resourceUpdated(uri: string): void {
    this.#runtime.core.changes.send({ type: 'resource updated', uri });
  }

  /** Quarantined actors, and calls that blocked the process twice. See docs/supervision.md. */
  supervision(): Supervised {
    return this.#service(workers).report();
  }

  /**
   * Releases a quarantined actor or a rejected call, after its cause is fixed.
   * @param name the actor's address, or the call's incident
   * @returns false if nothing of that name is quarantined or rejected
   * @example if (!server.release(address)) console.error(`nothing is quarantined at ${address}`);
   */
  release(name: string): boolean {
    return this.#service(workers).release(name);
  }

  /**
   * The latest dead letters from the store: messages that crashed their actor or the process twice and are never
   * processed again.
   * @param limit most letters to return. Default 100
   */
  async deadLetters(limit = 100): Promise<readonly DeadLetter[]> {
    if (!Number.isSafeInteger(limit) || limit < 1)
      throw new RangeError(`server.deadLetters: expected a whole number of at least 1, got ${describe(limit)}`);
    return (await this.#runtime.openStore()).deadLetters(limit);
  }

  /**
   * Deletes the durable data of a principal in the whole cluster: its instances, tasks, questions, sessions, state, approvals,
   * runs of scripts, subscriptions of webhooks, and recorded results. Idempotent. Take its access away first: what it calls
   * afterwards is stored again. See docs/state.md, "Delete the data of a person".
   *
   * @returns how many of each were deleted
   * @throws {TypeError} if the principal is empty, or `anonymous`
   * @throws {StoreError} if the store failed: call it again
   * @example const { instances, tasks } = await server.forget({ principal: 'ada' });
   */
  async forget({ principal }: { readonly principal: string }): Promise<ForgottenData> {
    await this.#runtime.openStore();
    return this.#service(forgetting).forget(principal);
  }

  /**
   * Reports if this server serves requests, with the reasons if not: it drains, or its store is not open or only
   * read. For a route of your own; `http()` serves it at `/readyz`. See docs/http.md.
   *
   * @example app.get('/readyz', (_, response) => response.status(server.readiness().ready ? 200 : 503).end());
   */
  readiness(): Readiness {
    return this.#runtime.readiness();
  }

  /**
   * The cluster as this node sees it: its state, its cells, and all nodes; undefined without the option `cluster`. See
   * docs/nodes.md.
   *
   * @example server.cluster()?.nodes.map(({ address, cells }) => `${address}: ${cells} cells`);
   */
  cluster(): ClusterReport | undefined {
    return this.#service(cluster).report();
  }

  /**
   * The metrics of this server as text, for a route of your own. `http({ metrics })` serves them without one. See
   * docs/observe.md.
   *
   * @param format `prometheus` (default): the text format 0.0.4. `openmetrics`: OpenMetrics 1.0.0, with traces
   * @example admin.get('/metrics', (_, response) => response.type('text/plain; version=0.0.4').send(server.metrics()));
   */
  metrics(format: MetricsFormat = 'prometheus'): string {
    if (format !== 'prometheus' && format !== 'openmetrics')
      throw new TypeError(`server.metrics: expected "prometheus" or "openmetrics", got ${describe(format)}`);
    return metricsText(this.#runtime.readMetrics(), format);
  }

  /**
   * Reads the latest records of the audit that a query selects, the oldest first, from the store or the file in the option
   * `audit.to`.
   * @param query the time of the earliest record, a principal, an element, an event, and the most records (1,000)
   * @throws {TypeError | RangeError} without an audit, if a function receives its records, or for an invalid query
   * @throws {StoreError} if the stored records are damaged
   * @example const refunds = await server.audit({ element: 'tool refund', since: '2026-11-01' });
   */
  async audit(query: AuditQuery = {}): Promise<readonly AuditRecord[]> {
    const records = this.#service(audit);
    if (!records)
      throw new TypeError(
        "server.audit: this server has no audit; pass createServer({ audit: { to: 'audit.jsonl' } })",
      );
    await this.#runtime.openStore();
    return records.read(query);
  }

  /**
   * Calls the listener with each record of what the actors do, beginning with the actors that exist now, until the
   * returned function is called. Without listeners, inspection costs nothing.
   * @example const stop = server.inspect((record) => console.error(record.type, record));
   */
  inspect(listener: InspectionListener): () => void {
    return this.#runtime.core.system.inspection.listen(listener);
  }

  /**
   * @internal Takes the rules and the middleware of this program from now on, including those that it gets later: for
   * `troupe dev`.
   * @example host.guardAs(program);
   */
  guardAs(program: Server | undefined): void {
    const none = { rules: [], middleware: new MiddlewareLinks(this.#runtime.core.methods) };
    const { rules, middleware } = program?.[INTERNALS] ?? none;
    this.#service(authorization).share(rules);
    this.#service(registered).share(middleware);
  }

  /**
   * @internal Offers the folders of skills that this program offers, in place of those of its last load: for `troupe dev`.
   * @example host.skillsOf(program);
   */
  skillsOf(program: Server | undefined): void {
    this.#service(skills).adopt(program?.[INTERNALS].skillFolders() ?? []);
  }

  /**
   * @internal Offers the event types of this program, in place of those of its last load: for `troupe dev`.
   * @example host.eventsOf(program);
   */
  eventsOf(program: Server | undefined): void {
    const { events: service } = program?.[INTERNALS] ?? {};
    if (service || this[INTERNALS].events) this.#service(events).adopt(service);
  }

  /** @internal Access for `troupe/inspector`. */
  get [INTERNALS](): Internals {
    const { core, introduction, localClient } = this.#runtime;
    const { log } = core;
    const { inspection } = core.system;
    const rules = () => this.#service(authorization).rules;
    const middleware = () => this.#service(registered).links;
    const service = () => this.#service(events);
    return {
      inspection,
      log,
      introduction,
      localClient,
      limits: core.limits,
      get rules() {
        return rules();
      },
      get middleware() {
        return middleware();
      },
      // Created with the first type.
      get events() {
        return core.capabilities.offered.events && service();
      },
      skillFolders: () => this.#service(skills).folders,
      schedules: () => this.#service(schedules),
      hooks: this.#service(hooks),
      deadLetters: () => new DeadLetters(core),
      audit: this.#service(audit)?.mailbox,
      clock: this.options.clock ?? systemClock,
      machines: () =>
        [...this.machines.definitions(), ...this.tools.definitions()].flatMap(({ machine }) =>
          machine ? [machine] : [],
        ),
      open: (transport) => this.#runtime.open(transport),
    };
  }
}

const RULE_NAME: option.Rows<RuleName> = option.each(
  ['name', 'version'],
  option.expected(
    'a string of 1 to 100 characters',
    (value) => typeof value === 'string' && value.length >= 1 && value.length <= 100,
  ),
);

function readInfo({ name, version, title, description, icons, websiteUrl }: ServerOptions): Implementation {
  return {
    name,
    version,
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(icons === undefined ? {} : { icons }),
    ...(websiteUrl === undefined ? {} : { websiteUrl }),
  };
}
