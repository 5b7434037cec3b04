/** The mounts of a server: their code is loaded when a program mounts a server, and by no other server. */
import { isDeepStrictEqual } from 'node:util';
import { isServerInMemory, type ServerInMemory } from '../../client/in-memory.ts';
import { type CallOwner, callOwnerOf, callOwnerOfSession } from '../../core/execution/request-context.ts';
import type { RequestGate, Stages } from '../../core/execution/stages.ts';
import { Openings } from '../../core/kernel/openings.ts';
import { errorFields, type RuntimeLog } from '../../core/kernel/operator-log.ts';
import type { Element } from '../../core/messages/registry-messages.ts';
import type { ListenedResources } from '../../core/messages/remote-change.ts';
import { ErrorCode, wireError } from '../../core/protocol/errors.ts';
import { describe, messageOf } from '../../core/protocol/json.ts';
import type { Operation } from '../../core/protocol/operations.ts';
import type { Tool } from '../../core/protocol/types.ts';
import { visibleTo } from '../../core/protocol/views.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { respond } from '../../core/requests/active-request.ts';
import { requestsAddress } from '../../core/requests/requests.actor.ts';
import { launcher } from '../../core/server/launcher.ts';
import type { Bus } from '../../core/transports/bus.ts';
import type { MountArguments, MountDefinition, MountRegistration } from './define-mount.ts';
import { foundBy, type Mount, type MountTarget } from './mount-options.ts';
import type { MountHost, OpenMount } from './open-mount.ts';
import type { SignIns } from './sign-ins.ts';
import type { FoundBy, ToolFinder } from './tool-finder.ts';

interface OfferedMountsOptions {
  /** Makes the parts of the server that mounts use; called with the first mount. */
  host(): Omit<MountHost, 'loadSignIns' | 'rankOf' | 'showBySearch'>;
  readonly stages: Pick<Stages, 'fill' | 'empty' | 'route'>;
  /** True if all open transports serve one client each. */
  oneClient(): boolean;
  /** True if a request can be served with the elements that are registered now. */
  isServable(operation: Operation): boolean;
  readonly bus: Bus;
  readonly maxMounts: number;
  readonly log: RuntimeLog;
}

/** A mount, from its definition on. */
interface Defined {
  readonly definition: MountDefinition;
  readonly source: string;
  /** Counts the mounts before it. */
  readonly number: number;
  /** Undefined until its code is loaded. */
  mount: OpenMount | undefined;
  removed?: true;
}

/** The mount was removed before its code was loaded. */
class Removed extends Error {}

/** More than the entries of a configuration: other mounts come after them. */
const MOST_ARRANGED = 1_000_000;
/** The most names in the error of an unknown name. */
const MOST_HINTS = 3;

const ALL_CAPABILITIES = ['tools', 'resources', 'prompts', 'completions'] as const;
/** The source of mounts that the program makes itself. */
const CODE = 'code';

export class OfferedMounts implements ListenedResources, MountRegistration {
  readonly #options: OfferedMountsOptions;
  #host: MountHost | undefined;
  readonly #defined = new Map<string, Defined>();
  /** The number of the next mount. */
  #number = 0;
  /** The names of mounts in the order of a configuration. */
  #arranged: readonly string[] = [];
  #opened = false;
  readonly #openings = new Openings();
  /** The resources that clients watch, of mounts and others; recorded from the first mount on. */
  readonly #listened = new Set<string>();
  #code: Promise<typeof import('./open-mount.ts')> | undefined;
  /** The parts that find the tools that no list contains. */
  readonly #finders = new Map<FoundBy, Promise<ToolFinder>>();
  /** The mounts without the option `expose` whose tools only a search shows. */
  readonly #searched = new Set<string>();
  /** Mounts that are withdrawn, or have calls in flight. */
  readonly #closing = new Set<OpenMount>();
  #signIns: SignIns | undefined;
  /** The only client of the server; false before it is there. Undefined if there are or may be several. */
  #only: CallOwner | false | undefined;
  #closed = false;

  constructor(options: OfferedMountsOptions) {
    this.#options = options;
  }

  /** See `Server.mount`. */
  mount(given: MountArguments): Promise<Mount> {
    if (isNamed(given)) {
      const [name, target, options] = given;
      if (target !== undefined) return this.#openings.add(this.#define(CODE, { ...options, name, target }));
    } else {
      const [target, options] = given;
      if (isServerInMemory(target))
        return this.#openings.add(this.#define(CODE, { ...options, name: nameOf(target), target }));
    }
    const expected = 'server.mount: expected a name and a target, such as a URL or { command, args }, or a Server';
    return this.#openings.add(Promise.reject(new TypeError(`${expected}, got ${describe(given[0])}`)));
  }

  /** The sign-ins at upstreams; undefined while no mount needs one. */
  get signIns(): SignIns | undefined {
    return this.#signIns;
  }

  /** The definition of a tool as lists have it. */
  shown(tool: Tool, element: Element<Tool>): Tool {
    return this.#isForModels(element) ? { ...tool, _meta: visibleTo(tool._meta, ['model']) } : tool;
  }

  /**
   * True for a tool of a mount without pages, if another mount has some: no view of its own calls it, and a view of another upstream
   * must not.
   */
  #isForModels({ listed, source }: Element<Tool>): boolean {
    const pages = this.#host?.claims?.pages;
    if (pages === undefined || pages.size === 0 || listed === 'views') return false;
    return source.startsWith('mount ') && !pages.has(source);
  }

  /** The names that an unknown name of a tool or prompt may mean, as the end of an error. @example ' (did you mean up_add?)' */
  nameHint(kind: 'tool' | 'prompt', name: string): string {
    const names = this.#host?.claims?.meantBy(kind, name).slice(0, MOST_HINTS) ?? [];
    return names.length === 0 ? '' : ` (did you mean ${names.join(' or ')}?)`;
  }

  /** True if a required mount offers nothing. */
  get missing(): boolean {
    for (const { definition, mount } of this.#defined.values())
      if (definition.required === true && !mount?.offering) return true;
    return false;
  }

  /**
   * Begins to list the mounts, or, in a server with one client, to read their stored catalogues. Waits for no upstream: the first
   * lists are held.
   *
   * @throws the error of an invalid mount that the program did not await
   */
  async ready(): Promise<void> {
    const { bus, oneClient, stages } = this.#options;
    await this.#openings.ready();
    const mounts = this.#mounts();
    if (!oneClient()) this.#only = undefined;
    else if (!this.#opened) {
      this.#only = false;
      bus.on(
        'session.opened',
        ({ client }) => client.session && this.#arrived(callOwnerOfSession(client, client.session)),
      );
    }
    this.#opened = true;
    for (const mount of mounts) this.#begin(mount);
    if (mounts.length === 0) return;
    // A call that an earlier process has begun needs its tool before any client comes.
    await Promise.all(mounts.map((mount) => (mount.isInMemory ? mount.beginning : mount.restored())));
    stages.fill('hold', this.#hold);
    // Clients read capabilities only when they connect.
    if (mounts.every(({ offering }) => offering)) return;
    const capabilities = this.#host?.capabilities;
    for (const capability of ALL_CAPABILITIES) capabilities?.add(capability);
    this.#host?.skills.announce();
    this.#host?.topics().announce();
  }

  #begin(mount: OpenMount): void {
    if (this.#only === false && !mount.isInMemory) mount.expect();
    else mount.begin(this.#only || undefined);
  }

  /** The only client of the server is there. Its capabilities are those of the connections that serve it. */
  #arrived(owner: CallOwner): void {
    if (this.#only !== false) return;
    this.#only = owner;
    for (const mount of this.#mounts()) this.#begin(mount);
  }

  /** Holds a request for lists, or for an element that is in none, until each mount is listed or has failed, or took too long. */
  readonly #hold: RequestGate = (mail, next) => {
    const { request } = mail;
    this.#arrived(callOwnerOf(request));
    if (this.#beginnings().length === 0) this.#options.stages.empty('hold', this.#hold);
    const waits = (): void => {
      // Its client has left, or it timed out: the outcome only marks the end of its run.
      if (request.settled) return respond(request, { ok: false, error: wireError(ErrorCode.TimedOut, 'it ended') });
      const beginnings = this.#beginnings();
      if (beginnings.length === 0 || this.#options.isServable(request.operation)) return next(mail);
      void Promise.race(beginnings).then(waits);
    };
    waits();
  };

  #beginnings(): readonly Promise<void>[] {
    return this.#mounts().flatMap(({ beginning }) => beginning ?? []);
  }

  listened(uri: string): void {
    if (!this.#host) return;
    this.#listened.add(uri);
    for (const mount of this.#mounts()) mount.listened(uri, true);
  }

  unlistened(uri: string): void {
    if (this.#listened.delete(uri)) for (const mount of this.#mounts()) mount.listened(uri, false);
  }

  /** Closes the connections to all upstreams. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#signIns?.close();
    await Promise.all([...this.#mounts(), ...this.#closing].map((mount) => mount.close()));
  }

  definitions(): readonly MountDefinition[] {
    return [...this.#defined.values()].map(({ definition }) => definition);
  }

  replaceSource(source: string, definitions: readonly MountDefinition[]): void {
    const names = new Set<string>();
    for (const { name } of definitions) {
      const taken = names.has(name) || (this.#defined.get(name)?.source ?? source) !== source;
      if (taken) throw nameTaken(name);
      names.add(name);
    }
    const kept = new Map(definitions.map((definition) => [definition.name, definition]));
    for (const [name, defined] of this.#defined) {
      if (defined.source !== source) continue;
      const next = kept.get(name);
      if (next && isSame(defined.definition, next)) kept.delete(name);
      else this.#remove(defined);
    }
    // A module or a program that is loaded again: the others are served if one is invalid.
    for (const definition of kept.values())
      void this.#openings.add(
        this.#define(source, definition).catch((error: unknown) => {
          if (this.#closed || error instanceof Removed) return;
          this.#options.log('error', messageOf(error), errorFields('mount', error));
        }),
      );
  }

  arrange(names: readonly string[]): void {
    if (isDeepStrictEqual(names, this.#arranged)) return;
    this.#arranged = names;
    this.#host?.claims?.arranged();
  }

  /** The place of a mount in lists, which does not depend on which upstream answers first. */
  readonly #rankOf = (name: string): number => {
    const place = this.#arranged.indexOf(name);
    return place === -1 ? MOST_ARRANGED + (this.#defined.get(name)?.number ?? 0) : place;
  };

  #mounts(): readonly OpenMount[] {
    return [...this.#defined.values()].flatMap(({ mount }) => mount ?? []);
  }

  async #define(source: string, definition: MountDefinition): Promise<Mount> {
    const { name } = definition;
    if (this.#defined.has(name)) throw nameTaken(name);
    const defined: Defined = { definition, source, number: this.#number++, mount: undefined };
    this.#defined.set(name, defined);
    try {
      return await this.#mount(defined);
    } catch (error) {
      this.#forget(defined);
      throw error;
    }
  }

  /** True for the server of a program whose mounts are made by the server that a command serves in its place. */
  get #isServedElsewhere(): boolean {
    return !this.#opened && launcher()?.servesInstead === true;
  }

  #forget(defined: Defined): void {
    const { name } = defined.definition;
    if (this.#defined.get(name) === defined) this.#defined.delete(name);
  }

  /** Withdraws a mount, and closes it when its calls have ended. */
  async #remove(defined: Defined): Promise<void> {
    const { mount } = defined;
    this.#forget(defined);
    defined.removed = true;
    if (!mount) return;
    this.#closing.add(mount);
    this.#searched.delete(mount.name);
    for (const finder of this.#finders.values()) (await finder).remove(mount.name);
    await mount.drain();
    this.#closing.delete(mount);
  }

  async #mount(defined: Defined): Promise<Mount> {
    const { name, target, ...options } = defined.definition;
    this.#code ??= import('./open-mount.ts');
    const { openMount, signInAddress } = await this.#code;
    await Promise.all([...this.#closing].filter((each) => each.name === name).map((mount) => mount.withdraw()));
    if (this.#closed || defined.removed)
      throw new Removed(`mount "${name}": the server is closed, or the mount was removed`);
    const { maxMounts } = this.#options;
    if (this.#defined.size > maxMounts)
      throw new Error(`mount "${name}": there are ${maxMounts} mounts. The limit is limits.maxUpstreams`);
    this.#host ??= this.#open();
    const host = this.#host;
    const signIns = signInAddress(target, options) && (await host.loadSignIns());
    const mount = openMount(name, target, options, host, signIns);
    try {
      for (const way of foundBy(mount.settings.expose)) (await this.#finder(way, host)).add(mount.found);
    } catch (error) {
      for (const finder of this.#finders.values()) (await finder).remove(mount.name);
      await mount.close();
      throw error;
    }
    defined.mount = mount;
    for (const uri of this.#listened) mount.listened(uri, true);
    if (defined.removed || this.#closed) await this.#remove(defined);
    // A server that is open waits for no further mount.
    else if (this.#opened) this.#begin(mount);
    return {
      name: mount.name,
      get state() {
        return mount.state;
      },
      ready: () => (this.#isServedElsewhere ? Promise.resolve() : mount.ready()),
      refresh: () => (this.#isServedElsewhere ? Promise.resolve() : mount.refresh()),
      approve: (element) => mount.approve(element),
      change: async (change) => {
        try {
          for (const way of foundBy(change.options.expose)) (await this.#finder(way, host)).add(mount.found);
          await mount.change(change);
        } finally {
          const ways = this.#waysOf(mount);
          for (const [way, finder] of this.#finders)
            if (ways.includes(way)) (await finder).add(mount.found);
            else (await finder).remove(mount.name);
        }
      },
      close: () => this.#remove(defined),
    };
  }

  /** Shows the tools of a mount without the option `expose` by search alone, or not any more. */
  async #showBySearch(mount: string, shown: boolean): Promise<void> {
    if (!this.#host || shown === this.#searched.has(mount)) return;
    if (shown) {
      this.#searched.add(mount);
      try {
        const found = this.#mounts().find(({ name }) => name === mount)?.found;
        if (found) (await this.#finder('search', this.#host)).add(found);
      } catch (error) {
        this.#searched.delete(mount);
        throw error;
      }
    } else {
      this.#searched.delete(mount);
      (await this.#finders.get('search'))?.remove(mount);
    }
  }

  /** The ways in which the tools of a mount are found. */
  #waysOf({ name, settings: { expose } }: OpenMount): readonly FoundBy[] {
    return expose === undefined && this.#searched.has(name) ? ['search'] : foundBy(expose);
  }

  /** The part that finds tools in this way. Its code is loaded with the first mount that needs it. */
  #finder(way: FoundBy, { search, code }: MountHost): Promise<ToolFinder> {
    const finder =
      this.#finders.get(way) ??
      (way === 'code'
        ? Promise.resolve(code())
        : import('./search-tools.ts').then(({ SearchTools }) => new SearchTools(search)));
    this.#finders.set(way, finder);
    return finder;
  }

  async #loadSignIns({
    system,
    keys,
    returnAddresses,
    store,
  }: Pick<MountHost, 'system' | 'keys' | 'returnAddresses' | 'store'>): Promise<SignIns> {
    const [{ SignIns }, { SealedVault }] = await Promise.all([
      import('./sign-ins.ts'),
      import('../../core/store/vault.ts'),
    ]);
    this.#signIns ??= new SignIns({
      vault: new SealedVault(store, keys),
      clock: system.clock,
      log: (level, message) => system.log(level, message, { event: 'mount' }),
      keys,
      addresses: returnAddresses,
    });
    return this.#signIns;
  }

  /** The upstreams learn that a client of theirs has ended. */
  #open(): MountHost {
    const { bus } = this.#options;
    const released = (owner: string): void => {
      for (const mount of this.#mounts()) mount.released(owner);
    };
    bus.on('session.ended', ({ session }) => released(`session/${session}`));
    bus.on('connection.closed', ({ connection }) => released(requestsAddress(connection)));
    bus.on('principal.forgotten', ({ principal, settling }) => {
      for (const mount of this.#mounts()) settling.push(mount.forget(principal));
    });
    const host = this.#options.host();
    // A page has the names of tools: those that its reader may know of.
    host.search.stages.fill('found', (mail, next) => {
      const { operation } = mail.request;
      const isPage = operation.method === 'resources/read' && operation.uri.startsWith('ui://');
      const seeing = isPage ? host.search.seeTools(mail.request) : undefined;
      if (seeing) void seeing.then(() => next(mail));
      else next(mail);
    });
    return {
      ...host,
      rankOf: this.#rankOf,
      loadSignIns: () => this.#loadSignIns(host),
      showBySearch: (mount, shown) => this.#showBySearch(mount, shown),
    };
  }
}

function isNamed(given: MountArguments): given is Extract<MountArguments, readonly [string, ...unknown[]]> {
  return typeof given[0] === 'string';
}

/** The error for a second mount of one name. */
function nameTaken(name: string): DefinitionError {
  return new DefinitionError(`mount "${name}": the name is taken by another mount: choose another name`);
}

/** The name of a mount that has only its server's: `Shop API` becomes `shop-api`. */
function nameOf({ info: { name } }: ServerInMemory): string {
  return name
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+/, '')
    .slice(0, 24);
}

/** True if a mount with this definition need not be made again. Functions and servers are compared by identity. */
function isSame(before: MountDefinition, after: MountDefinition): boolean {
  const { target: one, ...options } = before;
  const { target: other, ...others } = after;
  return isSameTarget(one, other) && isDeepStrictEqual(options, others);
}

function isSameTarget(one: MountTarget, other: MountTarget): boolean {
  if (one === other) return true;
  if (isServerInMemory(one) || isServerInMemory(other)) return false;
  // Node 20 compares all URLs as equal.
  return isDeepStrictEqual(withTexts(one), withTexts(other));
}

function withTexts(target: object | string): unknown {
  if (target instanceof URL || typeof target === 'string') return String(target);
  return 'url' in target ? { ...target, url: String(target.url) } : target;
}
