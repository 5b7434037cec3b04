/** Mounts the servers of a configuration file, and follows its changes while calls run. */
import { readFileSync, realpathSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import type { TokenStore } from '../client/oauth/token-store.ts';
import { delayAfter } from '../core/kernel/back-off.ts';
import { type Clock, pause, systemClock } from '../core/kernel/clock.ts';
import { Watch } from '../core/kernel/files/file-watch.ts';
import type { OperatorLogLevel } from '../core/kernel/operator-log.ts';
import { sha256 } from '../core/kernel/sha256.ts';
import { messageOf } from '../core/protocol/json.ts';
import { type ConfiguredServer, type GatewayConfiguration, readConfiguration } from './configuration.ts';
import type { MountRegistration } from './mounts/define-mount.ts';
import type { Mount, MountOptions, MountTarget } from './mounts/mount-options.ts';
import { isHeaderAuth, isOAuth } from './openapi/api-auth.ts';
import type { OpenApiOptions } from './openapi/openapi-settings.ts';
import { openapi } from './openapi/openapi-target.ts';

/** The server of a gateway. */
interface GatewayServer {
  mount(name: string, target: MountTarget, options: MountOptions): Promise<Mount>;
  readonly mounts: Pick<MountRegistration, 'arrange'>;
}

interface GatewayOptions {
  /** The path of the configuration. */
  readonly file: string;
  readonly server: GatewayServer;
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The grants of sign-ins, those of `troupe login` among them. Default: memory. */
  readonly tokens?: TokenStore;
  /** The directory of the catalogues, for a server whose store does not survive the process. Default: they are not kept. */
  readonly catalogues?: string;
  /** Receives one line for each thing that the operator must know. */
  say(level: OperatorLogLevel, line: string): void;
  readonly clock?: Clock;
}

/** `npx` may download a program before it starts it. */
const COMMAND_PATIENCE = { connectMs: 60_000, probeMs: 5_000, listMs: 75_000, upstreamWaitMs: 60_000 } as const;
/** Delays in milliseconds after a server could not be replaced: doubled with each failure. */
const RETRY = { fromMs: 1_000, toMs: 60_000 } as const;

/** The file with the catalogue of a server of a configuration. */
function catalogueFileOf(directory: string, file: string, name: string): string {
  return join(directory, `${sha256(`${resolve(file)}\0${name}`).slice(0, 32)}.json`);
}

/** The lock file of a configuration: `mcp.json` has `mcp.lock.json`. */
export function lockFileOf(file: string): string {
  return `${resolve(file).replace(/\.jsonc?$/, '')}.lock.json`;
}

function isSame(one: ConfiguredServer | undefined, other: ConfiguredServer | undefined): boolean {
  const [a, b] = [one?.digests, other?.digests];
  return a?.target === b?.target && a?.options === b?.options;
}

/** The target of a mount. Its name has no values of variables, which may be secrets: errors and logs show it. */
function targetOf({ target, shown }: ConfiguredServer, tokens: TokenStore | undefined): MountTarget {
  if ('openapi' in target) return openapi(target.openapi, withTokens(target.api, tokens));
  return 'socket' in target ? target : { ...target, name: shown };
}

/** The options of an API, whose sign-ins are kept with the others. */
function withTokens({ auth, ...options }: OpenApiOptions, tokens: TokenStore | undefined): OpenApiOptions {
  if (typeof auth !== 'object' || isHeaderAuth(auth)) return { ...options, ...(auth !== undefined && { auth }) };
  const credentials = Object.entries(auth).map(([scheme, each]) => [
    scheme,
    isOAuth(each) && tokens ? { ...each, tokens } : each,
  ]);
  return { ...options, auth: Object.fromEntries(credentials) };
}

/** True if people sign in at a server, or the gateway does: its entry has an address, and no credentials of its own. */
function signsIn({ target, options: { auth } }: ConfiguredServer): boolean {
  if (!('url' in target) || auth === false) return false;
  return auth !== undefined || !Object.keys(target.headers).some((name) => name.toLowerCase() === 'authorization');
}

export class Gateway {
  readonly #options: GatewayOptions;
  readonly #file: string;
  /** The file behind links. */
  #real = '';
  readonly #lock: string;
  readonly #places = new Map<string, ServerPlace>();
  readonly #watch: Watch;
  /** The text of the last configuration that was read, whether it was valid or not. */
  #text = '';
  /** Files with variables that the configuration names. */
  #files: ReadonlySet<string> = new Set();
  /** The server listens, or is about to: it lists what is mounted before, and mounts list themselves from now on. */
  #listens = false;
  /** The problems that were reported last. */
  #reported = '';

  constructor(options: GatewayOptions) {
    this.#options = options;
    this.#file = resolve(options.file);
    this.#lock = lockFileOf(options.file);
    this.#watch = new Watch({
      // A volume of Kubernetes replaces the link `..data` to the directory of its files.
      matters: (path) =>
        [this.#file, this.#lock, this.#real].includes(path) || this.#files.has(path) || basename(path) === '..data',
      onChange: (paths) => this.#changed(paths),
      say: (line) => this.#say('info', line),
      clock: options.clock ?? systemClock,
    });
  }

  /**
   * Mounts all servers of the configuration, and watches its directory, because editors replace the file.
   *
   * @throws {ConfigurationError | Error} if the file cannot be read
   */
  async open(): Promise<void> {
    this.#watch.directory(dirname(this.#file));
    this.#text = readFileSync(this.#file, 'utf8');
    this.#real = realpathSync(this.#file);
    this.#watch.directory(dirname(this.#real));
    const configuration = this.#read(this.#text);
    for (const { name, shown } of configuration.servers) this.#say('info', `${name}: ${shown}`);
    for (const name of configuration.disabled) this.#say('info', `${name}: disabled`);
    if (configuration.servers.length === 0) this.#say('warning', `${this.#file} has no server to mount`);
    this.#apply(configuration);
    await this.settled();
    for (const place of this.#places.values()) place.listens();
    this.#listens = true;
  }

  /** Resolves when the servers are mounted as the configuration has them. A server is listed later. */
  async settled(): Promise<void> {
    await Promise.all([...this.#places.values()].map((place) => place.settled));
  }

  /** Ends the watch. The server closes its mounts. */
  close(): void {
    this.#watch.close();
    for (const place of this.#places.values()) place.stop();
  }

  #read(text: string): GatewayConfiguration {
    const configuration = readConfiguration(text, { file: this.#file, environment: this.#options.environment });
    const lines = configuration.problems.map(
      ({ line, field, message, off }) =>
        `${this.#file}:${line}: ${field}: ${message}${off === undefined ? '' : `. The server is not mounted`}`,
    );
    const reported = lines.join('\n');
    if (reported !== this.#reported) for (const line of lines) this.#say('warning', line);
    this.#reported = reported;
    this.#files = configuration.files;
    for (const path of this.#files) this.#watch.file(path);
    return configuration;
  }

  #changed(paths: ReadonlySet<string>): void {
    if (paths.has(this.#lock)) for (const place of this.#places.values()) place.pinsChanged();
    if (paths.size > (paths.has(this.#lock) ? 1 : 0)) this.reload([...paths].some((path) => this.#files.has(path)));
  }

  /**
   * Reads the configuration again, and applies it if its text is another one. A problem is reported, and changes nothing.
   *
   * @param variables true if a file with variables has changed
   */
  reload(variables = false): void {
    try {
      const text = readFileSync(this.#file, 'utf8');
      if (text === this.#text && !variables) return;
      this.#text = text;
      this.#apply(this.#read(text));
    } catch (error) {
      this.#say('error', `${messageOf(error)}. The servers stay as they were`);
    }
  }

  #apply({ servers }: GatewayConfiguration): void {
    const wanted = new Map(servers.map((server) => [server.name, server]));
    this.#options.server.mounts.arrange([...wanted.keys()]);
    for (const [name, place] of this.#places) if (!wanted.has(name)) place.want(undefined);
    for (const server of servers) {
      const place = this.#places.get(server.name) ?? new ServerPlace(server.name, this.#options);
      this.#places.set(server.name, place);
      if (this.#listens) place.listens();
      place.want(server);
    }
  }

  #say(level: OperatorLogLevel, line: string): void {
    this.#options.say(level, line);
  }
}

/**
 * One name of the configuration. Changes are made one after the other, and of those that wait only the last is made. A
 * server that is slow to start delays no other.
 */
class ServerPlace {
  readonly #name: string;
  readonly #options: GatewayOptions;
  #wanted: ConfiguredServer | undefined;
  #mount: { readonly mount: Mount; readonly of: ConfiguredServer } | undefined;
  #working: Promise<void> | undefined;
  /** Ends a replacement, or the wait before the next attempt, when something else is wanted. */
  #overtaken = new AbortController();
  #stopped = false;
  #listens = false;

  constructor(name: string, options: GatewayOptions) {
    this.#name = name;
    this.#options = options;
  }

  /** Resolves when nothing is left to do. */
  get settled(): Promise<void> {
    return this.#working ?? Promise.resolve();
  }

  want(server: ConfiguredServer | undefined): void {
    // An edit of another server must not begin this change again.
    if (this.#working && isSame(server, this.#wanted)) return;
    this.#wanted = server;
    this.#overtaken.abort();
    this.#working ??= this.#work().finally(() => {
      this.#working = undefined;
    });
  }

  /** Lists each server that is mounted from now on. */
  listens(): void {
    this.#listens = true;
  }

  /** Other definitions are approved: they need not be held any more. */
  pinsChanged(): void {
    // A failed listing is reported by the mount.
    if (this.#mount?.of.options.pins === 'hold') this.#mount.mount.refresh().catch(() => {});
  }

  stop(): void {
    this.#stopped = true;
    this.#overtaken.abort();
  }

  async #work(): Promise<void> {
    for (let failures = 0; !this.#stopped && !isSame(this.#wanted, this.#mount?.of); ) {
      this.#overtaken = new AbortController();
      const wanted = this.#wanted;
      try {
        await this.#step(wanted);
        failures = 0;
      } catch (error) {
        if (this.#stopped || this.#wanted !== wanted) continue;
        failures += 1;
        const still = this.#mount ? ' The server stays as it was' : '';
        if (failures === 1) this.#say('error', `${messageOf(error)}.${still}`);
        // A definition that the server rejects stays rejected; a server that cannot be reached may come back.
        if (!this.#mount) return;
        await pause(this.#options.clock ?? systemClock, delayAfter(RETRY, failures), this.#overtaken.signal);
      }
    }
  }

  async #step(wanted: ConfiguredServer | undefined): Promise<void> {
    const now = this.#mount;
    if (!wanted) {
      this.#mount = undefined;
      this.#say('info', 'removed');
      // Its calls finish meanwhile. The name is free when it is withdrawn.
      void now?.mount.close();
      return;
    }
    const patience = 'command' in wanted.target ? COMMAND_PATIENCE : {};
    const { auth, ...others } = wanted.options;
    const { catalogues, tokens } = this.#options;
    const options = {
      ...patience,
      ...others,
      pinFile: lockFileOf(this.#options.file),
      ...(catalogues !== undefined && { catalogueFile: catalogueFileOf(catalogues, this.#options.file, this.#name) }),
      ...(signsIn(wanted) ? { auth: { ...auth, ...(tokens && { tokens }) } } : auth === false ? { auth } : {}),
    };
    if (!now) {
      const mount = await this.#options.server.mount(this.#name, targetOf(wanted, tokens), options);
      this.#mount = { mount, of: wanted };
      // A failed listing is reported by the mount, which lists again.
      if (this.#listens) mount.ready().catch(() => {});
      return;
    }
    const moved = wanted.digests.target !== now.of.digests.target;
    if (moved) this.#say('info', `changes to ${wanted.shown}`);
    await now.mount.change({
      options,
      ...(moved ? { target: targetOf(wanted, tokens) } : {}),
      signal: this.#overtaken.signal,
    });
    this.#mount = { mount: now.mount, of: wanted };
    this.#say('info', moved ? `changed to ${wanted.shown}` : 'has other options');
  }

  #say(level: OperatorLogLevel, text: string): void {
    this.#options.say(level, `${this.#name}: ${text}`);
  }
}
