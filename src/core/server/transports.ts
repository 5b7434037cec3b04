/** The transports of one server: opens them, reports whether it is ready, and closes it in the order that docs/architecture.md shows. */

import { idIn } from '../codec/inbound/parse.ts';
import type { Outbound } from '../codec/outbound/outbound.ts';
import { type Clock, systemClock, type Timer, within } from '../kernel/clock.ts';
import { durationOf } from '../kernel/duration.ts';
import { randomId } from '../kernel/random-id.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { ServerMail } from '../messages/server-messages.ts';
import { preloadAjv } from '../schema/ajv-preload.ts';
import type { ConnectionTable, OpenConnections } from '../sessions/connections.ts';
import type { StorePace } from '../store/store-pace.ts';
import type { NamedClient, Readiness, Transport, TransportHost, UnreadyReason } from '../transports/transport.ts';
import type { Core, FeatureParts } from './feature.ts';
import { launcher } from './launcher.ts';
import { guardProcess } from './uncaught-errors.ts';
import { created, used } from './unserved.ts';

/** Milliseconds after the first transport has opened until ajv loads: a client has then listed the tools, and not called one. */
const PRELOAD_MS = 500;

/** Milliseconds in which a transport must close. A transport that hangs must not keep the server open. */
const CLOSE_MS = 30_000;

/** "Internal software error" of sysexits(3): a supervisor restarts the process. */
const RESTART_CODE = 70;

interface OpenTransportsOptions {
  readonly core: Core;
  /** In the order in which they have opened. */
  readonly features: readonly FeatureParts[];
  readonly outbound: Outbound;
  readonly pace: StorePace;
  readonly connections: OpenConnections;
  readonly table: ConnectionTable;
  readonly server: Mailbox<ServerMail>;
}

export class OpenTransports {
  readonly #options: OpenTransportsOptions;
  /** Transports that did not open. They are closed with the others. */
  readonly #failed = new Set<Transport>();
  readonly #stopped: Promise<void>;
  #resolveStopped = (): void => {};
  #unguard: (() => void) | undefined;
  #hold: Timer | undefined;
  #preload: Timer | undefined;
  #begun = false;
  #started = false;
  /** True from the beginning of a shutdown. */
  #unready = false;
  /** Set once other nodes take over. */
  #leaving: Promise<unknown> | undefined;
  #delay: Timer | undefined;
  #restarting = false;

  constructor(options: OpenTransportsOptions) {
    this.#options = options;
    created(options.core.options.name);
    this.#stopped = new Promise((resolve) => {
      this.#resolveStopped = resolve;
    });
  }

  readonly readiness = (): Readiness => {
    const { core, features } = this.#options;
    const { impairment } = core.storage;
    const reasons: UnreadyReason[] = [];
    if (this.#unready) reasons.push('draining');
    if (impairment !== undefined) reasons.push(impairment);
    reasons.push(...features.flatMap((feature) => feature.unready?.() ?? []));
    return { ready: reasons.length === 0, reasons };
  };

  /** Opens a transport. @throws the errors of its `open`, and of what the program has registered */
  async open(transport: Transport): Promise<void> {
    const { core, features, server } = this.#options;
    const { options, quotas, transports } = core;
    if (this.#unready)
      throw new Error(`this server is closed and cannot open a transport (${transport.name}): create another server`);
    for (const feature of features) feature.check?.();
    used();
    this.#unguard ??= guardProcess({
      ownsProcess: () => this.#ownsProcess,
      caught: (label, error) => {
        core.system.incident(`${label ?? 'an unknown element'}, in code that it does not await`, error);
        if (options.afterLateError === 'restart' && this.#ownsProcess) this.#restart();
      },
    });
    transports.push(transport);
    if (transport.authenticates) quotas.authenticates();
    if (!this.#begun) for (const feature of features) feature.begin?.();
    this.#begun = true;
    try {
      await core.storage.open();
      for (const feature of features) await feature.ready?.();
      await transport.open(this.#host());
      // Another transport of the server may authenticate already.
      if (transport.authenticates) quotas.authenticates();
    } catch (error) {
      this.#failed.add(transport);
      throw error;
    }
    if (!this.#started) for (const feature of features) feature.started?.();
    this.#started = true;
    server.send({ type: 'started' });
    this.#preload ??= systemClock.after(PRELOAD_MS, () => void preloadAjv());
  }

  /** The clients of the first open transport whose clients the operating system has authenticated. */
  get localClient(): NamedClient | undefined {
    return this.#options.core.transports.find(
      (transport) => transport.everyClient !== undefined && !this.#failed.has(transport),
    )?.everyClient;
  }

  get #ownsProcess(): boolean {
    return this.#options.core.transports.some(
      (transport) => transport.ownsProcess === true && !this.#failed.has(transport),
    );
  }

  #host(): TransportHost {
    const { core, features, outbound, pace, table } = this.#options;
    const { bus, limits, options, quotas, sessions, system } = core;
    const { clock, metrics, log, ids } = system;
    const host: TransportHost = {
      ...{ bus, clock, pace, metrics, idIn },
      maxMessageBytes: limits.maxMessageBytes,
      repeatableTools: () => [],
      retained: quotas.retained,
      readiness: this.readiness,
      connectionId: () => randomId(8),
      streamId: () => ids.local(),
      log: (level, message, fields) => log(level, message, fields ?? { event: 'transport' }),
      document: (value) => outbound.document(value),
      refusal: (code, message, id) => outbound.refusal({ code, message }, id),
      http: options.http,
      info: core.info,
      pages: Object.assign({}, ...features.map(({ pages }) => pages)),
      dormantSessions: sessions && table,
      requestClose: (reason) => {
        launcher()?.closes?.(reason, 'transport');
        void this.close(reason);
      },
    };
    // A member may be a getter.
    for (const feature of features)
      if (feature.hosts) Object.defineProperties(host, Object.getOwnPropertyDescriptors(feature.hosts()));
    return host;
  }

  /** Code that no handler awaits threw: drains the server, so that the process ends and its supervisor restarts it. */
  #restart(): void {
    if (this.#restarting) return;
    this.#restarting = true;
    // stdio and the command line end the process with this code once everything is closed.
    process.exitCode = RESTART_CODE;
    void this.#drain('code that no handler awaits threw').then(() => process.exit(RESTART_CODE));
  }

  /** Closes the server once balancers know that it is not ready. Until then it serves every request. */
  close(reason: string): Promise<void> {
    if (this.#unready) return this.#stopped;
    this.#unready = true;
    used();
    const { core } = this.#options;
    const { transports } = core;
    const delayMs = Math.max(0, ...transports.map((transport) => transport.drainDelayMs ?? 0));
    if (delayMs === 0) return this.#drain(reason);
    const { clock } = core.system;
    this.#hold = clock.hold();
    this.#delay = clock.after(delayMs, () => void this.#drain(reason));
    return this.#stopped;
  }

  #drain(reason: string): Promise<void> {
    this.#unready = true;
    this.#delay?.cancel();
    const { core, features } = this.#options;
    // A handler may wait for something that does not keep the event loop alive: the process must not exit before the
    // response.
    this.#hold ??= core.system.clock.hold();
    // The other nodes take over the cells first: until then, this node serves and forwards every request.
    const leaving = features.filter(({ leave }) => leave);
    if (leaving.length === 0) this.#drainNow(reason);
    else this.#leaving ??= Promise.all(leaving.map((feature) => feature.leave?.())).then(() => this.#drainNow(reason));
    return this.#stopped;
  }

  #drainNow(reason: string): void {
    const { connections, core, features, server } = this.#options;
    connections.close();
    for (const transport of core.transports) this.#stopAccepting(transport);
    for (const feature of features) feature.drain?.();
    server.send({ type: 'drain', reason, connections: connections.ids });
  }

  #stopAccepting(transport: Transport): void {
    try {
      transport.stopAccepting?.();
    } catch (error) {
      this.#options.core.system.incident(`${transport.name}, which was to accept no more`, error);
    }
  }

  /** Aborts what did not finish in time, then closes every transport, every feature in reverse order, and the store. */
  async stop(reason: string): Promise<void> {
    const { connections, core, server, table } = this.#options;
    const { transports } = core;
    const { clock, incident } = core.system;
    const features = [...this.#options.features].reverse();
    for (const feature of features) feature.handOver?.();
    await new Promise<void>((resolve) =>
      core.subscriptions.send({ type: 'flush all', flushed: { address: 'server', send: () => resolve() } }),
    );
    await connections.giveUp(reason);
    for (const feature of features) await feature.finish?.(reason);
    const results = await Promise.allSettled(transports.map((transport) => closed(transport, clock)));
    for (const result of results) if (result.status === 'rejected') incident('closing a transport', result.reason);
    table.closeAll(reason);
    await core.sessions?.close();
    for (const feature of features) await feature.stop?.(reason);
    await core.storage.close();
    this.#unguard?.();
    for (const feature of features) feature.end?.();
    this.#hold?.cancel();
    this.#preload?.cancel();
    server.send({ type: 'stopped' });
    this.#resolveStopped();
  }
}

/** Never throws at once: a transport that does is one that did not close. */
async function closed(transport: Transport, clock: Clock): Promise<void> {
  const why = `the transport "${transport.name}" did not close within ${durationOf(CLOSE_MS)}; the server closes without it`;
  await within(transport.close(), clock, CLOSE_MS, () => new Error(why));
}
