/** The elements of one mount in the registries: the upstream's definitions, with the names and URIs of the mount. */

import { isDeepStrictEqual } from 'node:util';
import { ClientError, ErrorResponse } from '../../client/client-errors.ts';
import { isPrompt, isTool, readCompletion } from '../../client/received.ts';
import { readEventType } from '../../client/server-events.ts';
import type { Context } from '../../core/execution/context.ts';
import type {
  Completer,
  PromptImplementation,
  ResourceImplementation,
  ToolImplementation,
} from '../../core/execution/execution.ts';
import { listViewOf, ownerOfCall, prolong } from '../../core/execution/request-context.ts';
import { jsonLength } from '../../core/execution/size.ts';
import type { LogFields, RuntimeLog } from '../../core/kernel/operator-log.ts';
import { throttledLog } from '../../core/kernel/throttled-log.ts';
import type { ElementAccess, ListView } from '../../core/messages/authorization-rule.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import { settingsIn, VIEWS_EXTENSION } from '../../core/protocol/extensions.ts';
import { isJsonObject, isObject, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import type { SkillEntry } from '../../core/protocol/skills.ts';
import { TASKS_EXTENSION } from '../../core/protocol/task-params.ts';
import type { CallToolResult, Prompt, Resource, ResourceTemplate, Tool } from '../../core/protocol/types.ts';
import { parseTemplate } from '../../core/protocol/uri-template.ts';
import { PAGE_TYPE, type Visibility } from '../../core/protocol/views.ts';
import type { ReadableCatalogue } from '../../core/registry/catalogue.ts';
import { accessOf, type Compiled } from '../../core/registry/offers.ts';
import type { Registration } from '../../core/registry/registration.ts';
import { compileInput } from '../../core/schema/compile-schema.ts';
import type { CompiledSchema } from '../../core/schema/schema.ts';
import { digest } from '../../core/store/seal.ts';
import { RETAIN } from '../../features/events/event-definition.ts';
import type { CompiledEvent } from '../../features/events/event-topics.ts';
import { type CompiledLimits, compileLimits } from '../../features/guard/limits/call-limits.ts';
import { type RelayCall, type RelayOptions, relayCall } from './call-relay.ts';
import type { EventRelays, TopicsOfMounts } from './event-relays.ts';
import { describeInvisible, visibleDefinition } from './invisible-characters.ts';
import { entryOf, MountApprovals, type ToolApproval } from './mount-approvals.ts';
import { foundBy, type MountSettings } from './mount-options.ts';
import { MountedSkills, type SkillsOfMounts } from './mounted-skills.ts';
import type { Claimant, ClaimedKind, NameClaims } from './name-claims.ts';
import { OfferedNames } from './names.ts';
import { withoutOwnMeta } from './own-meta.ts';
import { OwnedRoots } from './owned-roots.ts';
import type { ElementView, ViewedCatalogue } from './owner-views.ts';
import type { PageNames } from './page-names.ts';
import type { FoundBy } from './tool-finder.ts';
import { isPageUri, withTranslation } from './translated-page.ts';
import type { UpstreamCatalogue } from './upstream-catalogue.ts';
import { answerFailure } from './upstream-error.ts';
import { toOffered, toUpstream } from './uri-names.ts';
import { rewriteUris } from './uris.ts';

export type MountedTool = Compiled<Tool, ToolImplementation>;
export type MountedResource = Compiled<Resource | ResourceTemplate, ResourceImplementation>;
export type MountedPrompt = Compiled<Prompt, PromptImplementation>;

/** The registrations through which mounts offer elements. */
export interface MountRegistrations {
  readonly tools: Registration<MountedTool>;
  readonly resources: Registration<MountedResource>;
  readonly prompts: Registration<MountedPrompt>;
}

/** The capabilities of the server that mounts. */
export interface AnnouncedCapabilities {
  add(capability: 'tools' | 'resources' | 'prompts' | 'completions' | 'tasks'): void;
  extend(identifier: string, settings?: JsonObject): void;
  instruct(source: string, text: string | undefined): void;
}

/** A promise of a caller. */
export interface Waiter<T = void> {
  resolve(value: T): void;
  reject(error: unknown): void;
}

/** The members of an element that its mount adds. */
interface OfMount {
  readonly ofUpstream: 'public' | 'private';
  readonly rank: number;
}

interface MountedElementsOptions extends RelayOptions {
  readonly registrations: MountRegistrations;
  readonly capabilities: AnnouncedCapabilities;
  readonly claims: NameClaims;
  readonly skills: SkillsOfMounts;
  readonly relays: EventRelays;
  /** Created with the first event type. */
  topics(): TopicsOfMounts;
  readonly log: RuntimeLog;
}

interface MountedClaims {
  readonly tool: ReadonlyMap<string, MountedTool>;
  readonly prompt: ReadonlyMap<string, MountedPrompt>;
  readonly resource: ReadonlyMap<string, MountedResource>;
  readonly event: ReadonlyMap<string, CompiledEvent>;
}

/** The number of elements of each kind that a mount offers, and why others are left out. */
interface OfferedElements {
  readonly tools: number;
  readonly resources: number;
  readonly prompts: number;
  readonly events: number;
  /** One sentence for each definition that is left out or changed. */
  readonly problems: readonly string[];
}

const OFFERED = ['tools', 'resources', 'prompts', 'completions'] as const;
const LISTS = { tool: 'tools', prompt: 'prompts', resource: 'resources', event: undefined } as const;
const NO_CLAIMS: MountedClaims = { tool: new Map(), prompt: new Map(), resource: new Map(), event: new Map() };
const NO_VIEWS: ViewedCatalogue['views'] = {
  tool: new Map(),
  prompt: new Map(),
  resource: new Map(),
  event: new Map(),
};
const MOUNT_EVENT: LogFields = { event: 'mount' };
/** An upstream checks the arguments itself. */
const UNCHECKED: CompiledSchema = { json: { type: 'object' }, check: (value) => ({ ok: true, value }) };

export class MountedElements implements Claimant {
  #options: MountedElementsOptions;
  readonly #source: string;
  #names: OfferedNames;
  #roots = new OwnedRoots();
  /** Compiled once: a listing must not begin the counts of callers again. */
  #limits: CompiledLimits | undefined;
  #approvals: MountApprovals | undefined;
  /** For the failures of calls, which clients cause. */
  readonly #logFailure: RuntimeLog;
  /** The elements of the catalogue, by their offered names. */
  claims: MountedClaims = NO_CLAIMS;
  /** Undefined until something was offered. */
  offered: OfferedElements | undefined;
  #templates: readonly MountedResource[] = [];
  /** With the URIs of the mount. */
  #skills: readonly SkillEntry[] = [];
  /** The upstream's name of each tool that views may call → its offered name. */
  #toolsOfViews: ReadonlyMap<string, string> = new Map();
  #problems: readonly string[] = [];
  #reported = '';
  #isPublic: UpstreamCatalogue['isPublic'];
  /** The ways in which its tools are found, by the option of the mount or the advice of its upstream; none if lists contain them. */
  #found: readonly FoundBy[] = [];
  #views: ViewedCatalogue['views'] = NO_VIEWS;
  /** The name in URIs; false if they stay as they are. */
  #space: string | false;

  /** @throws {DefinitionError} for invalid names */
  constructor(options: MountedElementsOptions) {
    this.#options = options;
    const { mount, settings } = options;
    this.#source = `mount ${mount}`;
    this.#names = this.#namesOf(settings);
    this.#space = settings.prefix === false ? false : mount;
    options.claims.add(this);
    this.#instruct(settings);
    this.#limits = compileLimits(settings.limits);
    this.#approvals = this.#approvalsOf(settings);
    this.#logFailure = throttledLog(options.log, options.clock);
  }

  /** Takes other options. They apply to the next catalogue. @throws {DefinitionError} for invalid names */
  configure(settings: MountSettings): void {
    const { mount, settings: before } = this.#options;
    this.#names = this.#namesOf(settings);
    this.#space = settings.prefix === false ? false : mount;
    if (!isDeepStrictEqual(settings.limits, before.limits)) this.#limits = compileLimits(settings.limits);
    this.#approvals = this.#approvalsOf(settings);
    this.#options = { ...this.#options, settings };
    this.#instruct(settings);
    this.#roots = new OwnedRoots();
  }

  #instruct({ instructions }: { readonly instructions?: string | undefined }): void {
    this.#options.capabilities.instruct(this.#source, instructions && `${this.mount}: ${instructions}`);
  }

  /** A direct upstream has chosen its tools itself: its filters know more than names. */
  #namesOf(settings: MountSettings): OfferedNames {
    const { mount, upstream } = this.#options;
    const { prefix, rename } = settings;
    return new OfferedNames(
      mount,
      upstream.current.direct
        ? { ...(prefix !== undefined && { prefix }), ...(rename !== undefined && { rename }) }
        : settings,
    );
  }

  #approvalsOf({ approve }: MountSettings): MountApprovals | undefined {
    return approve?.length ? new MountApprovals(this.mount, approve, (tool) => this.#names.offered(tool)) : undefined;
  }

  get mount(): string {
    return this.#options.mount;
  }

  /**
   * Offers a catalogue in place of the one before. Clients are notified only of lists that differ.
   *
   * @param unapproved its differences from what is approved, to report with the other problems
   * @param views of its elements that do not exist for all callers
   */
  offer(catalogue: UpstreamCatalogue, unapproved: readonly string[] = [], views = NO_VIEWS): void {
    this.#views = views;
    this.#found = foundBy(this.#options.settings.expose ?? catalogue.expose);
    const problems = [...unapproved, ...(catalogue.problems ?? [])];
    this.#announce(catalogue.capabilities);
    const completes = catalogue.capabilities.completions !== undefined;
    const before = this.claims;
    this.claims = {
      tool: this.#compiled('tool', catalogue.tools, problems, (tool) =>
        isTool(tool) ? this.#tool(tool, catalogue) : undefined,
      ),
      prompt: this.#compiled('prompt', catalogue.prompts, problems, (prompt) =>
        isPrompt(prompt) ? this.#prompt(prompt, completes) : undefined,
      ),
      resource: this.#withUnlisted(
        catalogue,
        this.#compiled('resource', [...catalogue.resources, ...catalogue.templates], problems, (resource) =>
          isResource(resource) ? this.#resource(resource, completes) : undefined,
        ),
      ),
      event: this.#compiled('event', catalogue.events ?? [], problems, (type) => this.#event(type)),
    };
    this.#problems = [...problems, ...(this.#approvals?.problems ?? [])];
    this.#isPublic = catalogue.isPublic;
    this.#skills = catalogue.skills.map((entry) => rewrittenEntry(this.#space, entry));
    this.#templates = catalogue.capabilities.resources === undefined ? [] : this.#templatesOf();
    this.#toolsOfViews = this.#namesForViews(catalogue.tools);
    const { claims } = this.#options;
    if (catalogue.tools.some(pageOf) || catalogue.resources.some(({ uri }) => isPageUri(uri)))
      claims.pages.add(this.#source);
    else claims.pages.delete(this.#source);
    this.#options.claims.changed(this, before);
  }

  meantBy(kind: 'tool' | 'prompt', name: string): readonly string[] {
    const { prompts, tools } = this.#options.registrations;
    const { catalogue } = kind === 'tool' ? tools : prompts;
    return this.#names.meantBy(name).filter((key) => {
      const element = catalogue.get(key);
      return element?.source === this.#source && element.access === undefined;
    });
  }

  register(settled = true): void {
    const { capabilities, registrations, skills, log } = this.#options;
    const problems: string[] = [];
    const tools = this.#free('tool', this.claims.tool, registrations.tools.catalogue, problems);
    const prompts = this.#free('prompt', this.claims.prompt, registrations.prompts.catalogue, problems);
    const resources = this.#free('resource', this.claims.resource, registrations.resources.catalogue, problems);
    if (tools.some(({ implementation }) => implementation.task !== 'never')) capabilities.add('tasks');
    registrations.tools.replaceSource(this.#source, tools);
    registrations.resources.replaceSource(this.#source, [...resources, ...this.#templates]);
    registrations.prompts.replaceSource(this.#source, prompts);
    const events = this.#registerEvents(problems);
    const own = new Set(resources.map(({ key }) => key));
    skills.mounted(
      new MountedSkills(
        this.mount,
        this.#skills.filter(({ uri }) => own.has(uri)),
      ),
    );
    const listed = resources.filter((each) => each.listed !== 'none');
    this.offered = {
      ...{ tools: tools.length, resources: listed.length, prompts: prompts.length, events },
      problems: [...this.#problems, ...problems],
    };
    if (!settled) return;
    const report = this.offered.problems.join('\n- ');
    if (report !== '' && report !== this.#reported) log('warning', `mount "${this.mount}":\n- ${report}`, MOUNT_EVENT);
    this.#reported = report;
  }

  /** Offers the event types. Without one, now or before, nothing of events is created. @returns their number */
  #registerEvents(problems: string[]): number {
    const { relays, topics } = this.#options;
    if (this.claims.event.size === 0 && !this.offered?.events) return 0;
    const { relayed } = topics();
    const events = this.#free('event', this.claims.event, relayed.catalogue, problems);
    relayed.replaceSource(this.#source, events);
    relays.retain(new Set(events.map(({ key }) => key)));
    return events.length;
  }

  /** The URI upstream of a resource of this mount; undefined for others. */
  upstreamUri(uri: string): string | undefined {
    const named = this.#toUpstream(uri);
    if (this.#space !== false || named !== uri) return named;
    const own = this.#options.registrations.resources.catalogue.all().filter(({ source }) => source === this.#source);
    const found = own.some(({ key }) => key === uri || (key.includes('{') && parseTemplate(key).match(uri)));
    return found ? uri : undefined;
  }

  /** A page of a mount without a prefix reads by `mount+uri`, so that it names no resource of another. */
  #toUpstream(uri: string): string | undefined {
    const isNamed = this.#space !== false || uri.startsWith(`${this.mount}+`);
    return isNamed ? toUpstream(this.mount, uri) : uri;
  }

  /** The URI under which a resource of the upstream is offered. */
  offeredUri(uri: string): string {
    return toOffered(this.#space, uri);
  }

  /**
   * Offers a tool with which a caller signs in at an upstream that shows its catalogue only then.
   *
   * @param actor lists the upstream afterwards
   */
  offerSignIn(actor: Mailbox<{ readonly type: 'refresh'; readonly reply: Waiter }>): void {
    const { capabilities, claims, mount, settings, upstream } = this.#options;
    const key = `${mount}_sign_in`;
    const before = this.claims;
    if (before.tool.has(key)) return;
    const tool: MountedTool = {
      key,
      access: accessOf(settings),
      definition: {
        name: key,
        title: `Sign in to ${mount}`,
        description: `Lets the user sign in to ${mount}, which lists its tools only afterwards.`,
        inputSchema: { type: 'object', additionalProperties: false },
      },
      implementation: this.#implementation(key, 'never', async (_, ctx) => {
        // The lists of a person are not for all callers.
        if (!upstream.current.readsCatalogue(ctx.principal)) return said(needsOperator(mount), true);
        try {
          await upstream.current.authorized(ctx, () => upstream.current.catalogue());
          await new Promise<void>((resolve, reject) => actor.send({ type: 'refresh', reply: { resolve, reject } }));
        } catch (error) {
          if (ctx.signal.aborted || !(error instanceof ClientError)) throw error;
          // The message of a connection's error has the address of the upstream.
          return answerFailure({ mount, method: 'tools/call', about: key }, error);
        }
        return said(`Signed in to ${mount}. Its tools are listed now.`);
      }),
    };
    capabilities.add('tools');
    this.claims = { ...NO_CLAIMS, tool: new Map([[key, tool]]) };
    claims.changed(this, before);
  }

  /** Withdraws everything. */
  withdraw(): void {
    const before = this.claims;
    this.claims = NO_CLAIMS;
    this.#problems = [];
    this.#templates = [];
    this.#skills = [];
    this.#options.claims.pages.delete(this.#source);
    this.#options.claims.changed(this, before);
  }

  /** Withdraws everything, and claims nothing more. */
  close(): void {
    this.withdraw();
    this.#instruct({ instructions: undefined });
    this.#options.claims.remove(this);
  }

  #announce(upstream: JsonObject): void {
    const { capabilities } = this.#options;
    for (const capability of OFFERED) if (upstream[capability] !== undefined) capabilities.add(capability);
    const views = settingsIn(upstream.extensions, VIEWS_EXTENSION);
    if (views) capabilities.extend(VIEWS_EXTENSION, views);
  }

  /** Compiles definitions. Of two with one name, the first one counts. */
  #compiled<C extends { readonly key: string }>(
    noun: string,
    definitions: readonly unknown[],
    problems: string[],
    compile: (definition: JsonObject) => C | undefined,
  ): ReadonlyMap<string, C> {
    const { maxDefinitionBytes } = this.#options.settings;
    const compiled = new Map<string, C>();
    for (const given of definitions) {
      if (!isJsonObject(given)) continue;
      const { definition, found } = visibleDefinition(withoutOwnMeta(given));
      const name = nameOf(given);
      // Each client of this server gets the definition with each list.
      if (jsonLength(definition, maxDefinitionBytes) > maxDefinitionBytes) {
        problems.push(
          `${noun} "${name.slice(0, 64)}" is left out: its definition has more than ${maxDefinitionBytes} characters. The option is maxDefinitionBytes`,
        );
        continue;
      }
      if (found.length > 0) problems.push(`${noun} ${describeInvisible(name, found)}`);
      try {
        const element = compile(definition);
        if (!element) continue;
        if (!compiled.has(element.key)) compiled.set(element.key, element);
        else problems.push(`${noun} "${name}" is left out: it would be the second "${element.key}" of this mount`);
      } catch (error) {
        problems.push(`${noun} "${name}" is left out: ${messageOf(error)}`);
      }
    }
    return compiled;
  }

  /** The elements whose names are not taken by the program or an earlier mount. */
  #free<C extends { readonly owned?: true | undefined }>(
    kind: ClaimedKind,
    claimed: ReadonlyMap<string, C>,
    registered: ReadableCatalogue<unknown>,
    problems: string[],
  ): (C & OfMount)[] {
    const list = LISTS[kind];
    const taken = new Map(registered.all().map(({ key, source }) => [key, source]));
    const free: (C & OfMount)[] = [];
    for (const [key, element] of claimed) {
      const holder = this.#options.claims.holder(kind, key, this);
      const source = holder === undefined ? (taken.get(key) ?? this.#source) : `mount ${holder}`;
      if (source === this.#source)
        free.push({
          ...element,
          ofUpstream: list && this.#isPublic?.[list] ? 'public' : 'private',
          // Lists have the elements of mounts in the order of the mounts.
          rank: this.#options.claims.rankOf(this.mount),
        });
      else
        problems.push(
          `${kind} "${key}" is left out: it is already registered (by ${source}). Choose another prefix, or rename it`,
        );
    }
    // Elements of owners come last: they change no place in the lists of others.
    return [...free.filter(({ owned }) => !owned), ...free.filter(({ owned }) => owned)];
  }

  /** The rules of an element by its name upstream, and the callers that it exists for. */
  #accessOf(kind: ClaimedKind, name: string): { readonly access: ElementAccess | undefined; readonly owned?: true } {
    const access = accessOf(this.#options.settings);
    const view: ElementView | undefined = this.#views[kind].get(name);
    if (!view) return { access };
    const { hiddenFrom, owned } = view;
    return { access: { scopes: [], allow: undefined, ...access, hiddenFrom }, ...(owned && { owned }) };
  }

  /** Adds the rules of `approve`. The annotations of an OpenAPI document are those of its methods. */
  #approved<A extends { readonly access: ElementAccess | undefined }>(
    tool: Tool,
    own: ToolApproval | undefined,
    given: A,
  ): A {
    const { settings, upstream } = this.#options;
    const believed = settings.trust || upstream.current.direct !== undefined;
    const ofTool =
      own && new MountApprovals(this.mount, [entryOf(tool.name, own)], (name) => this.#names.offered(name));
    const rules = [this.#approvals, ofTool].flatMap((each) => each?.rulesOf(tool, believed) ?? []);
    return rules.length === 0 ? given : { ...given, access: { scopes: [], allow: undefined, ...given.access, rules } };
  }

  #tool(tool: JsonObject & Tool, { capabilities, requests, policies }: UpstreamCatalogue): MountedTool | undefined {
    const { settings, upstream } = this.#options;
    const { direct } = upstream.current;
    const request = requests?.[tool.name];
    const policy = policies && Object.hasOwn(policies, tool.name) ? policies[tool.name] : undefined;
    const name = this.#names.offered(tool.name);
    if (name === undefined) return undefined;
    // `execution` says how the upstream runs a call. This server can wait for a task of it, or offer one.
    const { execution: _, ...definition } = rewriteUris(this.#space, tool);
    const { readOnlyHint, idempotentHint } = tool.annotations ?? {};
    const repeatable = settings.trust && (readOnlyHint === true || idempotentHint === true);
    const tasks = tasksOf(tool, capabilities);
    return {
      key: name,
      ...this.#approved(tool, policy?.approve, this.#accessOf('tool', tool.name)),
      ...(settings.trust || direct ? {} : { untrusted: true }),
      ...(!isFor(tool, 'model') ? { listed: 'views' } : this.#found.length > 0 ? { listed: this.#found } : {}),
      definition: {
        ...definition,
        ...(tasks !== 'never' && { execution: { taskSupport: 'optional' } }),
        ...this.#named(tool, name),
      },
      implementation: {
        ...this.#implementation(
          name,
          tasks === 'never' ? tasks : 'allowed',
          (args, ctx) => {
            const given = isJsonObject(args) ? args : {};
            if (direct) return direct.call(tool.name, given, request, ctx);
            const params = { name: tool.name, arguments: given };
            return this.#call(ctx, name, {
              method: 'tools/call',
              params,
              repeatable,
              tasks,
              offered: this.#offeredTool,
            });
          },
          direct
            ? direct.inputOf(tool.name)
            : settings.validate
              ? compileInput(tool.inputSchema, `tool "${name}": inputSchema`)
              : UNCHECKED,
        ),
        ...(policy?.timeoutMs !== undefined && { timeoutMs: policy.timeoutMs }),
        upstream: { mount: this.mount, tool: tool.name },
        // People approved a call of this server, and not one of another that lists the same tool.
        behind: digest([upstream.current.key ?? null, request ?? null]),
      },
    };
  }

  #implementation(
    name: string,
    task: ToolImplementation['task'],
    handler: ToolImplementation['handler'],
    input = UNCHECKED,
  ): ToolImplementation {
    const { timeoutMs } = this.#options.settings;
    const limits = this.#limits;
    return {
      ...{ label: `tool "${name}"`, input, output: undefined, timeoutMs, rerun: undefined },
      ...{ task, limits, relayed: true, handler },
    };
  }

  #prompt(prompt: JsonObject & Prompt, completes: boolean): MountedPrompt | undefined {
    const name = this.#names.offered(prompt.name);
    if (name === undefined) return undefined;
    const ref = { type: 'ref/prompt', name: prompt.name };
    const names = (prompt.arguments ?? []).map((argument) => argument.name);
    return {
      key: name,
      ...this.#accessOf('prompt', prompt.name),
      definition: { ...rewriteUris(this.#space, prompt), ...this.#named(prompt, name) },
      implementation: {
        label: `prompt "${name}"`,
        completers: completes ? this.#completers(ref, names) : {},
        input: undefined,
        relayed: true,
        handler: (args, ctx) =>
          this.#call(ctx, name, {
            method: 'prompts/get',
            params: { name: prompt.name, arguments: isJsonObject(args) ? args : {} },
            repeatable: true,
          }),
      },
    };
  }

  /** @throws {Error} for a type whose events cannot be received here */
  #event(given: JsonObject): CompiledEvent | undefined {
    const type = readEventType(given);
    const name = type && this.#names.offered(type.name);
    if (!type || name === undefined) return undefined;
    const { description, delivery, inputSchema, payloadSchema } = type;
    if (!delivery.includes('poll') && !delivery.includes('push'))
      throw new Error('its server offers neither polls nor streams of it, and this gateway receives no webhooks');
    const { title, _meta: meta } = given;
    const whole = name.endsWith(type.name) || this.#options.settings.rename?.[type.name] !== undefined;
    const shown = typeof title === 'string' ? title : whole ? undefined : type.name;
    return {
      key: name,
      access: accessOf(this.#options.settings),
      definition: {
        name,
        ...(shown === undefined ? {} : { title: shown }),
        ...{ description, delivery: ['poll', 'push', 'webhook'], inputSchema, payloadSchema },
        ...(isJsonObject(meta) ? { _meta: meta } : {}),
      },
      implementation: {
        ...{ label: `event "${name}"`, payload: UNCHECKED, by: undefined, match: undefined, shape: undefined },
        input: this.#options.settings.validate
          ? compileInput(inputSchema, `event "${name}": inputSchema`)
          : { ...UNCHECKED, json: inputSchema },
        ...{ retain: RETAIN, inFlight: 1 },
        source: this.#options.relays.sourceOf(type.name, name, delivery),
      },
    };
  }

  #resource(resource: JsonObject & (Resource | ResourceTemplate), completes: boolean): MountedResource {
    const upstream = nameOf(resource);
    const key = toOffered(this.#space, upstream);
    const variables = resource.uriTemplate === undefined ? [] : parseTemplate(key).variables;
    const ref = { type: 'ref/resource', uri: upstream };
    return {
      key,
      ...this.#accessOf('resource', upstream),
      // A client without views gets the list that it would get without pages.
      ...(isPageUri(upstream) && resource.mimeType === PAGE_TYPE ? { listed: 'views' } : {}),
      definition: rewriteUris(this.#space, resource),
      implementation: this.#reader(key, completes ? this.#completers(ref, variables) : {}),
    };
  }

  /**
   * Adds the resources that the upstream does not list and names elsewhere: the files of its skills, and the pages of its tools if no
   * template leads to them.
   */
  #withUnlisted(
    { resources, skills, tools }: UpstreamCatalogue,
    listed: ReadonlyMap<string, MountedResource>,
  ): ReadonlyMap<string, MountedResource> {
    const pages = this.#space === false ? tools.flatMap((tool) => pageOf(tool) ?? []) : [];
    const files = skills.flatMap((skill) => [
      skill.uri,
      ...(skill.resources === 'dynamic' ? [] : skill.resources.map(({ uri }) => uri)),
    ]);
    const named = new Set([...pages, ...files]);
    for (const { uri } of resources) named.delete(uri);
    const room = this.#options.settings.maxListed;
    const unlisted = [...named].slice(0, room).map((uri) => this.#unlisted(toOffered(this.#space, uri)));
    return new Map([...unlisted.map((each) => [each.key, each] as const), ...listed]);
  }

  /**
   * Templates for what an upstream serves but names nowhere. A mount that leaves URIs unchanged has one, for what its pages read.
   */
  #templatesOf(): readonly MountedResource[] {
    const { mount } = this;
    const templates = [`${mount}+{+uri}`, `${mount}:{+uri}`, `ui://${mount}/{+uri}`, `skill://${mount}/{+uri}`];
    return (this.#space === false ? templates.slice(0, 1) : templates).map((key) => this.#unlisted(key, true));
  }

  #unlisted(key: string, isTemplate = false): MountedResource {
    return {
      key,
      access: accessOf(this.#options.settings),
      listed: 'none',
      definition: isTemplate ? { uriTemplate: key, name: key } : { uri: key, name: key },
      implementation: this.#reader(key, {}),
    };
  }

  /** The tools that views may call (MCP Apps, "Visibility"). */
  #namesForViews(tools: readonly Tool[]): ReadonlyMap<string, string> {
    return new Map(
      tools.flatMap((tool) => {
        const offered = this.#names.offered(tool.name);
        return offered === undefined || !isFor(tool, 'app') ? [] : [[tool.name, offered]];
      }),
    );
  }

  /** The name under which a tool of the upstream is offered; undefined for one that is not, or whose name another has. */
  readonly #offeredTool = (upstream: string): string | undefined => {
    const key = this.#names.offered(upstream);
    const element = key === undefined ? undefined : this.#options.registrations.tools.catalogue.get(key);
    return element?.source === this.#source ? key : undefined;
  };

  /**
   * The names in the pages of this mount: only those that mean its own tools, and not those of the program or an earlier mount.
   *
   * @param view of the tools; undefined: all
   */
  #pageNames(view: ListView | undefined): PageNames {
    const { catalogue } = this.#options.registrations.tools;
    const own = [...this.#toolsOfViews].filter(
      ([, offered]) => catalogue.get(offered)?.source === this.#source && view?.hides.has(offered) !== true,
    );
    return { mount: this.mount, tools: Object.fromEntries(own), plain: this.#space === false };
  }

  #reader(key: string, completers: Readonly<Record<string, Completer>>): ResourceImplementation {
    return {
      label: `resource "${key}"`,
      completers,
      hints: {},
      read: async ({ uri }, ctx) => {
        const upstream = this.#toUpstream(uri);
        if (upstream === undefined) throw new Error(`${uri}: no resource of mount "${this.mount}"`);
        const call = { method: 'resources/read', params: { uri: upstream }, repeatable: true } as const;
        const result = await this.#call(ctx, uri, call);
        return isPageUri(upstream) ? withTranslation(result, this.#pageNames(listViewOf(ctx))) : result;
      },
    };
  }

  #completers(ref: JsonObject, names: readonly string[]): Readonly<Record<string, Completer>> {
    const completer =
      (name: string): Completer =>
      async (value, chosen, ctx) => {
        const context = Object.keys(chosen).length === 0 ? {} : { context: { arguments: { ...chosen } } };
        const result = await this.#call(ctx, name, {
          method: 'completion/complete',
          params: { ref, argument: { name, value }, ...context },
          repeatable: true,
        });
        return readCompletion(result) ?? { values: [] };
      };
    return Object.fromEntries(names.map((name) => [name, completer(name)]));
  }

  /** The offered name. A name that was shortened or mapped remains readable as the title. */
  #named({ name, title }: Tool | Prompt, offered: string): { readonly name: string; readonly title?: string } {
    const whole = offered.endsWith(name) || this.#options.settings.rename?.[name] !== undefined;
    return whole || title !== undefined ? { name: offered } : { name: offered, title: name };
  }

  /** @param about the tool, prompt or resource as the client knows it */
  async #call(ctx: Context, about: string, call: RelayCall): Promise<JsonObject> {
    const { mount, settings } = this.#options;
    // The definition of a tool has its deadline; other elements have none.
    if (settings.timeoutMs !== undefined && call.method !== 'tools/call') prolong(ctx, settings.timeoutMs);
    try {
      const result = await relayCall(this.#options, this.#roots, ctx, call);
      const list = LIST_OF_RESULT[call.method];
      if (list !== undefined && !Array.isArray(result[list]))
        throw new ClientError(mount, {
          reason: 'malformed',
          message: `${call.method}: expected a result with a list "${list}"`,
          carriedOut: 'yes',
        });
      return rewriteUris(this.#space, result);
    } catch (error) {
      // The client has cancelled the call, or its deadline has passed.
      if (ctx.signal.aborted) throw ctx.signal.reason;
      if (error instanceof ClientError && !(error instanceof ErrorResponse))
        this.#logFailure(
          'warning',
          `mount "${mount}": ${call.method} of ${about} failed: ${error.message}`,
          MOUNT_EVENT,
        );
      const { session, capabilities } = ownerOfCall(ctx);
      const declared = session ? undefined : capabilities;
      return answerFailure({ mount, method: call.method, about, capabilities: declared }, error);
    }
  }
}

/** The list without which a result cannot be shown. */
const LIST_OF_RESULT: Readonly<Partial<Record<RelayCall['method'], string>>> = {
  'prompts/get': 'messages',
  'resources/read': 'contents',
};

/** Returns when the upstream runs calls of a tool as tasks; `unasked`: it decides itself (the extension). */
function tasksOf({ execution }: Tool, { extensions, tasks }: JsonObject): NonNullable<RelayCall['tasks']> | 'never' {
  if (isObject(extensions) && extensions[TASKS_EXTENSION] !== undefined) return 'unasked';
  const support = isObject(tasks) && isObject(execution) ? execution.taskSupport : undefined;
  return support === 'optional' || support === 'required' ? support : 'never';
}

/** An entry with the URIs of a mount. The rest of it must stay as it is (SEP-2640, "Frontmatter"). */
function rewrittenEntry(space: string | false, entry: SkillEntry): SkillEntry {
  const { uri, resources } = entry;
  return {
    ...entry,
    uri: toOffered(space, uri),
    resources:
      resources === 'dynamic' ? resources : resources.map((file) => ({ ...file, uri: toOffered(space, file.uri) })),
  };
}

/** The page that a tool opens. Some servers write only the older name (MCP Apps, "Resource Discovery"). */
function pageOf({ _meta: meta }: Tool): string | undefined {
  const ui = meta?.ui;
  const uri = (isObject(ui) ? ui.resourceUri : undefined) ?? meta?.['ui/resourceUri'];
  return typeof uri === 'string' && isPageUri(uri) ? uri : undefined;
}

/** True if the model, or a view, may use a tool. */
function isFor({ _meta: meta }: Tool, user: Visibility): boolean {
  const ui = meta?.ui;
  return !isObject(ui) || !Array.isArray(ui.visibility) || ui.visibility.includes(user);
}

// The client has checked the outer shapes when it listed them.

function needsOperator(mount: string): string {
  return `The lists of ${mount} are read with a grant of the operator, which is missing. The operator of this gateway must sign in there (troupe login), or set auth.catalogue of the mount.`;
}

function said(text: string, isError = false): CallToolResult {
  return { content: [{ type: 'text', text }], ...(isError ? { isError } : {}) };
}

function isResource(definition: JsonObject): definition is JsonObject & (Resource | ResourceTemplate) {
  return typeof definition.uri === 'string' || typeof definition.uriTemplate === 'string';
}

function nameOf({ name, uri, uriTemplate }: JsonObject): string {
  return String(uriTemplate ?? uri ?? name);
}
