/** Loads a program again and again: each load is a generation of its modules, and what comes of it goes to the one host. */
import { createRequire } from 'node:module';
import { basename, extname } from 'node:path';
import { systemClock } from '../../clock.ts';
import { load } from '../../discovery/discover.ts';
import { loading, nextGeneration, onModule } from '../../discovery/generation.ts';
import { findModules, isBelow, isFoundModule, isModule, isPrivate } from '../../discovery/module-files.ts';
import { launchedBy } from '../../launcher.ts';
import type { ServerOptions } from '../../options.ts';
import { isServer, type Server } from '../../server.ts';
import type { Store } from '../../store/store.ts';
import { stdio } from '../../transports/stdio.ts';
import type { Transport } from '../../transports/transport.ts';
import { identityOf, startTarget, waitFor } from '../serving/program.ts';
import { hearStrayErrors } from '../serving/stray-errors.ts';
import type { Target } from '../serving/target.ts';
import { startupError } from '../startup-error.ts';
import { say } from '../usage.ts';
import { ReloadHost } from './reload-host.ts';
import { Watch } from './watch.ts';

/** Milliseconds that one discovered module is given to load. */
const LOAD_MS = 30_000;

/** Milliseconds that a program is given to finish loading after it has begun to listen. */
const AFTER_MS = 100;

const { cache } = createRequire(import.meta.url);

export class Reloader {
  readonly #target: Target;
  readonly #watch: Watch;
  /** The modules that were loaded, in any generation. */
  readonly #modules = new Set<string>();
  /** Where new modules may appear. */
  readonly #roots = new Set<string>();
  #host: ReloadHost | undefined;
  /** Counts loads: one that is overtaken by the next comes to nothing. */
  #attempt = 0;
  #failed = false;
  /** Settled when the transports are open on which the program listens. */
  #opening: Promise<void> | undefined;
  #listens: () => void = () => {};
  readonly #watching: (server: Server) => Promise<void>;

  /**
   * @param store for a server that has none of its own
   * @param watching is told of the one server that serves, before it does: it outlives every load
   */
  constructor(target: Target, store?: Store, watching: (server: Server) => Promise<void> = async () => {}) {
    this.#target = target;
    this.#watching = watching;
    this.#watch = new Watch({
      matters: (path) => this.#matters(path),
      onChange: () => void this.load(),
      say: (line) => say(`troupe dev: ${line}`),
    });
    onModule((path) => this.#module(path));
    launchedBy({
      listens: (server, transports) => this.#takeOver(server, transports),
      reads: (paths) => void this.#read(paths),
      store: () => store,
    });
    process.on('beforeExit', () => void this.#serveNothing());
    if (target.kind === 'file') this.#module(target.path);
  }

  /** Loads the program, afresh. Never throws: what went wrong is said on stderr. */
  async load(): Promise<void> {
    this.#attempt += 1;
    const current = this.#attempt;
    const began = systemClock.now();
    const before = this.#host?.versions();
    const listens = new Promise<void>((resolve) => {
      this.#listens = resolve;
    });
    const stray = hearStrayErrors();
    try {
      if (this.#target.kind === 'directory') await this.#read([this.#target.path]);
      loading.program = nextGeneration();
      const starting = this.#start(loading.program, listens, () => current !== this.#attempt);
      const failed = await Promise.race([starting, stray.thrown]);
      if (current !== this.#attempt) return;
      this.#failed = failed;
      if (before && !failed) this.#host?.announceUnlessChangedSince(before);
      say(`troupe dev: loaded in ${Math.round(systemClock.now() - began)} ms: ${this.#host ?? 'nothing'}`);
    } catch (error) {
      if (current !== this.#attempt) return;
      this.#failed = true;
      say(`troupe dev: ${this.#target.path} cannot be loaded: ${startupError(error, this.#target.path)}`);
      if (before) say(`troupe dev: what was loaded before is still served: ${this.#host}`);
      await this.#serveNothing();
    } finally {
      stray.end();
      for (const path of Object.keys(cache)) if (!path.includes('/node_modules/')) this.#module(path);
    }
  }

  /** @returns whether some of the modules failed */
  async #start(generation: number, listens: Promise<void>, overtaken: () => boolean): Promise<boolean> {
    const started = await startTarget(this.#target, generation, listens);
    if (started?.kind === 'listens') {
      await this.#opening;
      // What it registers after that belongs to this load too, unless it waits there for ever.
      await Promise.race([started.loaded, new Promise<void>((resolve) => systemClock.after(AFTER_MS, resolve))]);
      return false;
    }
    if (overtaken()) return false;
    if (started?.kind === 'exports') {
      await this.#takeOver(started.server, [stdio()]);
      return false;
    }
    if (started?.kind === 'nothing') {
      await waitFor(listens, 'dev', this.#target);
      return false;
    }
    const loaded = await load([this.#target.path], () => generation, LOAD_MS);
    if (overtaken()) return false;
    this.#host ??= this.#newHost(identityOf(this.#target));
    this.#host.offer(loaded);
    await this.#host.open(stdio());
    return loaded.failed.length > 0;
  }

  /** A server of the program was told to listen, or is exported: the host serves in its place. */
  #takeOver(server: object, transports: readonly Transport[]): Promise<void> | undefined {
    if (!isServer(server) || this.#host?.is(server)) return undefined;
    const host = this.#hostFor(server);
    host.adopt(server);
    this.#opening = host.open(...transports);
    // Whoever loads hears of it, too.
    this.#opening.catch(() => {});
    this.#listens();
    return this.#opening;
  }

  #newHost(options: ServerOptions): ReloadHost {
    return new ReloadHost(options, this.#watching);
  }

  #hostFor({ options }: Server): ReloadHost {
    const outdated = this.#host?.outdated(options) ?? [];
    if (outdated.length > 0) say(`troupe dev: start again for the new ${outdated.join(', ')} of the server`);
    this.#host ??= this.#newHost(options);
    return this.#host;
  }

  /** With nothing loaded yet there is a server all the same: the client may connect, and the next change may mend it. */
  async #serveNothing(): Promise<void> {
    if (this.#host) return;
    say('troupe dev: nothing is served yet: waiting for a change');
    this.#failed = true;
    this.#host = this.#newHost(identityOf(this.#target));
    await this.#host.open(stdio());
  }

  #module(path: string): void {
    this.#modules.add(path);
    this.#watch.file(path);
  }

  /** New modules may appear below these paths. */
  async #read(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      this.#roots.add(path);
      const found = await findModules(path).catch(() => undefined);
      for (const directory of found?.directories ?? []) this.#watch.directory(directory);
    }
  }

  #matters(path: string): boolean {
    const name = basename(path);
    if (this.#modules.has(path)) return true;
    // What a failed load lacks may be a module that was never loaded.
    if (this.#failed && isModule(name)) return true;
    const directory = extname(name) === '' && !isPrivate(name);
    return (directory || isFoundModule(name)) && [...this.#roots].some((root) => isBelow(root, path));
  }
}
