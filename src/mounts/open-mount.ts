/** Mounts a server: makes its upstream and its actor, and the object that `server.mount` returns. */
import { hash, randomInt } from 'node:crypto';
import type { ActorSystem } from '../actor/actor-system.ts';
import { isServerInMemory } from '../client/in-memory.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { SubscriptionsMail } from '../messages/subscription-messages.ts';
import type { Quota } from '../quota.ts';
import { DefinitionError } from '../registry/definition-checks.ts';
import type { Store } from '../store/store.ts';
import { type MountMail, spawnMount } from './mount-actor.ts';
import {
  type Mount,
  type MountOptions,
  type MountSettings,
  type MountTarget,
  readMountOptions,
} from './mount-options.ts';
import type { AnnouncedCapabilities, MountRegistrations } from './mounted-elements.ts';
import { NameClaims } from './name-claims.ts';
import { checkMountName } from './names.ts';
import type { SearchHost } from './search-tools.ts';
import { openUpstream } from './upstream.ts';

/** The parts of a server that a mount uses. */
export interface MountHost {
  readonly system: ActorSystem;
  /** The server, as upstreams see their client. */
  readonly name: string;
  readonly version: string;
  readonly registrations: MountRegistrations;
  readonly capabilities: AnnouncedCapabilities;
  /** Made by the first mount. */
  claims?: NameClaims;
  readonly gatherMs: number;
  readonly search: SearchHost;
  /** Notifies the clients that watch a resource. */
  readonly subscriptions: Mailbox<SubscriptionsMail>;
  /** Counts the connections to all upstreams. */
  readonly connections: Quota;
  /** Opens the store. */
  store(): Promise<Store>;
}

/** A mount as its server sees it. */
export interface OpenMount extends Mount {
  readonly settings: MountSettings;
  /** True if a catalogue is offered. */
  readonly offering: boolean;
  /** Resolves when a catalogue is offered, the first listing has failed, or `firstListMs` have passed. Begins with the listing. */
  begun(): Promise<void>;
  /** Clients begin or cease to watch a resource of this server, which may be one of this mount. */
  listened(uri: string, begins: boolean): void;
  /** An owner of calls has ended. */
  released(ownerKey: string): void;
}

const STEPS = 1_000_000;

/** @throws {DefinitionError | TypeError} for an invalid name or option */
export function openMount(given: string, target: MountTarget, options: MountOptions, host: MountHost): OpenMount {
  const name = checkMountName(given);
  const settings = readMountOptions(name, options);
  const { system, registrations, capabilities, gatherMs, subscriptions } = host;
  host.claims ??= new NameClaims();
  const upstream = openUpstream({
    name,
    target,
    share: settings.share,
    quota: host.connections,
    maxConnections: settings.maxUpstreamConnections,
    maxInFlight: settings.maxUpstreamInFlight,
    waitMs: settings.upstreamWaitMs,
    idleMs: settings.upstreamIdleMs,
    connect: {
      name: host.name,
      version: host.version,
      clock: system.clock,
      log: (level, message, fields) => system.log(level, `mount "${name}": ${message}`, fields ?? { event: 'mount' }),
      connectMs: settings.connectMs,
      ...(settings.eras === undefined ? {} : { eras: settings.eras }),
      maxListPages: settings.maxListPages,
      maxListed: settings.maxListed,
      validate: false,
    },
  });
  const actor = spawnMount({
    ...{ system, name, settings, upstream, registrations, capabilities, gatherMs, subscriptions },
    claims: host.claims,
    targetKey: targetKeyOf(target),
    random: () => randomInt(STEPS) / STEPS,
  });
  const state = (): string => system.inspection.live(actor.mailbox.address)?.state() ?? 'closed';
  let starting: Promise<void> | undefined;
  /** Starts the mount when the store is open. */
  const start = (): Promise<void> => {
    starting ??= host.store().then((store) => actor.mailbox.send({ type: 'start', store }));
    return starting;
  };
  const ask = (type: 'first' | 'refresh'): Promise<void> =>
    start().then(
      () =>
        new Promise((resolve, reject) => {
          actor.mailbox.send({ type, listed: { resolve, reject } } satisfies MountMail);
        }),
    );
  let closing: Promise<void> | undefined;
  return {
    name,
    settings,
    get state() {
      return state();
    },
    get offering() {
      return state().startsWith('offering');
    },
    ready: () => ask('first'),
    refresh: () => ask('refresh'),
    begun: () =>
      new Promise((resolve) => {
        const timer = system.clock.after(settings.firstListMs, resolve);
        const done = (): void => {
          timer.cancel();
          resolve();
        };
        ask('first').then(done, done);
      }),
    listened: (uri, begins) => actor.mailbox.send({ type: begins ? 'listened' : 'unlistened', uri }),
    released: (ownerKey) => upstream.released(ownerKey),
    close() {
      closing ??= new Promise<void>((resolve) => {
        actor.mailbox.send({ type: 'close', closed: resolve });
      }).then(() => actor.stop('the mount was closed'));
      return closing;
    },
  };
}

/** The error for a second mount of one name. */
export function nameTaken(name: string): DefinitionError {
  return new DefinitionError(`mount "${name}": the name is taken by another mount: choose another name`);
}

/** Identifies a target without its secrets. Undefined for a server in this process, which lists at once. */
function targetKeyOf(target: MountTarget): string | undefined {
  if (isServerInMemory(target)) return undefined;
  if (typeof target === 'string' || target instanceof URL) return digest(['url', String(target)]);
  if ('url' in target) return digest(['url', String(target.url)]);
  if ('command' in target) return digest(['command', target.command, ...(target.args ?? []), target.cwd ?? '']);
  return digest('socket' in target ? ['socket', target.socket] : ['channel', target.name]);
}

function digest(parts: readonly unknown[]): string {
  return hash('sha256', parts.map(String).join('\0'), 'base64url');
}
