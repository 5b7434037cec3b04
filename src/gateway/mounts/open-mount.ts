/** Mounts a server: makes its upstream and its actor, and the object that `server.mount` returns. */

import { randomInt } from 'node:crypto';
import { checkTarget, isChannelTarget } from '../../client/client-options.ts';
import { isServerInMemory } from '../../client/in-memory.ts';
import type { CallOwner } from '../../core/execution/request-context.ts';
import { within } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import type { LogFields } from '../../core/kernel/operator-log.ts';
import type { Quota } from '../../core/kernel/quota.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { throttledLog } from '../../core/kernel/throttled-log.ts';
import { isObject, messageOf } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import type { Store } from '../../core/store/store.ts';
import type { PageAddress } from '../../core/transports/transport.ts';
import { upstreamOwner } from './call-relay.ts';
import { isDirect } from './direct-target.ts';
import { type MountMail, type MountServer, spawnMount } from './mount.actor.ts';
import {
  type Mount,
  type MountOptions,
  type MountSettings,
  type MountTarget,
  readMountOptions,
} from './mount-options.ts';
import type { Waiter } from './mounted-elements.ts';
import { NameClaims } from './name-claims.ts';
import { checkMountName, OfferedNames } from './names.ts';
import { readForCaller } from './read-for-caller.ts';
import { ReplaceableUpstream } from './replaceable-upstream.ts';
import type { SearchHost } from './search-tools.ts';
import type { SignIns } from './sign-ins.ts';
import type { FoundMount, ToolDocumentation, ToolFinder } from './tool-finder.ts';
import { Upstream } from './upstream.ts';
import { listUpstream } from './upstream-catalogue.ts';

/** The parts of a server that a mount uses. */
export interface MountHost extends MountServer {
  /** The server, as upstreams see their client. */
  readonly name: string;
  readonly version: string;
  /** The place of a mount among all, by its name: a whole number. */
  rankOf(mount: string): number;
  /** Made by the first mount. */
  claims?: NameClaims;
  readonly search: SearchHost;
  /** The tools with which scripts call the tools of mounts. Their code is loaded with the first mount that needs them. */
  code(): ToolFinder;
  /** Shows the tools of a mount by search alone, or not any more. Explicit options do that without it. */
  showBySearch(mount: string, shown: boolean): Promise<void>;
  /** Longest data of a result, in characters of JSON. */
  readonly maxResultLength: number;
  /** Counts the connections to all upstreams. */
  readonly connections: Quota;
  /** Opens the store. */
  store(): Promise<Store>;
  /** The sign-ins at the upstreams of the server. Their code is loaded with the first upstream that has an address. */
  loadSignIns(): Promise<SignIns>;
  /** The keys that seal the states of sign-ins. */
  readonly keys: StateKeys;
  /** The addresses of open transports for browsers. */
  returnAddresses(): readonly PageAddress[];
}

/** A mount as its server sees it. */
export interface OpenMount extends Mount {
  readonly settings: MountSettings;
  /** The mount, as what finds its tools needs it. */
  readonly found: FoundMount;
  /** True if a catalogue is offered. */
  readonly offering: boolean;
  /** True for a server of this process, which lists at once. */
  readonly isInMemory: boolean;
  /** Resolves when the stored catalogue is offered, or there is none. */
  restored(): Promise<void>;
  /** Begins without its upstream, which is listed when the only client of the server is there. */
  expect(): void;
  /**
   * Begins with the listing.
   *
   * @param only the client of a server that has one: its connection serves the catalogue, too
   */
  begin(only?: CallOwner): void;
  /**
   * Resolves when a catalogue is offered, the first listing has failed, or `firstListMs` have passed since the beginning.
   * Undefined once it has.
   */
  readonly beginning: Promise<void> | undefined;
  /** Clients begin or cease to watch a resource of this server, which may be one of this mount. */
  listened(uri: string, begins: boolean): void;
  /** An owner of calls has ended. */
  released(ownerKey: string): void;
  /** Withdraws what it offers. When it resolves, the name is free. */
  /** Forgets what is read with the grant of a principal. */
  forget(principal: string): Promise<void>;
  withdraw(): Promise<void>;
  /** Closes after the calls in flight. */
  drain(): Promise<void>;
}

/** The options of a mount that its connections have from their opening. */
const OF_CONNECTIONS = [
  'auth',
  'share',
  'eras',
  'maxUpstreamConnections',
  'maxUpstreamInFlight',
  'upstreamWaitMs',
  'upstreamIdleMs',
  'connectMs',
  'probeMs',
  'maxListPages',
  'maxListed',
] as const;
const STEPS = 1_000_000;
const MOUNT_EVENT: LogFields = { event: 'mount' };

/**
 * The address at which callers of a mount may have to sign in.
 *
 * @returns undefined for a target without an address, or with credentials of its own
 */
export function signInAddress(target: MountTarget, { auth }: MountOptions): URL | undefined {
  if (auth === false || isServerInMemory(target) || isDirect(target)) return undefined;
  if (typeof target === 'string' || target instanceof URL) return addressIn(target);
  if (!isObject(target) || !('url' in target) || target.auth !== undefined) return undefined;
  const credentials = Object.keys(target.headers ?? {}).some((name) => name.toLowerCase() === 'authorization');
  return credentials && auth === undefined ? undefined : addressIn(target.url);
}

function addressIn(address: string | URL): URL | undefined {
  return URL.canParse(String(address)) ? new URL(address) : undefined;
}

/**
 * @param signIns needed for a target with a {@link signInAddress}
 * @throws {DefinitionError | TypeError} for an invalid name or option
 */
export function openMount(
  given: string,
  target: MountTarget,
  options: MountOptions,
  host: MountHost,
  signIns: SignIns | undefined,
): OpenMount {
  const name = checkMountName(given);
  const settings = settingsOf(name, target, options);
  const { system, registrations, skills, capabilities, gatherMs, subscriptions } = host;
  host.claims ??= new NameClaims(host.rankOf);
  // The problems of a connection are those of its upstream, which can cause any number of them.
  const logProblem = throttledLog(system.log, system.clock);
  const open = (to: MountTarget, settings: MountSettings, signIns: SignIns | undefined): Upstream => {
    const address = signInAddress(to, settings);
    const { eras, connectMs, probeMs, maxListPages, maxListed, maxMessageBytes } = settings;
    return new Upstream({
      ...settings,
      signIn: address && signIns?.open(name, address, settings.auth || {}),
      key: targetKeyOf(to),
      name,
      ...(isDirect(to)
        ? {
            target: undefined,
            direct: to.open({
              ...{ mount: name, clock: system.clock, log: system.log, settings, maxResultLength: host.maxResultLength },
              loadSignIns: () => host.loadSignIns(),
              readResource: (ctx, uri) => readForCaller(host.search.stages, system.clock, ctx, uri),
            }),
          }
        : { target: to }),
      host: { system, parent: `mount/${name}` },
      quota: host.connections,
      connect: {
        name: host.name,
        version: host.version,
        clock: system.clock,
        log: (level, message, fields) =>
          (level === 'info' ? system.log : logProblem)(level, `mount "${name}": ${message}`, fields ?? MOUNT_EVENT),
        ...(eras && { eras }),
        ...{ connectMs, probeMs, maxListPages, maxListed, maxMessageBytes },
        validate: false,
      },
    });
  };
  const upstream = new ReplaceableUpstream(open(target, settings, signIns), system.clock);
  const actor = spawnMount({
    ...{ system, name, settings, upstream, registrations, skills, capabilities, gatherMs, subscriptions },
    ...{ topics: host.topics, store: host.store },
    showBySearch: (shown: boolean) => host.showBySearch(name, shown),
    claims: host.claims,
    targetKey: targetKeyOf(target),
    random: () => randomInt(STEPS) / STEPS,
  });
  const state = (): string => system.inspection.live(actor.mailbox.address)?.state() ?? 'closed';
  const ask = <T = void>(mail: (reply: Waiter<T>) => MountMail): Promise<T> =>
    new Promise((resolve, reject) => actor.mailbox.send(mail({ resolve, reject })));
  let starting: Promise<void> | undefined;
  /** Starts the mount when the store is open. */
  const start = (expects = false): Promise<void> => {
    starting ??= host.store().then((store) => ask((reply) => ({ type: 'start', store, expects, reply })));
    return starting;
  };
  let beginning: Promise<void> | undefined;
  let begun = false;
  const ready = (): Promise<void> => start().then(() => ask((reply) => ({ type: 'first', reply })));
  const present = { settings, target };
  /** Opens another upstream, and lists it. */
  const reach = async (to: MountTarget, next: MountSettings, signal: AbortSignal | undefined) => {
    const other = open(to, next, signInAddress(to, next) && (await host.loadSignIns()));
    if (upstream.only) other.serves(upstream.only);
    const { direct } = other;
    try {
      const listed = direct
        ? direct
            .list(() => actor.mailbox.send({ type: 'changed' }))
            .then((catalogue) => ({ client: undefined, catalogue }))
        : other.catalogue().then(async (client) => ({
            client,
            catalogue: await listUpstream(client, next.maxListBytes, next.listMs),
          }));
      const listing = listed.then((found) => ({ upstream: other, targetKey: targetKeyOf(to), ...found }));
      const ms = next.connectMs + next.listMs;
      const late = (): Error => new Error(`not listed within ${durationOf(ms)} (connectMs and listMs)`);
      return await within(listing, system.clock, ms, late, signal, () => new Error('another change came first'));
    } catch (error) {
      void other.close();
      throw new Error(`mount "${name}": ${messageOf(error)}`, { cause: error });
    }
  };
  let documents: { readonly of: unknown; readonly byKey: ReadonlyMap<string, () => ToolDocumentation> } | undefined;
  const documented = (key: string): ToolDocumentation | undefined => {
    // No pin covers it, and `hold` shows only what is approved.
    if (present.settings.pins === 'hold') return undefined;
    const known = upstream.current.direct?.documented?.();
    if (documents?.of !== known) {
      const { prefix, rename } = present.settings;
      const names = new OfferedNames(name, { ...(prefix !== undefined && { prefix }), ...(rename && { rename }) });
      documents = {
        of: known,
        byKey: new Map([...(known ?? [])].map(([tool, about]) => [names.offered(tool) ?? tool, about])),
      };
    }
    return documents?.byKey.get(key)?.();
  };
  let withdrawing: Promise<void> | undefined;
  return {
    name,
    get settings() {
      return present.settings;
    },
    get found() {
      return { name, prefix: prefixOf(name, present.settings), documented };
    },
    get state() {
      return state();
    },
    get offering() {
      return state().startsWith('offering');
    },
    ready,
    refresh: () => start().then(() => ask((reply) => ({ type: 'refresh', reply }))),
    isInMemory: isServerInMemory(target),
    restored: () => start(),
    // A store that cannot be opened is reported by the server, and no listing follows.
    expect: () => void start(true).catch(() => {}),
    begin(only) {
      if (beginning) return;
      if (only) upstream.serves(upstreamOwner(only));
      start().then(
        () => actor.mailbox.send({ type: 'client' }),
        () => {},
      );
      beginning = new Promise((resolve) => {
        const done = (): void => {
          begun = true;
          timer.cancel();
          resolve();
        };
        const timer = system.clock.after(present.settings.firstListMs, done);
        ready().then(done, done);
      });
    },
    get beginning() {
      return begun ? undefined : beginning;
    },
    listened: (uri, begins) => actor.mailbox.send({ type: begins ? 'listened' : 'unlistened', uri }),
    released: (ownerKey) => upstream.released(ownerKey),
    approve: (element) => start().then(() => ask((reply) => ({ type: 'approve', element, reply }))),
    async change({ options: other, target: to, signal }) {
      const next = settingsOf(name, to ?? present.target, other);
      await start();
      // A direct upstream reads all options.
      const moves =
        to !== undefined ||
        isDirect(present.target) ||
        OF_CONNECTIONS.some((option) => next[option] !== present.settings[option]);
      const moved = moves ? await reach(to ?? present.target, next, signal) : undefined;
      await ask((reply) => ({ type: 'change', change: { settings: next, moved }, reply }));
      present.settings = next;
      present.target = to ?? present.target;
    },
    forget: (principal) => withdrawing ?? ask((reply) => ({ type: 'forget', principal, reply })),
    withdraw() {
      // The log has the error of an actor that crashed.
      withdrawing ??= ask((reply) => ({ type: 'close', reply }))
        .catch(() => {})
        .then(() => actor.stop('the mount was closed'));
      return withdrawing;
    },
    async close() {
      await Promise.all([this.withdraw(), upstream.close()]);
    },
    async drain() {
      await Promise.all([this.withdraw(), upstream.drain()]);
    },
  };
}

/** The beginning of the offered names. */
function prefixOf(mount: string, { prefix = `${mount}_` }: MountSettings): string {
  return prefix === false ? '' : prefix;
}

/**
 * The options with their defaults. Nothing but this server checks the arguments for a direct upstream.
 *
 * @throws {DefinitionError} for an invalid target or option
 */
function settingsOf(name: string, target: MountTarget, options: MountOptions): MountSettings {
  if (!isServerInMemory(target) && !isDirect(target) && !isChannelTarget(target))
    checkTarget(`mount "${name}": `, target, DefinitionError);
  return readMountOptions(name, isDirect(target) ? { validate: true, ...option.withoutUndefined(options) } : options);
}

/** Identifies a target without its secrets. Undefined for a server in this process, which lists at once. */
function targetKeyOf(target: MountTarget): string | undefined {
  if (isServerInMemory(target)) return undefined;
  if (isDirect(target)) return target.key;
  if (typeof target === 'string' || target instanceof URL) return digest(['url', String(target)]);
  if ('url' in target) return digest(['url', String(target.url)]);
  if ('command' in target) return digest(['command', target.command, ...(target.args ?? []), target.cwd ?? '']);
  return digest('socket' in target ? ['socket', target.socket] : ['channel', target.name]);
}

function digest(parts: readonly unknown[]): string {
  return sha256(parts.map(String).join('\0'));
}
