/** The composition root: it makes the actors in the order in which a message meets them, and opens and closes transports. */
import { nanoid } from 'nanoid';
import { Resting } from '../actors/resting.ts';
import { spawnServer } from '../actors/server.ts';
import { spawnSubscriptions } from '../actors/subscriptions.ts';
import { KeyRing } from '../asking/seal.ts';
import { Bus } from '../bus.ts';
import { type Clock, systemClock, type Timer } from '../clock.ts';
import { running } from '../execution/running.ts';
import { Handles } from '../handles/handles.ts';
import { idIn } from '../inbound/parse.ts';
import { Inspection } from '../inspection/inspection.ts';
import { launcher } from '../launcher.ts';
import type { InFlight } from '../messages/in-flight.ts';
import type { RequestMail } from '../messages/requests.ts';
import { guardLog, resolveLimits, type ServerOptions, stderrLog } from '../options.ts';
import { Outbound } from '../outbound/outbound.ts';
import { stackOf } from '../protocol/json.ts';
import type { Implementation } from '../protocol/types.ts';
import { ANONYMOUS } from '../quota.ts';
import { memoryStore } from '../store/memory.ts';
import type { Store } from '../store/store.ts';
import { chartUri, handleUri } from '../toolset/resources.ts';
import type { Transport } from '../transports/transport.ts';
import { Asks } from './asks.ts';
import { openDirectory } from './directory.ts';
import { introduce } from './introduction.ts';
import { Keeping } from './keeping.ts';
import { keepSessions } from './kept-sessions.ts';
import { Ledger } from './ledger.ts';
import { mostAwake } from './memory.ts';
import { type Offering, spawnOffering } from './offering.ts';
import { guardProcess } from './process-guard.ts';
import { quotasOf } from './quotas.ts';
import { isRepeatable, Replies } from './replies.ts';
import { keysIn } from './secret.ts';
import { Supervision } from './supervision.ts';
import { TaskRecords } from './task-records.ts';
import { Tasks } from './tasks.ts';

/** Everything behind a server, put together. */
export interface Core extends Pick<Offering, 'tools' | 'machines' | 'resources' | 'prompts'> {
  readonly inspection: Inspection;
  /** Opens a transport. @throws what its `open` throws */
  open(transport: Transport): Promise<void>;
  /** Closes: see `docs/architecture.md`, "Shutdown, step by step". Resolves when every transport is closed. */
  close(reason: string): Promise<void>;
  resourceUpdated(uri: string): void;
  readonly log: NonNullable<ServerOptions['log']>;
  readonly supervision: Supervision;
  /** The store, open. */
  kept(): Promise<Store>;
}

export function createCore(options: ServerOptions, info: Implementation): Core {
  const clock = options.clock ?? systemClock;
  const log = guardLog(options.log ?? stderrLog);
  const limits = resolveLimits(options.limits);
  const quotas = quotasOf(limits);
  const inspection = new Inspection(
    clock,
    (error) => void incident('a listener of inspect, which hears no more', error),
    () => running.getStore()?.request?.cause ?? 0,
  );
  const bus = new Bus();
  const transports: Transport[] = [];
  const incident = (where: string, error: unknown): string => {
    const id = nanoid(10);
    log('error', `incident ${id} in ${where}: ${stackOf(error)}`);
    return id;
  };
  const resting = new Resting(clock, mostAwake());
  const outbound = new Outbound(info, options.listTtlMs ?? 0, (id, error) =>
    incident(id === undefined ? 'a log message' : `the answer to request ${String(id)}`, error),
  );

  // What survives.
  const keeping = new Keeping({ clock, store: options.store ?? memoryStore(), log });
  const supervision = new Supervision({ clock, store: keeping.store, log });
  keeping.restoring(supervision.restore);
  const actors = { clock, inspection, quarantine: supervision.quarantine };

  const kept = keepSessions(keeping, { clock, limits, quotas, log, incident });

  // Who waits for an answer of its client.
  let keys = options.keys && new KeyRing(options.keys);
  keeping.restoring(async () => {
    if (!options.keys && keeping.store.durable) keys = await keysIn(keeping.store, clock);
  });
  const ledger = new Ledger({ clock, limits, store: keeping.store, log });
  const asks = new Asks({ ...actors, keys: () => (keys ??= KeyRing.random()), ledger, limits, quotas, log, incident });

  // What outlives its request.
  const introducer = introduce(options, info);
  const tasks = new Tasks({
    ...actors,
    resting,
    limits,
    quotas,
    log,
    asks,
    ledger,
    records: keeping.store.durable ? new TaskRecords({ clock, store: keeping.store, ledger, limits, log }) : undefined,
    route: (mail) => offering.registries.tools.send(mail),
    offered: () => introducer.offers('tasks'),
    changed: (task) => subscriptions.mailbox.send({ type: 'task changed', task }),
    sessionTold: (session, task) =>
      subscriptions.mailbox.send({ type: 'session changed', session, change: { type: 'task changed', task } }),
    incident,
  });

  const previous = () => launcher()?.previous?.();
  const handles = new Handles({ clock, inspection, store: keeping.store, limits, quotas, log, incident, previous });
  supervision.releases(handles);
  keeping.restoring(() => handles.restore());
  handles.onChange(({ view: { machine, handle }, principal }) => {
    // Of nobody's handle hears whoever knows it.
    const owner = principal === ANONYMOUS ? {} : { owner: principal };
    for (const uri of [handleUri(machine, handle), chartUri(machine, handle)])
      subscriptions.mailbox.send({ type: 'resource updated', uri, ...owner });
  });

  keeping.restoring(() => tasks.restore());

  // What is offered, and what runs it.
  const offering = spawnOffering({
    ...actors,
    asks,
    tasks,
    handles,
    options,
    limits,
    introducer,
    log,
    admit: supervision.admit,
    incident,
    changed(what) {
      if (what === 'tools') bus.emit('tools.changed', {});
      subscriptions.mailbox.send({ type: 'list changed', what });
    },
  });

  // The server itself.
  const server = spawnServer({
    ...actors,
    graceMs: limits.graceMs,
    introduction: introducer.tell,
    facts: () => ({ hibernating: handles.hibernating() }),
    drainConnections() {
      for (const connection of directory.connections.values()) connection.drain();
    },
    stop: (reason) => void stop(reason),
    incident,
  });

  // Who hears of changes.
  const subscriptions = spawnSubscriptions({
    ...actors,
    maxSubscriptions: limits.maxSubscriptions,
    retained: quotas.retained,
    gatherMs: limits.gatherMs,
    offers: introducer.offers,
    knows: offering.knows,
    taskOf: (client, id) => tasks.look(client, id),
    incident,
  });

  // Where requests go, and the connections that they come from.
  const { registries } = offering;
  const replies =
    kept &&
    new Replies({
      clock,
      store: keeping.store,
      limits,
      kept: (session) => kept.awake(session),
      lasts: (session) => directory.lasts(session),
      definitionOf: (tool) => offering.tools.catalogue.get(tool)?.definition,
      route: (mail) => registries.tools.send(mail),
      incident,
    });
  const serve: Readonly<Record<InFlight['servedBy'], (mail: RequestMail) => void>> = {
    tools: replies?.route ?? ((mail) => registries.tools.send(mail)),
    resources: (mail) => registries.resources.send(mail),
    prompts: (mail) => registries.prompts.send(mail),
    completions(mail) {
      const { operation } = mail.request;
      const prompt = operation.method === 'completion/complete' && operation.ref.type === 'ref/prompt';
      (prompt ? registries.prompts : registries.resources).send(mail);
    },
    session: ({ request }) => request.client.session?.mailbox.send({ type: 'serve', request }),
    server: (mail) => server.mailbox.send(mail),
    subscriptions: (mail) => subscriptions.mailbox.send(mail),
    tasks: tasks.serve,
  };
  const directory = openDirectory({
    ...actors,
    resting,
    bus,
    limits,
    quotas,
    kept,
    replies,
    outbound,
    route: (mail) => serve[mail.request.servedBy](mail),
    subscriptions: subscriptions.mailbox,
    introduction: introducer.tell,
    offers: introducer.offers,
    incident,
    log,
    closing: () => closing,
    idle: (connection) => server.mailbox.send({ type: 'connection idle', connection }),
    gone: (connection) => server.mailbox.send({ type: 'connection idle', connection }),
  });
  bus.on('fault', ({ where, error }) => void incident(where, error));

  /** Those that did not open. They are closed with the others. */
  const failed = new Set<Transport>();
  const ownsProcess = (): boolean =>
    transports.some((transport) => transport.ownsProcess === true && !failed.has(transport));
  let unguard: (() => void) | undefined;
  let closing = false;
  let hold: Timer | undefined;
  let resolveStopped = (): void => {};
  const stopped = new Promise<void>((resolve) => {
    resolveStopped = resolve;
  });
  const close = (reason: string): Promise<void> => {
    closing = true;
    // A handler that waits for nothing the event loop knows of would let the process go before it was answered.
    hold ??= clock.hold();
    for (const transport of transports) stopAccepting(transport);
    server.mailbox.send({ type: 'drain', reason, connections: [...directory.connections.keys()] });
    return stopped;
  };
  const stopAccepting = (transport: Transport): void => {
    try {
      transport.stopAccepting?.();
    } catch (error) {
      incident(`${transport.name}, which was to accept no more`, error);
    }
  };
  /** Ends what could not finish in time, closes every transport, and is done. */
  const stop = async (reason: string): Promise<void> => {
    asks.leave();
    subscriptions.mailbox.send({ type: 'tell all' });
    for (const connection of directory.connections.values()) connection.giveUp(reason);
    tasks.stop(reason);
    asks.stop(reason);
    const results = await Promise.allSettled(transports.map((transport) => closed(transport, clock)));
    for (const result of results) if (result.status === 'rejected') incident('closing a transport', result.reason);
    directory.closeAll(reason);
    await kept?.close();
    await handles.stop();
    await keeping.close();
    resting.end();
    unguard?.();
    supervision.end();
    offering.end();
    hold?.cancel();
    server.mailbox.send({ type: 'stopped' });
    resolveStopped();
  };

  const repeatableTools = (): readonly string[] =>
    offering.tools.catalogue.all().flatMap((tool) => (tool.enabled && isRepeatable(tool.definition) ? tool.key : []));

  return {
    tools: offering.tools,
    machines: offering.machines,
    resources: offering.resources,
    prompts: offering.prompts,
    inspection,
    log,
    supervision,
    kept: () => keeping.open().then(() => keeping.store),
    close(reason) {
      launcher()?.closes?.(reason, 'program');
      return close(reason);
    },
    resourceUpdated: (uri) => subscriptions.mailbox.send({ type: 'resource updated', uri }),
    async open(transport) {
      if (closing)
        throw new Error(`this server is closed and opens no transport (${transport.name}): create another server`);
      unguard ??= guardProcess({
        ownsProcess,
        caught(label, error) {
          incident(`${label ?? 'an unknown element'}, thrown after it had answered`, error);
          if (options.afterLateError === 'restart' && ownsProcess()) supervision.restart(close);
        },
      });
      transports.push(transport);
      if (transport.authenticates) quotas.authenticates();
      supervision.begin(options.watchdog);
      try {
        await keeping.open();
        await transport.open({
          bus,
          clock,
          maxMessageBytes: limits.maxMessageBytes,
          repeatableTools,
          retained: quotas.retained,
          connectionId: () => nanoid(8),
          log,
          refusal: (code, message, id) => outbound.refusal({ code, message }, id),
          idIn,
          http: options.http,
          sleepers: kept && directory,
          requestClose(reason) {
            launcher()?.closes?.(reason, 'transport');
            void close(reason);
          },
        });
        // It may have that of its server.
        if (transport.authenticates) quotas.authenticates();
      } catch (error) {
        failed.add(transport);
        throw error;
      }
      server.mailbox.send({ type: 'started' });
    },
  };
}

/** Longest that a transport may take to close, in milliseconds: one that never does must not keep the server. */
const CLOSE_MS = 30_000;

async function closed(transport: Transport, clock: Clock): Promise<void> {
  let timer: Timer | undefined;
  const late = new Promise<never>((_, reject) => {
    const why = `the transport "${transport.name}" did not close within ${CLOSE_MS} ms: it is left as it is`;
    timer = clock.after(CLOSE_MS, () => reject(new Error(why)));
  });
  try {
    await Promise.race([transport.close(), late]);
  } finally {
    timer?.cancel();
  }
}
