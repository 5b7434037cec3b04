/** The server that outlives reloads: clients stay connected to it, and each reload gives it what the program offers now. */
import { type LoadedModules, offer, withdrawAll } from '../../discovery/discover.ts';
import type { InspectionRecord } from '../../inspection/records.ts';
import { stderrLog } from '../../operator-log.ts';
import type { ServerOptions } from '../../options.ts';
import type { Registration } from '../../registry/registration.ts';
import { createServer, type Server } from '../../server.ts';
import type { Transport } from '../../transports/transport.ts';

/** The source under which the program's own registrations stand. */
const PROGRAM = 'the program';

/** What clients of a development server may come to see, though nothing of it is there when they connect. */
const MAY_COME = ['tools', 'resources', 'prompts', 'completions'] as const;

/** Whether a new value of an option can be told by its JSON. All options hold from the start; functions differ with each load. */
const COMPARED: Readonly<Record<keyof ServerOptions, boolean>> = {
  name: true,
  version: true,
  title: true,
  description: true,
  icons: true,
  websiteUrl: true,
  instructions: true,
  executors: false,
  // A development server offers all of them.
  offers: false,
  experimental: true,
  extensions: true,
  listTtlMs: true,
  limits: true,
  http: true,
  keys: true,
  askThroughModel: true,
  store: false,
  watchdog: true,
  afterLateError: true,
  log: false,
  clock: false,
};

export class ReloadHost {
  readonly #options: ServerOptions;
  readonly #server: Server;
  readonly #opened = new Set<string>();
  readonly #watched: Promise<void>;
  #unfollow: (() => void) | undefined;

  /**
   * @param options those of the first load: they hold until the process ends
   * @param watching is told of the server that serves, whatever is loaded, before it listens
   */
  constructor(options: ServerOptions, watching: (server: Server) => Promise<void> = async () => {}) {
    this.#options = options;
    this.#server = createServer({ ...options, offers: MAY_COME });
    this.#watched = watching(this.#server);
  }

  /** True for the server that this host serves with. */
  is(server: object): boolean {
    return server === this.#server;
  }

  /** Opens the transports of which none of that name is open yet. */
  async open(...transports: readonly Transport[]): Promise<void> {
    for (const transport of transports) {
      if (this.#opened.has(transport.name)) continue;
      this.#opened.add(transport.name);
      await this.#watched;
      try {
        await this.#server.listen(transport);
      } catch (error) {
        // The next load may find what was in the way gone.
        this.#opened.delete(transport.name);
        throw error;
      }
    }
  }

  /** Offers what a server of the program offers, now and whenever the program changes it, in place of all before. */
  adopt(program: Server): void {
    this.#unfollow?.();
    withdrawAll(this.#server);
    this.#copy(program);
    this.#unfollow = this.#follow(program);
  }

  /** Offers what was discovered, in place of all before. */
  offer(loaded: LoadedModules): void {
    this.#unfollow?.();
    this.#unfollow = undefined;
    for (const kind of this.#kinds()) kind.replaceSource(PROGRAM, []);
    this.#server.machines.replaceSource(PROGRAM, []);
    offer(this.#server, loaded, this.#options.log ?? stderrLog);
  }

  /** The versions of all that is offered, to be compared after a reload. */
  versions(): readonly number[] {
    return this.#kinds().map(({ catalogue }) => catalogue.version);
  }

  /** Who waits for a reload hears of it, also when nothing looks different: all that is offered is announced. */
  announceUnlessChangedSince(versions: readonly number[]): void {
    if (this.versions().some((version, index) => version !== versions[index])) return;
    for (const kind of this.#kinds()) if (kind.catalogue.all().length > 0) kind.announce();
  }

  /** The options of a program that was loaded again which differ from those that hold. */
  outdated(options: ServerOptions): readonly string[] {
    const given = new Map(Object.entries(options));
    const before = new Map(Object.entries(this.#options));
    return Object.entries(COMPARED).flatMap(([name, compared]) =>
      compared && JSON.stringify(given.get(name)) !== JSON.stringify(before.get(name)) ? [name] : [],
    );
  }

  /** What is offered, counted. @example 2 tools, 1 resource, 0 prompts */
  toString(): string {
    const { tools, resources, prompts } = this.#server;
    const counted = { tool: tools, resource: resources, prompt: prompts };
    return Object.entries(counted)
      .map(([noun, { catalogue }]) => [noun, catalogue.all().length] as const)
      .map(([noun, count]) => `${count} ${noun}${count === 1 ? '' : 's'}`)
      .join(', ');
  }

  #kinds() {
    const { tools, resources, prompts } = this.#server;
    return [tools, resources, prompts];
  }

  /** The instances of machines stay with the server that serves: they go on in what the program has made of their machine. */
  #copy({ machines, tools, resources, prompts }: Server): void {
    const mine = this.#server;
    const still = new Set(machines.definitions().map(({ name }) => name));
    // A tool may take the name that a machine has left, and the other way round.
    mine.machines.replaceSource(
      PROGRAM,
      mine.machines.definitions().filter(({ name }) => still.has(name)),
    );
    mine.tools.replaceSource(PROGRAM, tools.definitions());
    mine.resources.replaceSource(PROGRAM, resources.definitions());
    mine.machines.replaceSource(PROGRAM, machines.definitions());
    copy(tools, mine.tools);
    copy(resources, mine.resources);
    copy(prompts, mine.prompts);
  }

  /** The program keeps its own server, which serves nobody: what it tells that one is passed on. */
  #follow(program: Server): () => void {
    let due = false;
    return program.inspect((record) => {
      const told = toldTo(record);
      if (told === 'registry' && !due) {
        due = true;
        // The record comes before the change.
        queueMicrotask(() => {
          due = false;
          this.#copy(program);
        });
      } else if (told === 'server') this.#pass(record);
    });
  }

  #pass(record: InspectionRecord): void {
    if (record.type !== 'mail') return;
    const { mail } = record;
    if (mail.type === 'resource updated' && 'uri' in mail) this.#server.resourceUpdated(String(mail.uri));
    if (mail.type === 'drain' && 'reason' in mail) void this.#server.close(String(mail.reason));
  }
}

function copy<D>(from: Registration<D>, to: Registration<D>): void {
  to.replaceSource(PROGRAM, from.definitions());
  for (const { key, enabled } of from.catalogue.all()) {
    if (enabled === (to.catalogue.get(key) !== undefined)) continue;
    if (enabled) to.enable(key);
    else to.disable(key);
  }
}

/** Whom the program told something: a registry of a change, or its server. */
function toldTo(record: InspectionRecord): 'registry' | 'server' | undefined {
  if (record.type !== 'mail') return undefined;
  if (record.actor === 'server' || record.actor === 'subscriptions') return 'server';
  return record.actor.startsWith('registry/') && record.mail.type !== 'request' ? 'registry' : undefined;
}
