/** Reloads a program: each load creates a new generation of its modules, whose definitions replace those of the host. */
import { createRequire } from 'node:module';
import { basename, extname, isAbsolute, relative } from 'node:path';
import { systemClock } from '../../core/kernel/clock.ts';
import { Watch } from '../../core/kernel/files/file-watch.ts';
import { launchedBy } from '../../core/server/launcher.ts';
import type { ServerOptions } from '../../core/server/options.ts';
import type { Store } from '../../core/store/store.ts';
import type { StdioOptions } from '../../core/transports/stdio.ts';
import type { Transport } from '../../core/transports/transport.ts';
import { load } from '../../features/discovery/discover.ts';
import { loading, nextGeneration, onModule } from '../../features/discovery/generation.ts';
import type { Exports } from '../../features/discovery/load-module.ts';
import { findModules, isBelow, isFoundModule, isModule, isPrivate } from '../../features/discovery/module-files.ts';
import { isServer, type Server } from '../../features/server/server.ts';
import type { CommandIo } from '../command-io.ts';
import { commandLog } from '../command-log.ts';
import type { Endpoints } from '../serving/endpoints.ts';
import { identityOf, reasonForNothing, startTarget, waitFor } from '../serving/program.ts';
import { drainOnSignal } from '../serving/stop-signals.ts';
import { catchStrayErrors } from '../serving/stray-errors.ts';
import type { Target } from '../serving/target.ts';
import { startupError } from '../startup-error.ts';
import { say } from '../usage.ts';
import { ViewBuilds } from '../views/view-builds.ts';
import { ReloadHost } from './reload-host.ts';

/** The time limit for loading one discovered module, in milliseconds. */
const LOAD_MS = 30_000;

/** Maximum time in milliseconds that a load waits for a listening program to finish loading. */
const AFTER_MS = 100;

const { cache } = createRequire(import.meta.url);

export class Reloader {
  readonly #target: Target;
  readonly #watch: Watch;
  /** The modules of all generations. */
  readonly #modules = new Set<string>();
  /** The directories in which new modules may appear. */
  readonly #roots = new Set<string>();
  #host: ReloadHost | undefined;
  /** Counts loads: a load is abandoned when the next one starts. */
  #attempt = 0;
  #failed = false;
  /** The exports of a loaded module that offers nothing; undefined while it loads. */
  #exports: Exports | undefined;
  /** Settles when the program's transports are open. */
  #opening: Promise<void> | undefined;
  /** Stops catching the errors of the current load. A load that never ends leaves that to the next one. */
  #endStray: () => void = () => {};
  #listens: () => void = () => {};
  readonly #views = new ViewBuilds({
    watch: (file) => this.#watch.file(file),
    built: (source) => this.#host?.pageBuilt(source),
  });
  readonly #endpoints: Endpoints;
  readonly #onServer: (server: Server) => Promise<void>;
  readonly #local: StdioOptions | undefined;
  readonly #io: CommandIo;
  /** Removes the listeners of the process. */
  readonly #unlisten: () => void;
  readonly #onExit = (code: number): void =>
    say(
      `troupe dev: ${this.#target.path} ended the process with code ${code} while it loaded (process.exit). Start troupe dev again`,
    );

  /**
   * @param endpoints where the host's server listens
   * @param onServer receives the host's server before it listens; that server outlives every load
   * @param chosen the store for servers without a store of their own, and the options of stdio
   */
  constructor(
    target: Target,
    endpoints: Endpoints,
    onServer: (server: Server) => Promise<void>,
    { store, local }: { readonly store: Store | undefined; readonly local: StdioOptions | undefined },
    io: CommandIo,
  ) {
    this.#local = local;
    this.#io = io;
    this.#target = target;
    this.#endpoints = endpoints;
    this.#onServer = onServer;
    this.#watch = new Watch({
      matters: (path) => this.#matters(path),
      onChange: (paths) => {
        say(
          `troupe dev: changed: ${[...paths]
            .map((path) => shown(path, io.cwd))
            .sort()
            .join(', ')}`,
        );
        this.#views.changed(paths);
        if ([...paths].some((path) => this.#isOfProgram(path))) void this.load();
      },
      say: (line) => say(`troupe dev: ${line}`),
    });
    const unhear = onModule((path) => this.#module(path));
    launchedBy({
      listens: (server, transports) => this.#takeOver(server, transports),
      servesInstead: true,
      reads: (paths) => void this.#read(paths),
      log: commandLog(),
      page: (source) => this.#views.page(source),
      store: () => store,
    });
    const idle = (): void => {
      if (!this.#host && !this.#failed)
        say(`troupe dev: cannot serve ${shown(target.path, io.cwd)}: ${reasonForNothing(this.#exports)}`);
      void this.#serveNothing();
    };
    process.on('beforeExit', idle);
    this.#unlisten = () => {
      unhear();
      process.off('exit', this.#onExit);
      process.off('beforeExit', idle);
    };
    if (target.kind === 'file') this.#module(target.path);
  }

  /** Loads a new generation of the program. Never throws; prints failures on stderr. */
  async load(): Promise<void> {
    this.#attempt += 1;
    const current = this.#attempt;
    const began = systemClock.now();
    const before = this.#host?.versions();
    this.#exports = undefined;
    const listens = new Promise<void>((resolve) => {
      this.#listens = resolve;
    });
    this.#endStray();
    const stray = catchStrayErrors();
    this.#endStray = stray.end;
    process.off('exit', this.#onExit).once('exit', this.#onExit);
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
      say(`troupe dev: cannot load ${this.#target.path}: ${startupError(error, this.#target.path)}`);
      if (before) say(`troupe dev: still serving the previous version: ${this.#host}`);
      await this.#serveNothing();
    } finally {
      stray.end();
      if (current === this.#attempt) process.off('exit', this.#onExit);
      // tsx loads some modules from `data:` URLs, which are no paths.
      for (const path of Object.keys(cache))
        if (isAbsolute(path) && !path.includes('/node_modules/')) this.#module(path);
    }
  }

  /** @returns true if some modules failed */
  async #start(generation: number, listens: Promise<void>, overtaken: () => boolean): Promise<boolean> {
    const started = await startTarget(this.#target, generation, listens);
    if (started?.kind === 'listens') {
      await this.#opening;
      // Later registrations of the program belong to this load, too, unless its module never finishes.
      await Promise.race([started.loaded, new Promise<void>((resolve) => systemClock.after(AFTER_MS, resolve))]);
      return false;
    }
    if (overtaken()) return false;
    if (started?.kind === 'exports') {
      await this.#takeOver(started.server, []);
      return false;
    }
    if (started?.kind === 'nothing') {
      this.#exports = started.exports;
      await waitFor(listens, 'dev', this.#target, started.readers);
      return false;
    }
    const loaded = await load([this.#target.path], () => generation, LOAD_MS);
    if (overtaken()) return false;
    this.#host ??= this.#newHost(identityOf(this.#target));
    this.#host.offer(loaded);
    await this.#host.open([]);
    return loaded.failed.length > 0;
  }

  /** The program calls `listen` on a server, or exports one: the host serves in its place. */
  #takeOver(server: object, transports: readonly Transport[]): Promise<void> | undefined {
    if (!isServer(server) || this.#host?.is(server)) return undefined;
    const host = this.#hostFor(server, transports);
    host.adopt(server);
    this.#opening = host.open(transports);
    // load() reports the failure.
    this.#opening.catch(() => {});
    this.#listens();
    return this.#opening;
  }

  #newHost(options: ServerOptions): ReloadHost {
    const serves = (server: Server): void => drainOnSignal(this.#io, server, () => this.#close());
    return new ReloadHost(options, this.#endpoints, this.#onServer, serves, this.#local);
  }

  #close(): void {
    this.#watch.close();
    this.#unlisten();
  }

  /** @param transports those that the program opens */
  #hostFor({ options }: Server, transports: readonly Transport[]): ReloadHost {
    this.#host ??= this.#newHost(options);
    const outdated = this.#host.outdated(options, transports);
    if (outdated.length > 0)
      say(`troupe dev: changed server options apply after a restart of troupe dev: ${outdated.join(', ')}`);
    return this.#host;
  }

  /** Starts an empty server if no load has succeeded yet: the client can connect, and a later load can succeed. */
  async #serveNothing(): Promise<void> {
    if (this.#host) return;
    say('troupe dev: nothing to serve yet: waiting for a change');
    this.#failed = true;
    this.#host = this.#newHost(identityOf(this.#target));
    await this.#host.open([]);
  }

  #module(path: string): void {
    this.#modules.add(path);
    this.#watch.file(path);
  }

  /** Watches paths in which new modules may appear. */
  async #read(paths: readonly string[]): Promise<void> {
    for (const path of paths) {
      this.#roots.add(path);
      const found = await findModules(path).catch(() => undefined);
      for (const directory of found?.directories ?? []) this.#watch.directory(directory);
    }
  }

  #matters(path: string): boolean {
    return this.#views.has(path) || this.#isOfProgram(path);
  }

  #isOfProgram(path: string): boolean {
    const name = basename(path);
    if (this.#modules.has(path)) return true;
    // A load may have failed because a module was missing.
    if (this.#failed && isModule(name)) return true;
    const directory = extname(name) === '' && !isPrivate(name);
    return (directory || isFoundModule(name)) && [...this.#roots].some((root) => isBelow(root, path));
  }
}

/** The path as an author writes it: relative to the working directory if it is below it. */
function shown(path: string, cwd: string): string {
  const short = relative(cwd, path);
  return short === '' || short.startsWith('..') ? path : short;
}
