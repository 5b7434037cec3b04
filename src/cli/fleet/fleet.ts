/** The parent process of `troupe serve --nodes`: starts the nodes, restarts them after a crash, and replaces them one after the other. It does not load the server. */

import type { AddressInfo } from 'node:net';
import type { MetricsAddress } from '../../core/http/http-options.ts';
import { type MetricsFormat, MetricsListener, type ReadinessPage } from '../../core/http/metrics-listener.ts';
import { type Clock, systemClock } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { commandFile } from '../../core/kernel/package-files.ts';
import { type RestartPolicy, Restarts } from '../../core/kernel/restarts.ts';
import { isObject } from '../../core/protocol/json.ts';
import { onSignals } from '../supervisor/child-exit.ts';
import { say } from '../usage.ts';
import { mergeMetrics } from './fleet-metrics.ts';
import { NodeProcess } from './node-process.ts';
import { SharedPort } from './shared-port.ts';

/** A node that crashes more often is parked: most of its restarts would fail, too. */
const POLICY: RestartPolicy = { restarts: 10, windowMs: 60_000, backOff: { fromMs: 100, toMs: 5_000 } };

const SEPARATE =
  'troupe serve: --nodes: the nodes share no state: sessions of clients up to 2025-11-25, handles and tasks exist only on the node that created them, and other nodes answer 404. To share them, set TROUPE_STORE to a PostgreSQL database';

/** The readiness of a node that does not answer. */
const NO_PROCESS = '{"ready":false,"reasons":["no process"]}';

/** The exit code once every node is parked: "internal software error" of sysexits(3). */
const GAVE_UP = 70;

interface FleetOptions {
  /** The number of nodes. */
  readonly nodes: number;
  /** The arguments of `troupe` for each node. */
  readonly args: readonly string[];
  readonly address: { readonly host: string; readonly port: number };
  readonly metrics?: MetricsAddress | undefined;
  /** Writes the name of the node before each line of its output. */
  readonly named: boolean;
  readonly clock?: Clock;
}

/** One node: its process, and what follows the end of that. */
interface Slot {
  readonly name: string;
  readonly crashes: Restarts;
  /** The number of processes so far. */
  generations: number;
  /** The number of restarts after a crash. */
  restarts: number;
  node: NodeProcess | undefined;
}

/** Serves until a signal stops this process, then exits. @throws {Error} if the port cannot be opened, with a fix */
export async function runFleet(options: FleetOptions): Promise<void> {
  const port = new SharedPort(options.clock ?? systemClock);
  const address = await port.open(options.address);
  await new Fleet(options, port, address).run();
}

class Fleet {
  readonly #options: FleetOptions;
  readonly #clock: Clock;
  readonly #port: SharedPort;
  readonly #address: AddressInfo;
  readonly #slots: readonly Slot[];
  /** All processes that have not ended. */
  readonly #running = new Set<NodeProcess>();
  #stopping = false;
  #deploying = false;
  /** SIGHUP has come during a deployment. */
  #again = false;

  constructor(options: FleetOptions, port: SharedPort, address: AddressInfo) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#port = port;
    this.#address = address;
    this.#slots = Array.from({ length: options.nodes }, (_, index) => ({
      name: String(index + 1),
      crashes: new Restarts(POLICY),
      generations: 0,
      restarts: 0,
      node: undefined,
    }));
  }

  async run(): Promise<void> {
    // The nodes continue to serve after stderr has closed.
    process.stderr.on('error', () => {});
    this.#watchSignals();
    const [first, ...others] = this.#slots;
    if (!first) return;
    // Alone: an error of the program is then printed once.
    const node = this.#start(first);
    const ready = await node.ready;
    if (!ready) return this.#neverServed(node);
    for (const line of ready.lines) say(line);
    if (!ready.shared && others.length > 0) say(SEPARATE);
    await this.#openMetrics(ready.server);
    this.#serve(first, node);
    for (const slot of others) this.#launch(slot);
  }

  /** A program that fails before it ever served has an error that a restart does not fix. The node has printed it. */
  async #neverServed(node: NodeProcess): Promise<void> {
    const { code, why } = await node.ended;
    if (!this.#stopping) say(`troupe serve: node 1 ${why} before it could serve`, 'error');
    this.#exit(this.#stopping ? 0 : code || 1);
  }

  async #openMetrics(server: string): Promise<void> {
    const { metrics } = this.#options;
    if (!metrics) return;
    const listener = new MetricsListener(metrics);
    await listener.serve(
      { metrics: (format) => this.#metrics(format), readiness: () => this.#readiness() },
      (message) => say(`troupe serve: ${message}`, 'error'),
    );
    say(`troupe serve: ${server}: metrics of all nodes at ${listener.url}`);
  }

  #start(slot: Slot): NodeProcess {
    const node = new NodeProcess({
      module: commandFile(),
      args: this.#options.args,
      identity: { name: slot.name, generation: slot.generations, address: this.#address },
      returned: (socket) => this.#port.pass(socket),
      named: this.#options.named,
      clock: this.#clock,
    });
    slot.generations += 1;
    this.#running.add(node);
    void node.ended.then(({ why }) => {
      this.#running.delete(node);
      this.#port.remove(node);
      if (slot.node === node) this.#crashed(slot, why);
    });
    return node;
  }

  /** Starts the process of a node, which serves as soon as it is ready. */
  #launch(slot: Slot): void {
    const node = this.#start(slot);
    slot.node = node;
    void node.ready.then((ready) => {
      if (ready && slot.node === node) this.#serve(slot, node);
    });
  }

  #serve(slot: Slot, node: NodeProcess): void {
    slot.node = node;
    this.#port.add(node);
    say(`troupe serve: node ${slot.name} serves (process ${node.pid})`);
  }

  #crashed(slot: Slot, why: string): void {
    slot.node = undefined;
    if (this.#stopping) return;
    const delayMs = slot.crashes.restart(this.#clock, () => this.#launch(slot));
    if (delayMs === undefined) return this.#parked(slot, why);
    say(`troupe serve: node ${slot.name} ${why}: restarting in ${durationOf(delayMs)}`, 'error');
    slot.restarts += 1;
  }

  #parked(slot: Slot, why: string): void {
    const { restarts, windowMs } = POLICY;
    say(
      `troupe serve: node ${slot.name} ${why}: it crashed ${restarts + 1} times within ${windowMs / 1_000} seconds and is not restarted. Send SIGHUP to process ${process.pid} to start it again`,
      'error',
    );
    if (this.#slots.every(({ crashes }) => crashes.quarantined) && !this.#deploying) {
      say('troupe serve: no node is left', 'error');
      this.#exit(GAVE_UP);
    }
  }

  #watchSignals(): void {
    onSignals(
      (signal) => void this.#stop(signal),
      (signal) => {
        for (const node of this.#running) node.kill(`was killed: ${signal} came again`);
      },
      () => void this.#deploy(),
    );
  }

  /** Lets all nodes finish their requests, then exits. */
  async #stop(signal: string): Promise<void> {
    this.#stopping = true;
    say(`troupe serve: shutting down: ${signal}`);
    for (const { crashes } of this.#slots) crashes.stop();
    for (const node of this.#running) node.close(signal);
    // The port stays open meanwhile: a balancer learns from /readyz that it must not use it.
    await Promise.all([...this.#running].map(({ ended }) => ended));
    this.#exit(0);
  }

  /** Replaces the nodes one after the other. The next is replaced when the last one serves and the old one has ended. */
  async #deploy(): Promise<void> {
    if (this.#deploying) {
      this.#again = true;
      return say('troupe serve: SIGHUP: the nodes are being replaced; they are replaced again after that');
    }
    this.#deploying = true;
    say('troupe serve: SIGHUP: replacing the nodes one after the other');
    do {
      this.#again = false;
      await this.#replaceAll();
    } while (this.#again && !this.#stopping);
    this.#deploying = false;
  }

  async #replaceAll(): Promise<void> {
    for (const slot of this.#slots) {
      if (this.#stopping) return;
      const next = this.#start(slot);
      if (!(await next.ready)) {
        const { why } = await next.ended;
        if (!this.#stopping)
          say(
            `troupe serve: SIGHUP: the new process of node ${slot.name} ${why} before it could serve: the old processes continue`,
            'error',
          );
        return;
      }
      if (this.#stopping) return;
      const old = slot.node;
      slot.crashes.release();
      this.#serve(slot, next);
      if (!old) continue;
      this.#port.remove(old);
      old.replace();
      await old.ended;
    }
    say('troupe serve: SIGHUP: all nodes are replaced');
  }

  async #metrics(format: MetricsFormat): Promise<string> {
    const total = format === 'openmetrics' ? '' : '_total';
    const texts = await Promise.all(
      this.#slots.map(async ({ name, node, restarts }) => {
        const metrics = await node?.metrics(format);
        const own = [
          `# HELP troupe_restarts${total} Restarts of the node's process after a crash.`,
          `# TYPE troupe_restarts${total} counter`,
          `troupe_restarts_total ${restarts}`,
        ];
        return [name, `${own.join('\n')}\n${metrics?.text ?? ''}`] as const;
      }),
    );
    return mergeMetrics(new Map(texts));
  }

  /** The fleet is ready if a node is. */
  async #readiness(): Promise<ReadinessPage> {
    const nodes = await Promise.all(
      this.#slots.map(async ({ name, node }) => {
        const readiness: unknown = JSON.parse((await node?.metrics('prometheus'))?.readiness ?? NO_PROCESS);
        return { node: name, ...(isObject(readiness) ? readiness : {}) };
      }),
    );
    const ready = nodes.some((node) => 'ready' in node && node.ready === true);
    return { ready, document: JSON.stringify({ ready, nodes }) };
  }

  #exit(code: number): void {
    this.#port.close();
    process.exitCode = code;
    // Exit after stderr is flushed.
    process.stderr.write('', () => process.exit(code));
  }
}
