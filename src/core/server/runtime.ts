/** Puts one server together: the parts of its core, and its features in the order of their list. */
import { Outbound } from '../codec/outbound/outbound.ts';
import { spawnSubscriptions } from '../emitters/subscriptions.actor.ts';
import { Stages } from '../execution/stages.ts';
import { createActorSystem, wireErrorOf } from '../kernel/actor-system.ts';
import { systemClock } from '../kernel/clock.ts';
import { resolveLimits } from '../kernel/limits.ts';
import { guardLog, stderrLog } from '../kernel/operator-log.ts';
import { quotasOf } from '../kernel/server-quotas.ts';
import type { Instrument } from '../kernel/telemetry/instruments.ts';
import { LoopDelay } from '../kernel/telemetry/loop-delay.ts';
import type { ServerDescription } from '../messages/results.ts';
import { Methods } from '../protocol/methods.ts';
import type { Implementation } from '../protocol/types.ts';
import { speller } from '../registry/resolve.ts';
import { respond } from '../requests/active-request.ts';
import { RequestRouter } from '../requests/request-router.ts';
import { running } from '../requests/running.ts';
import { OpenConnections, openConnectionTable } from '../sessions/connections.ts';
import { openSessionRepository } from '../sessions/session-repository.ts';
import type { CommitRiders } from '../store/commit-rider.ts';
import { memoryStore } from '../store/memory-store.ts';
import { meteredStore } from '../store/metered-store.ts';
import { StateKeys } from '../store/state-keys.ts';
import type { ActorRow, Store } from '../store/store.ts';
import { StorePace } from '../store/store-pace.ts';
import { Bus } from '../transports/bus.ts';
import type { NamedClient, Readiness, Transport } from '../transports/transport.ts';
import { RegisteredCapabilities } from './capabilities.ts';
import { type Catalogues, createCatalogues, openElements } from './elements.ts';
import type { Core, Feature, FeatureParts } from './feature.ts';
import { addMethods } from './feature-method.ts';
import { launcher } from './launcher.ts';
import type { ServerOptions } from './options.ts';
import { spawnServer } from './server.actor.ts';
import { StoreLifecycle } from './store-lifecycle.ts';
import { OpenTransports } from './transports.ts';

/** Everything behind a server. */
export interface Runtime {
  readonly core: Core;
  /** Everything that is counted. From the first call on, the delay of the event loop is, too. */
  readMetrics(): readonly Instrument[];
  /** Opens a transport. @throws the errors of its `open` */
  open(transport: Transport): Promise<void>;
  /** Shuts down as in `docs/architecture.md`, "Shutdown, step by step". Resolves when every transport is closed. */
  close(reason: string): Promise<void>;
  /** Reports if it serves requests, with the reasons if not. */
  readiness(): Readiness;
  /** The client on stdio or on a socket; undefined if it serves neither. */
  localClient(): NamedClient | undefined;
  /** The server as it introduces itself to clients. */
  introduction(): ServerDescription;
  /** The open store. */
  openStore(): Promise<Store>;
}

/** @throws {Error} for a feature that needs one that does not stand above it */
export function createRuntime(options: ServerOptions, info: Implementation, features: readonly Feature[]): Runtime {
  const own = options.clock ?? systemClock;
  const clock = features.reduce((before, feature) => feature.clock?.(options, before) ?? before, own);
  const log = guardLog(options.log ?? launcher()?.log ?? stderrLog, 'program', () => running.getStore()?.request);
  const causeOf = () => running.getStore()?.request?.cause ?? 0;
  const system = createActorSystem({ clock, log, causeOf, telemetry: options.telemetry });
  const { metrics } = system;
  const limits = resolveLimits(
    options.limits,
    features.map((feature) => feature.limits ?? {}),
  );
  const quotas = quotasOf(limits);
  const bus = new Bus();
  const router = new RequestRouter();
  const stages = new Stages(router.serve, ({ request }, error) => {
    respond(request, { ok: false, error: wireErrorOf(system, `a gate around ${request.operation.method}`, error) });
  });
  const riders: CommitRiders = { rider: undefined };
  const storage = new StoreLifecycle({
    system,
    store: meteredStore(options.store ?? memoryStore(), clock, metrics, riders),
  });
  const keys = new StateKeys(options.keys);
  storage.restoring(() => keys.load(storage.store));
  const capabilities = new RegisteredCapabilities(options, info);

  const services = new Map<string, FeatureParts>();
  const opened: FeatureParts[] = [];
  const openFeature = (feature: Feature): void => {
    const { name } = feature;
    if (services.has(name)) throw new Error(`there are two features "${name}": give one of them another name`);
    const parts = feature.open(core);
    services.set(name, parts);
    opened.push(parts);
    router.register({ ...parts.serves, ...addMethods(core, parts.methods ?? {}) });
    if (parts.restore) storage.restoring(() => parts.restore?.() ?? Promise.resolve());
    if (parts.holds) storage.taking(parts.holds);
  };
  const core: Core = {
    ...{ options, info, system, log, limits, quotas, bus, stages, capabilities, storage, riders, keys },
    ...{ methods: new Methods(), transports: [], lasting: new Set() },
    get store() {
      return storage.store;
    },
    get sessions() {
      return sessions;
    },
    get elements() {
      return elements;
    },
    get subscriptions() {
      return subscriptions;
    },
    get changes() {
      return changes;
    },
    service<S>({ name }: Feature<S>): S {
      const parts = services.get(name);
      if (!parts) throw new Error(`the feature "${name}" is not open: list it above those that use it`);
      return parts.service as S;
    },
  };
  // An early feature may decide which part of the store is this process's.
  for (const feature of features) if (feature.opensFirst) openFeature(feature);
  const pace = new StorePace(clock, storage.store);
  const expired = ({ id, principal }: ActorRow): void => bus.emit('session.expired', { actor: id, principal });
  const sessions = openSessionRepository(storage, { system, limits, quotas, expired });
  const catalogues = createCatalogues();
  const subscriptions = openSubscriptions(core, opened, pace, catalogues);
  const changes = opened.reduce((mailbox, parts) => parts.changes?.(mailbox) ?? mailbox, subscriptions);
  const elements = openElements({
    ...{ system, options, limits, capabilities, catalogues, stages, bus },
    changed: (change) => changes.send(change),
  });
  for (const feature of [...features.filter(({ opensFirst }) => !opensFirst), measured]) openFeature(feature);
  const transports = openTransports(core, opened, pace, router);
  system.telemetry?.observe?.(metrics.all(), () => void metrics.read());
  return {
    core,
    readMetrics: () => metrics.read(),
    readiness: transports.readiness,
    localClient: () => transports.localClient,
    introduction: () => capabilities.describe(),
    openStore: () => storage.open().then(() => storage.store),
    close(reason) {
      launcher()?.closes?.(reason, 'program');
      return transports.close(reason);
    },
    open: (transport) => transports.open(transport),
  };
}

function openSubscriptions(core: Core, opened: readonly FeatureParts[], pace: StorePace, catalogues: Catalogues) {
  const { system, capabilities, limits, quotas } = core;
  const tell = (what: 'listened' | 'unlistened') => (uri: string) => {
    for (const { listens } of opened) listens?.[what](uri);
  };
  return spawnSubscriptions({
    ...{ system, capabilities, pace, retained: quotas.retained, spell: speller(catalogues.resources) },
    ...{ maxSubscriptions: limits.maxSubscriptions, gatherMs: limits.gatherMs },
    listened: { listened: tell('listened'), unlistened: tell('unlistened') },
    tasks: { look: (client, id) => opened.find(({ watched }) => watched)?.watched?.look(client, id) },
  }).mailbox;
}

/** The connections of a server, with what its features add to them, and the transports that open them. */
function openTransports(core: Core, opened: readonly FeatureParts[], pace: StorePace, router: RequestRouter) {
  const { info, options, system, bus, limits, quotas, capabilities, lasting, sessions, storage, subscriptions } = core;
  const connections = new OpenConnections(system.clock);
  const server = spawnServer({
    ...{ system, capabilities, connections, graceMs: limits.graceMs },
    facts: () => ({
      ...Object.assign({}, ...opened.map((parts) => parts.facts?.())),
      ...(sessions ? { 'hibernating sessions': sessions.hibernating() } : {}),
    }),
    stop: (reason) => void transports.stop(reason),
  }).mailbox;
  router.register({ ...core.elements.registries, server, subscriptions });
  const outbound = new Outbound(info, options.listTtlMs ?? 0, (id, error) =>
    system.incident(id === undefined ? 'a log message' : `the response to request ${String(id)}`, error),
  );
  const table = openConnectionTable({
    ...{ system, bus, limits, quotas, outbound, capabilities, connections, lasting, server, subscriptions },
    placement: opened.find(({ placement }) => placement)?.placement?.(),
    kept: sessions,
    replies: opened.find(({ replies }) => replies)?.replies,
    ...{ stages: core.stages, methods: core.methods },
  });
  storage.taking(heldConnections(connections, bus));
  for (const { holdsRequests } of opened) if (holdsRequests) storage.taking(holdsRequests);
  bus.on('fault', ({ where, error }) => void system.incident(where, error));
  const transports = new OpenTransports({ core, features: opened, outbound, pace, connections, table, server });
  return transports;
}

/** Counts what every server has. From the first reading on, the delay of the event loop is counted, too. */
const measured: Feature = {
  name: 'measured',
  open({ system, quotas, elements: { catalogues } }) {
    const { clock, metrics } = system;
    const loopDelay = new LoopDelay(clock, metrics);
    metrics.whenRead(() => loopDelay.begin());
    metrics.knows({
      tool: (name) => catalogues.tools.get(name) !== undefined,
      prompt: (name) => catalogues.prompts.get(name) !== undefined,
    });
    metrics.gauge('troupe.sessions', '{session}', 'Sessions, including those in the store.', () => quotas.sessions.all);
    return { service: undefined, end: () => loopDelay.end() };
  },
};

/** Lets go of the connections whose sessions other nodes take over. */
function heldConnections(connections: OpenConnections, bus: Bus) {
  return {
    take: () => Promise.resolve(),
    async drop(cells: ReadonlySet<number>, flush: boolean) {
      if (flush) await connections.giveUpCells(cells, 'another node takes over this session');
      const settling: Promise<void>[] = [];
      bus.emit('cells.leaving', { cells, flush, settling });
      await Promise.all(settling);
    },
  };
}
