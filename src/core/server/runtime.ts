/**
 * The composition root: creates the actors in the order in which a message reaches them; opens and closes transports.
 */
import { nanoid } from 'nanoid';
import { InteractiveRequests } from '../../features/asking/interactive-requests.ts';
import { modelFor, RequestContext } from '../../features/asking/request-context.ts';
import { RequestLog } from '../../features/asking/request-log.ts';
import { StateKeys } from '../../features/asking/seal.ts';
import { Cluster, DatabaseClock } from '../../features/cluster/cluster.ts';
import type { ClusterReport } from '../../features/cluster/cluster-report.ts';
import type { ClusterParts } from '../../features/cluster/node-links.ts';
import { PlacedRequests } from '../../features/cluster/placed-requests.ts';
import { RemoteChanges } from '../../features/cluster/remote-changes.ts';
import { isRepeatable, ReplyCache } from '../../features/durability/reply-cache.ts';
import { Audit } from '../../features/guard/audit/server-audit.ts';
import { Admission } from '../../features/guard/authorization/admission.ts';
import { LimitedCalls } from '../../features/guard/limits/limited-calls.ts';
import { chartUri, handleUri } from '../../features/machines/handle-record.ts';
import { Handles } from '../../features/machines/handles.ts';
import type { Middleware, RequestMethodName } from '../../features/middleware/middleware.ts';
import { MiddlewareChain } from '../../features/middleware/middleware-chain.ts';
import { MiddlewareLinks } from '../../features/middleware/middleware-links.ts';
import { TaskRecords } from '../../features/tasks/task-records.ts';
import { TaskTable } from '../../features/tasks/task-table.ts';
import { Tasks } from '../../features/tasks/tasks.ts';
import { idIn } from '../codec/inbound/parse.ts';
import { Outbound } from '../codec/outbound/outbound.ts';
import { spawnSubscriptions } from '../emitters/subscriptions.actor.ts';
import type { ToolImplementation } from '../execution/execution.ts';
import { HandlerErrors } from '../execution/handler-errors.ts';
import { Stages } from '../execution/stages.ts';
import type { ClusteredHost } from '../http/other-nodes.ts';
import { type ActorSystem, createActorSystem } from '../kernel/actor-system.ts';
import { type Clock, systemClock, type Timer } from '../kernel/clock.ts';
import { InspectedHops } from '../kernel/inspection/inspected-hops.ts';
import type { Inspection } from '../kernel/inspection/inspection.ts';
import { type Limits, resolveLimits } from '../kernel/limits.ts';
import { guardLog, stderrLog } from '../kernel/operator-log.ts';
import { ANONYMOUS } from '../kernel/quota.ts';
import { quotasOf } from '../kernel/server-quotas.ts';
import type { Instrument } from '../kernel/telemetry/instruments.ts';
import { LoopDelay } from '../kernel/telemetry/loop-delay.ts';
import type { AuthorizationRule } from '../messages/authorization-rule.ts';
import type { ServerDescription } from '../messages/results.ts';
import type { Implementation } from '../protocol/types.ts';
import { ANSWER_TOOL } from '../protocol/views.ts';
import { speller } from '../registry/resolve.ts';
import { RequestRouter } from '../requests/request-router.ts';
import { running } from '../requests/running.ts';
import { preloadAjv } from '../schema/ajv.ts';
import { OpenConnections, openConnectionTable } from '../sessions/connections.ts';
import { openSessionRepository } from '../sessions/session-repository.ts';
import type { CommitRiders } from '../store/commit-rider.ts';
import { memoryStore } from '../store/memory-store.ts';
import { meteredStore } from '../store/metered-store.ts';
import type { Store } from '../store/store.ts';
import { StorePace } from '../store/store-pace.ts';
import { Bus } from '../transports/bus.ts';
import type { Readiness, Transport, TransportHost, UnreadyReason } from '../transports/transport.ts';
import { RegisteredCapabilities } from './capabilities.ts';
import { launcher } from './launcher.ts';
import { createCatalogues, type Offering, spawnOffering } from './offering.ts';
import type { ServerOptions } from './options.ts';
import { spawnServer } from './server.actor.ts';
import { StoreLifecycle } from './store-lifecycle.ts';
import { Supervision } from './supervision.ts';
import { guardProcess } from './uncaught-errors.ts';

/** Everything behind a server. */
export interface Runtime
  extends Pick<Offering, 'tools' | 'machines' | 'resources' | 'prompts' | 'apps' | 'skills' | 'mounts'> {
  readonly inspection: Inspection;
  /** Everything that is counted. From the first call on, the delay of the event loop is, too. */
  readMetrics(): readonly Instrument[];
  /** Opens a transport. @throws the errors of its `open` */
  open(transport: Transport): Promise<void>;
  /** Shuts down as in `docs/architecture.md`, "Shutdown, step by step". Resolves when every transport is closed. */
  close(reason: string): Promise<void>;
  resourceUpdated(uri: string): void;
  readonly log: NonNullable<ServerOptions['log']>;
  /** Reports if it serves requests, with the reasons if not. */
  readiness(): Readiness;
  /** The cluster as this node sees it; undefined without the option. */
  cluster(): ClusterReport | undefined;
  readonly supervision: Supervision;
  readonly limits: Limits;
  /** Undefined without the option. */
  readonly audit: Audit | undefined;
  /** The server as it introduces itself to clients. */
  introduction(): ServerDescription;
  /** The open store. */
  kept(): Promise<Store>;
  /** Puts a function around the requests of one method, or of all. @throws {TypeError} */
  use(method: RequestMethodName | undefined, middleware: Middleware | undefined): void;
  /** Adds a rule for every element. */
  authorize(rule: AuthorizationRule): void;
  /** The rules for every element: the same list, also when it grows. */
  readonly rules: AuthorizationRule[];
  /** Decides by the rules of another server from now on. */
  shareRules(rules: AuthorizationRule[]): void;
  /** The registered middleware: the same object, also when it grows. */
  readonly middleware: MiddlewareLinks;
  /** Runs the middleware of another server from now on. */
  shareMiddleware(middleware: MiddlewareLinks): void;
}

/** @param clusterOf creates the parts of a server that is one of several nodes */
export function createRuntime(
  options: ServerOptions,
  info: Implementation,
  clusterOf?: (system: ActorSystem, limits: Limits) => ClusterParts,
): Runtime {
  const own = options.clock ?? systemClock;
  const dated = options.cluster && new DatabaseClock(own);
  const clock = dated ?? own;
  const log = guardLog(options.log ?? launcher()?.log ?? stderrLog, 'program', () => running.getStore()?.request);
  const limits = resolveLimits(options.limits);
  const quotas = quotasOf(limits);
  const system = createActorSystem({
    clock,
    log,
    causeOf: () => running.getStore()?.request?.cause ?? 0,
    telemetry: options.telemetry,
  });
  const { inspection, incident, metrics } = system;
  const { nodes } = options.store ?? {};
  const joined =
    options.cluster &&
    nodes &&
    new Cluster(options.cluster, {
      ...{ nodes, log, limits, metrics, clock: own, version: info.version },
      maxExchanges: options.http?.maxExchanges,
    });
  const node = joined?.node;
  if (dated && node) dated.follows = () => node.date();
  const cluster: ClusterParts | undefined = joined ?? clusterOf?.(system, limits);
  if (cluster) system.ids.chooseBy(cluster.cells);
  const bus = new Bus();
  const router = new RequestRouter();
  const stages = new Stages(router.serve);
  const transports: Transport[] = [];
  const outbound = new Outbound(info, options.listTtlMs ?? 0, (id, error) =>
    incident(id === undefined ? 'a log message' : `the response to request ${String(id)}`, error),
  );

  const loopDelay = new LoopDelay(clock, metrics);
  metrics.whenRead(() => loopDelay.begin());

  // Durable state.
  const riders: CommitRiders = { rider: undefined };
  const store = meteredStore(options.store ?? memoryStore(), clock, metrics, riders, node);
  const keeping = new StoreLifecycle({ system, store });
  joined?.holds(keeping);
  // Other nodes give cells to a node that has joined: the requests for them would wait while its modules load.
  if (node) keeping.ownedBy({ join: () => preloadAjv().then(() => node.join()), own: () => node.own() });
  const pace = new StorePace(clock, store);
  const supervision = new Supervision({ system, store: keeping.store, stages });
  keeping.restoring(supervision.restore);

  const kept = openSessionRepository(keeping, { system, limits, quotas });

  // Requests that wait for input.
  const keys = new StateKeys(options.keys);
  keeping.restoring(() => keys.load(keeping.store));
  const audit = options.audit && new Audit(options.audit, { system, bus, store: keeping.store, keys, riders });
  if (audit) keeping.restoring(() => audit.open());
  supervision.audits(audit?.mailbox);
  const requestLog = new RequestLog({ system, limits, store: keeping.store });
  const interactive = new InteractiveRequests({ system, keys, requestLog, limits, quotas, audit: audit?.mailbox });

  const capabilities = new RegisteredCapabilities(options, info);
  const catalogues = createCatalogues();
  metrics.knows({
    tool: (name) => catalogues.tools.get(name) !== undefined,
    prompt: (name) => catalogues.prompts.get(name) !== undefined,
  });
  metrics.gauge('troupe.sessions', '{session}', 'Sessions, including those in the store.', () => quotas.sessions.all);
  metrics.gauge('troupe.tasks', '{task}', 'Tasks that have not expired.', () => quotas.tasks.all);
  metrics.gauge('troupe.handles', '{handle}', 'Handles that have not expired.', () => quotas.handles.all);
  if (node) {
    metrics.gauge('troupe.nodes', '{node}', 'Nodes that share the store.', () => node.report().nodes.length);
    metrics.gauge('troupe.cells', '{cell}', 'Cells that this node serves.', () => node.report().cells);
  }

  // Subscriptions.
  const table = new TaskTable(quotas);
  const remote =
    cluster &&
    new RemoteChanges({
      ...{ clock, gatherMs: limits.gatherMs, link: cluster.links.link },
      peers: () => cluster.links.nodes,
      placeOf: (cell) => cluster.links.placeOf(cell),
    });
  if (remote) cluster?.links.tellOf(remote);
  const subscriptions = spawnSubscriptions({
    listened: {
      listened(uri) {
        remote?.listened(uri);
        offering.mounts.listened(uri);
      },
      unlistened(uri) {
        remote?.unlistened(uri);
        offering.mounts.unlistened(uri);
      },
    },
    system,
    pace,
    maxSubscriptions: limits.maxSubscriptions,
    retained: quotas.retained,
    gatherMs: limits.gatherMs,
    capabilities,
    spell: speller(catalogues.resources),
    tasks: table,
  });
  /** Receives the changes of this node, which other nodes learn, too. */
  const changes = remote?.around(subscriptions.mailbox) ?? subscriptions.mailbox;

  const modelOf = (implementation: ToolImplementation) =>
    options.askThroughModel === true && catalogues.tools.get(ANSWER_TOOL) !== undefined
      ? modelFor(implementation)
      : undefined;

  // Tasks and handles, which outlive their request.
  const tasks = new Tasks({
    system,
    limits,
    table,
    interactive,
    requestLog,
    stages,
    execution: () => offering.calling,
    modelOf,
    records: keeping.store.durable ? new TaskRecords({ system, store: keeping.store, requestLog, limits }) : undefined,
    shared: cluster !== undefined,
    capabilities,
    subscriptions: subscriptions.mailbox,
  });

  const previous = () => launcher()?.previous?.();
  const handles = new Handles({
    ...{ system, store: keeping.store, limits, quotas, errors: options.errors, previous },
    audit: audit?.mailbox,
  });
  supervision.releases(handles);
  keeping.restoring(() => handles.restore());
  keeping.taking(handles);
  handles.onChange(({ machine, handle, principal }) => {
    // A handle without an owner is visible to anyone who knows its id, so its changes are broadcast.
    const owner = principal === ANONYMOUS ? {} : { owner: principal };
    for (const uri of [handleUri(machine, handle), chartUri(machine, handle)])
      changes.send({ type: 'resource updated', uri, ...owner });
  });

  // Registries and executors.
  const limited = new LimitedCalls({
    ...{ clock, log, metrics: system.metrics, store: keeping.store },
    retained: quotas.retained,
    audit: audit?.mailbox,
    notRun: audit?.calls.notRun,
  });
  const offering = spawnOffering({
    system,
    catalogues,
    interactive,
    tasks,
    handles,
    options,
    limits,
    capabilities,
    durable: keeping.store.durable,
    bus,
    subscriptions: changes,
    stages,
    contexts: {
      of(request, implementation) {
        const model = implementation && modelOf(implementation);
        return new RequestContext(request, interactive, implementation?.timeoutMs, model && { model });
      },
    },
    offeredTool(implementation) {
      if (implementation.task !== 'never') tasks.begin();
      if (implementation.limits) stages.fill('limit', limited.gate);
    },
    guarded: () => stages.fill('admit', admission.admit),
    search: () => ({ seeTools: (request) => admission.seeTools(request), stages }),
    keys,
    returnAddresses: () => transports.flatMap(({ returnAddress }) => returnAddress ?? []),
    watches: quotas.watches,
    upstreamConnections: quotas.upstreamConnections,
    kept: () => keeping.open().then(() => keeping.store),
  });
  const { registries } = offering;
  stages.fill('resume', (request, _, again) => !interactive.continues(request, again));
  if (options.askThroughModel) stages.fill('answer', (request) => !interactive.answers(request));
  if (audit) stages.fill('record', audit.calls.gate);
  for (const [servedBy, target] of Object.entries(registries)) router.register(servedBy as 'tools', target);
  tasks.recoverBy(registries.tools);
  keeping.taking(tasks);

  // The server actor.
  const connections = new OpenConnections(clock);
  const lasting = new Set<string>();
  const server = spawnServer({
    system,
    graceMs: limits.graceMs,
    capabilities,
    facts: () => ({
      ...(node && { cluster: node.report() }),
      hibernating: handles.hibernating(),
      ...(kept ? { 'hibernating sessions': kept.hibernating() } : {}),
    }),
    connections,
    stop: (reason) => void stop(reason),
  });

  // Routing, and connections.
  const replies =
    kept &&
    new ReplyCache({
      system,
      store: keeping.store,
      limits,
      sessions: kept,
      lasting,
      definitions: catalogues.tools,
      audit: audit?.calls,
    });
  if (replies) stages.fill('replay', replies.gate);
  router.register('skills', offering.skills);
  router.register('server', server.mailbox);
  router.register('subscriptions', subscriptions.mailbox);
  router.register('tasks', tasks);
  const admission = new Admission({
    system,
    bus,
    catalogues,
    tasks: table,
    answers: interactive,
    subscriptions: subscriptions.mailbox,
    audit: audit?.mailbox,
    maxSubscriptions: limits.maxSubscriptions,
  });
  const middleware = new MiddlewareLinks();
  let chain: MiddlewareChain | undefined;
  /** The chain of the middleware. Until it is created, requests do not pass through it. */
  const wrapped = (): MiddlewareChain => {
    const created = new MiddlewareChain(middleware, {
      interactive,
      admission,
      errors: new HandlerErrors(system, options.errors),
    });
    stages.fill('middleware', created.gate);
    return created;
  };
  const placement = cluster && new PlacedRequests({ tools: catalogues.tools, interactive, cells: cluster.cells });
  const directory = openConnectionTable({
    system,
    placement,
    bus,
    limits,
    quotas,
    kept,
    replies,
    outbound,
    router: stages,
    subscriptions: subscriptions.mailbox,
    capabilities,
    connections,
    lasting,
    server: server.mailbox,
  });
  keeping.taking({
    take: () => Promise.resolve(),
    async drop(cells, flush) {
      if (flush) await connections.giveUpCells(cells, 'another node takes over this session');
      const settling: Promise<void>[] = [];
      bus.emit('cells.leaving', { cells, flush, settling });
      await Promise.all(settling);
    },
  });
  keeping.taking(interactive);
  bus.on('fault', ({ where, error }) => void incident(where, error));

  /** Transports that did not open. They are closed with the others. */
  const failed = new Set<Transport>();
  const ownsProcess = (): boolean =>
    transports.some((transport) => transport.ownsProcess === true && !failed.has(transport));
  let unguard: (() => void) | undefined;
  let hold: Timer | undefined;
  let preload: Timer | undefined;
  /** True from the beginning of a shutdown. */
  let unready = false;
  /** Set once the node gives up its cells. */
  let leaving: Promise<void> | undefined;
  let delay: Timer | undefined;
  const drainDelayMs = (): number => Math.max(0, ...transports.map((transport) => transport.drainDelayMs ?? 0));
  const readiness = (): Readiness => {
    const { impairment } = keeping;
    const reasons: UnreadyReason[] = [];
    if (unready) reasons.push('draining');
    if (impairment !== undefined) reasons.push(impairment);
    else if (node && !node.connected) reasons.push('store not open');
    else if (node && !node.ready) reasons.push('no cells');
    if (offering.mounts.missing) reasons.push('no catalogue');
    return { ready: reasons.length === 0, reasons };
  };
  let started = false;
  let resolveStopped = (): void => {};
  const stopped = new Promise<void>((resolve) => {
    resolveStopped = resolve;
  });
  /** Closes the server once balancers know that it is not ready. Until then it serves every request. */
  const close = (reason: string): Promise<void> => {
    if (unready) return stopped;
    unready = true;
    const delayMs = drainDelayMs();
    if (delayMs === 0) return drain(reason);
    hold = clock.hold();
    delay = clock.after(delayMs, () => void drain(reason));
    return stopped;
  };
  const drain = (reason: string): Promise<void> => {
    unready = true;
    delay?.cancel();
    // A handler may wait for something that does not keep the event loop alive: the process must not exit before the
    // response.
    hold ??= clock.hold();
    // The other nodes take over the cells first: until then, this node serves and forwards every request.
    leaving ??= node?.leave().then(() => drainNow(reason));
    if (!leaving) drainNow(reason);
    return stopped;
  };
  const drainNow = (reason: string): void => {
    connections.close();
    for (const transport of transports) stopAccepting(transport);
    offering.stopWatches();
    server.mailbox.send({ type: 'drain', reason, connections: connections.ids });
  };
  const stopAccepting = (transport: Transport): void => {
    try {
      transport.stopAccepting?.();
    } catch (error) {
      incident(`${transport.name}, which was to accept no more`, error);
    }
  };
  /** Aborts what did not finish in time, then closes every transport. */
  const stop = async (reason: string): Promise<void> => {
    interactive.leave();
    await new Promise<void>((resolve) =>
      subscriptions.mailbox.send({ type: 'flush all', flushed: { address: 'server', send: () => resolve() } }),
    );
    await connections.giveUp(reason);
    await interactive.finished();
    await tasks.stop(reason);
    await interactive.stop(reason);
    const results = await Promise.allSettled(transports.map((transport) => closed(transport, clock)));
    for (const result of results) if (result.status === 'rejected') incident('closing a transport', result.reason);
    directory.closeAll(reason);
    await offering.mounts.close();
    await kept?.close();
    await handles.stop();
    remote?.end();
    await limited.close();
    await audit?.close(reason);
    await node?.end();
    await keeping.close();
    unguard?.();
    supervision.end();
    loopDelay.end();
    offering.end();
    offering.skills.close();
    hold?.cancel();
    preload?.cancel();
    server.mailbox.send({ type: 'stopped' });
    resolveStopped();
  };

  const repeatableTools = (): readonly string[] =>
    offering.tools.catalogue.all().flatMap((tool) => (tool.enabled && isRepeatable(tool) ? tool.key : []));

  system.telemetry?.observe?.(metrics.all(), () => void metrics.read());
  return {
    tools: offering.tools,
    machines: offering.machines,
    resources: offering.resources,
    prompts: offering.prompts,
    apps: offering.apps,
    skills: offering.skills,
    mounts: offering.mounts,
    inspection,
    readMetrics: () => metrics.read(),
    log,
    readiness,
    cluster: () => node?.report(),
    supervision,
    limits,
    introduction: () => capabilities.describe(),
    audit,
    kept: () => keeping.open().then(() => keeping.store),
    close(reason) {
      launcher()?.closes?.(reason, 'program');
      return close(reason);
    },
    use(method, added) {
      middleware.add(method, added);
      chain ??= wrapped();
    },
    authorize(rule) {
      admission.authorize(rule);
      stages.fill('admit', admission.admit);
    },
    rules: admission.rules,
    shareRules(rules) {
      admission.share(rules);
      stages.fill('admit', admission.admit);
    },
    middleware,
    shareMiddleware(shared) {
      chain ??= wrapped();
      chain.share(shared);
    },
    resourceUpdated: (uri) => changes.send({ type: 'resource updated', uri }),
    async open(transport) {
      if (unready)
        throw new Error(`this server is closed and cannot open a transport (${transport.name}): create another server`);
      offering.checkApps();
      unguard ??= guardProcess({
        ownsProcess,
        caught(label, error) {
          incident(`${label ?? 'an unknown element'}, which threw after it had answered`, error);
          if (options.afterLateError === 'restart' && ownsProcess()) supervision.restart(drain);
        },
      });
      transports.push(transport);
      if (transport.authenticates) quotas.authenticates();
      supervision.begin(options.watchdog);
      try {
        await keeping.open();
        await offering.skills.ready();
        await offering.mounts.ready();
        const host: TransportHost & Partial<ClusteredHost> = {
          ...(cluster && { nodes: cluster.links, hops: new InspectedHops(inspection) }),
          bus,
          clock,
          pace,
          maxMessageBytes: limits.maxMessageBytes,
          repeatableTools,
          retained: quotas.retained,
          metrics,
          readiness,
          connectionId: () => nanoid(8),
          streamId: () => system.ids.local(),
          log: (level, message, fields) => log(level, message, fields ?? { event: 'transport' }),
          document: (value) => outbound.document(value),
          refusal: (code, message, id) => outbound.refusal({ code, message }, id),
          idIn,
          http: options.http,
          get signIns() {
            return offering.mounts.signIns;
          },
          dormantSessions: kept && directory,
          requestClose(reason) {
            launcher()?.closes?.(reason, 'transport');
            void close(reason);
          },
        };
        await transport.open(host);
        // Another transport of the server may authenticate already.
        if (transport.authenticates) quotas.authenticates();
      } catch (error) {
        failed.add(transport);
        throw error;
      }
      if (!started) audit?.mailbox.send({ type: 'started' });
      started = true;
      server.mailbox.send({ type: 'started' });
      preload ??= systemClock.after(PRELOAD_MS, preloadAjv);
    },
  };
}

/** Milliseconds after the first transport has opened until ajv loads: a client has then listed the tools, and not called one. */
const PRELOAD_MS = 500;

/** Milliseconds in which a transport must close. A transport that hangs must not keep the server open. */
const CLOSE_MS = 30_000;

async function closed(transport: Transport, clock: Clock): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const why = `the transport "${transport.name}" did not close within ${CLOSE_MS} ms; the server closes without it`;
    timer = clock.after(CLOSE_MS, () => reject(new Error(why)));
  });
  try {
    await Promise.race([transport.close(), late]);
  } finally {
    timer?.cancel();
  }
}
