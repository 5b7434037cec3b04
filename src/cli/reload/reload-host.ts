/** The server that outlives reloads: clients stay connected to it, and each reload replaces its definitions. */

import type { HttpOptions } from '../../core/http/http-options.ts';
import { givenTo, isRelocatable } from '../../core/http/node-transport.ts';
import type { InspectionRecord } from '../../core/kernel/inspection/records.ts';
import { stderrLog } from '../../core/kernel/operator-log.ts';
import type { Registration } from '../../core/registry/registration.ts';
import type { ServerOptions } from '../../core/server/options.ts';
import type { StdioOptions } from '../../core/transports/stdio.ts';
import type { Transport } from '../../core/transports/transport.ts';
import { entryPath } from '../../features/apps/app-page.ts';
import { type LoadedModules, offer, withdrawAll } from '../../features/discovery/discover.ts';
import { forDevelopment } from '../../features/events/callback-origins.ts';
import { INTERNALS } from '../../features/server/internals.ts';
import { createServer, type Server } from '../../features/server/server.ts';
import { commandLog } from '../command-log.ts';
import type { Endpoints } from '../serving/endpoints.ts';
import { servedOn } from '../serving/served-transports.ts';

/** The source name of the program's own registrations. */
const PROGRAM = 'the program';

/** The capabilities of a development server: a later load may add definitions of any kind. */
const ALL_CAPABILITIES = ['tools', 'resources', 'prompts', 'completions'] as const;

/** True if JSON shows a changed value of an option. Functions and objects with methods differ at each load, so they are not compared. */
const COMPARED: Readonly<Record<keyof ServerOptions, boolean>> = {
  name: true,
  version: true,
  title: true,
  description: true,
  icons: true,
  websiteUrl: true,
  instructions: true,
  executors: false,
  // The elements are offered from each load of the program, and all capabilities are declared.
  tools: false,
  resources: false,
  prompts: false,
  machines: false,
  offers: false,
  experimental: true,
  extensions: true,
  listTtlMs: true,
  limits: true,
  http: true,
  keys: true,
  askThroughModel: true,
  store: false,
  cluster: true,
  code: true,
  events: true,
  watchdog: true,
  afterLateError: true,
  errors: true,
  audit: true,
  telemetry: false,
  log: false,
  onApproval: false,
  features: false,
  clock: false,
};

export class ReloadHost {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #opened = new Set<string>();
  /** The options of the first load for its HTTP transport. */
  #http: HttpOptions | undefined;
  readonly #ready: Promise<void>;
  readonly #endpoints: Endpoints;
  readonly #serves: (server: Server) => void;
  readonly #local: StdioOptions | undefined;
  #drains = false;
  #unfollow: (() => void) | undefined;

  /**
   * @param options the options of the first load, which apply until the process ends
   * @param endpoints those of the command; the transports of the program, or stdio, if it has none
   * @param onServer receives the server before it listens
   * @param serves is called once, when the server listens without stdio, whose transport handles signals itself
   * @param local the options of stdio, such as its client
   */
  constructor(
    options: ServerOptions,
    endpoints: Endpoints,
    onServer: (server: Server) => Promise<void>,
    serves: (server: Server) => void = () => {},
    local?: StdioOptions,
  ) {
    this.#local = local;
    this.#options = options;
    this.#endpoints = endpoints;
    this.#serves = serves;
    const { tools, resources, prompts, machines, ...others } = options;
    this.#server = createServer({ ...others, events: forDevelopment(others.events), offers: ALL_CAPABILITIES });
    this.#ready = onServer(this.#server);
  }

  /** True for the host's own server. */
  is(server: object): boolean {
    return server === this.#server;
  }

  /** Opens each transport whose name is not open yet. @param own the transports that the program opens */
  async open(own: readonly Transport[]): Promise<void> {
    const endpoints = this.#endpoints;
    if (endpoints.none) return this.#listen(servedOn(own, this.#local));
    const isFirst = this.#opened.size === 0;
    await this.#listen(endpoints.transports(this.#server, own));
    if (isFirst) endpoints.announce(this.#server);
  }

  async #listen(transports: readonly Transport[]): Promise<void> {
    for (const transport of transports) {
      if (this.#opened.has(transport.name)) continue;
      this.#opened.add(transport.name);
      await this.#ready;
      try {
        await this.#server.listen(transport);
        this.#drainOnSignal();
      } catch (error) {
        // The next load retries.
        this.#opened.delete(transport.name);
        throw error;
      }
    }
  }

  #drainOnSignal(): void {
    if (this.#drains || this.#opened.has('stdio')) return;
    this.#drains = true;
    this.#serves(this.#server);
  }

  /** Replaces all definitions with those of the program's server, and mirrors later changes. */
  adopt(program: Server): void {
    this.#unfollow?.();
    withdrawAll(this.#server);
    // Before the elements: none of them is served without its rules and its middleware.
    this.#server.guardAs(program);
    this.#copy(program);
    this.#server[INTERNALS].schedules().replace(program[INTERNALS].schedules().definitions());
    this.#unfollow = this.#follow(program);
  }

  /** Reads the page of a script again: clients get changed lists of the tools that open it. */
  pageBuilt(source: string): void {
    const { apps } = this.#server;
    for (const app of apps.definitions())
      if (app.entry !== undefined && entryPath(app.entry) === source) apps.update(app);
  }

  /** Replaces all definitions with the discovered ones. */
  offer(loaded: LoadedModules): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
    this.#server.guardAs(undefined);
    this.#server.skillsOf(undefined);
    this.#server.eventsOf(undefined);
    adoptHooks(this.#server, undefined);
    this.#server[INTERNALS].schedules().replace([]);
    for (const kind of this.#kinds()) kind.replaceSource(PROGRAM, []);
    this.#server.apps.replaceSource(PROGRAM, []);
    this.#server.machines.replaceSource(PROGRAM, []);
    this.#server.mounts.replaceSource(PROGRAM, []);
    offer(this.#server, loaded, this.#options.log ?? commandLog() ?? stderrLog);
  }

  /** The versions of all catalogues, for comparison after a reload. */
  versions(): readonly number[] {
    return this.#kinds().map(({ catalogue }) => catalogue.version);
  }

  /** Announces every list after a reload that changed no catalogue: handlers may have changed, and clients see that a reload took place. */
  announceUnlessChangedSince(versions: readonly number[]): void {
    if (this.versions().some((version, index) => version !== versions[index])) return;
    for (const kind of this.#kinds()) if (kind.catalogue.all().length > 0) kind.announce();
  }

  /** The names of options whose new values differ from those of the first load. @param own the transports that the program opens */
  outdated(options: ServerOptions, own: readonly Transport[]): readonly string[] {
    const compared = Object.entries(COMPARED).flatMap(([name, isCompared]) => (isCompared ? [name] : []));
    const transport = own.find(isRelocatable);
    if (!transport) return changed(compared, this.#options, options);
    const given = givenTo(transport);
    this.#http ??= given;
    const names = [...new Set([this.#http, given].flatMap((each) => Object.keys(each)))];
    const ofTransport = changed(names, this.#http, given);
    const listed = ofTransport.length === 0 ? [] : [`http({ ${ofTransport.join(', ')} })`];
    return [...changed(compared, this.#options, options), ...listed];
  }

  /** Counts the definitions. @example 7 tools, 1 resource, 0 prompts, 1 machine */
  toString(): string {
    const { tools, resources, prompts, machines } = this.#server;
    const counted = { tool: tools, resource: resources, prompt: prompts };
    const counts = Object.entries(counted).map(([noun, { catalogue }]) => [noun, catalogue.all().length] as const);
    const charts = machines.definitions().length;
    return [...counts, ...(charts > 0 ? [['machine', charts] as const] : [])]
      .map(([noun, count]) => `${count} ${noun}${count === 1 ? '' : 's'}`)
      .join(', ');
  }

  #kinds() {
    const { tools, resources, prompts } = this.#server;
    return [tools, resources, prompts];
  }

  /** Copies all definitions. Machine instances stay in the host's server and continue in the new version of their machine. */
  #copy(program: Server): void {
    const { apps, machines, tools, resources, prompts } = program;
    const mine = this.#server;
    const remaining = new Set(machines.definitions().map(({ name }) => name));
    // Removes dropped machines first: a new tool may use the name of a removed machine, and the other way round.
    mine.machines.replaceSource(
      PROGRAM,
      mine.machines.definitions().filter(({ name }) => remaining.has(name)),
    );
    mine.tools.replaceSource(PROGRAM, tools.definitions());
    mine.resources.replaceSource(PROGRAM, resources.definitions());
    mine.machines.replaceSource(PROGRAM, machines.definitions());
    mine.apps.replaceSource(PROGRAM, apps.definitions());
    mine.skillsOf(program);
    mine.eventsOf(program);
    adoptHooks(mine, program);
    mine.mounts.replaceSource(PROGRAM, program.mounts.definitions());
    copy(tools, mine.tools);
    copy(resources, mine.resources);
    copy(prompts, mine.prompts);
  }

  /** The program changes its own server, which has no clients. Forwards these changes to the host's server. */
  #follow(program: Server): () => void {
    let due = false;
    return program.inspect((record) => {
      const target = targetOf(record);
      if (target === 'registry' && !due) {
        due = true;
        // The record precedes the change.
        queueMicrotask(() => {
          due = false;
          this.#copy(program);
        });
      } else if (target === 'server') this.#forward(record);
    });
  }

  #forward(record: InspectionRecord): void {
    if (record.type !== 'mail') return;
    const { mail } = record;
    if (mail.type === 'resource updated' && 'uri' in mail) this.#server.resourceUpdated(String(mail.uri));
    if (mail.type === 'drain' && 'reason' in mail) void this.#server.close(String(mail.reason));
  }
}

/** The names whose values JSON shows as different. */
function changed(names: readonly string[], before: object, after: object): readonly string[] {
  const [old, current] = [before, after].map((options) => new Map<string, unknown>(Object.entries(options)));
  return names.filter((name) => JSON.stringify(old?.get(name)) !== JSON.stringify(current?.get(name)));
}

function copy<D>(from: Registration<D>, to: Registration<D>): void {
  to.replaceSource(PROGRAM, from.definitions());
  const copies = new Map(to.catalogue.all().map(({ key, enabled }) => [key, enabled]));
  for (const { key, enabled } of from.catalogue.all()) {
    // Files of skills come with their folders.
    if ((copies.get(key) ?? enabled) === enabled) continue;
    if (enabled) to.enable(key);
    else to.disable(key);
  }
}

/** The receiver of the program's message: a registry that changes, or the server. A mount is as a change of a registry. */
function targetOf(record: InspectionRecord): 'registry' | 'server' | undefined {
  if (record.type === 'created' && record.kind === 'mount') return 'registry';
  if (record.type !== 'mail') return undefined;
  if (record.actor === 'server' || record.actor === 'subscriptions') return 'server';
  return record.actor.startsWith('registry/') && record.mail.type !== 'request' ? 'registry' : undefined;
}

/** The webhooks of the program, in place of those of its last load. */
function adoptHooks(server: Server, program: Server | undefined): void {
  const defined = program?.[INTERNALS].hooks()?.defined ?? [];
  const { hooks } = server[INTERNALS];
  (defined.length > 0 ? hooks(true) : hooks())?.adopt(defined);
}
