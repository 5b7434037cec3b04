/** One node process of `troupe serve --nodes`: the parent's end. */

import { type ChildProcess, fork } from 'node:child_process';
import type { Socket } from 'node:net';
import type { MetricsFormat } from '../../core/http/metrics-listener.ts';
import { type Clock, systemClock } from '../../core/kernel/clock.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { describeExit, exitOf } from '../supervisor/child-exit.ts';
import { Heartbeat } from '../supervisor/heartbeat.ts';
import { processState } from '../supervisor/process-state.ts';
import { isNodeReport, NODE_VARIABLE, type NodeIdentity, type NodeOrder, type NodeReport } from './fleet-messages.ts';
import { copyLines } from './node-lines.ts';
import type { ConnectionTaker } from './shared-port.ts';

/** Maximum time in milliseconds from the start of a process until it serves. */
const START_MS = 30_000;
/** Maximum time in milliseconds beyond its own limit for a node to end. */
const SLACK_MS = 5_000;
/** The time in milliseconds without confirmation after which a node counts as busy. */
const BUSY_MS = 200;
/** Maximum time in milliseconds for the metrics of a node. */
const METRICS_MS = 2_000;

interface NodeProcessOptions {
  /** The module that the process runs, and its arguments. */
  readonly module: string;
  readonly args: readonly string[];
  readonly identity: NodeIdentity;
  /** Passes on a connection that the process did not take before it ended. */
  readonly returned: (socket: Socket) => void;
  /** Writes the name of the node before each line of its output. */
  readonly named: boolean;
  readonly clock?: Clock;
}

type Ready = Extract<NodeReport, { type: 'ready' }>;
type NodeMetrics = Extract<NodeReport, { type: 'metrics' }>;

/** The end of a node process. */
interface NodeEnding {
  readonly code: number | null;
  /** A description such as `was killed by SIGKILL`. */
  readonly why: string;
}

export class NodeProcess implements ConnectionTaker {
  /** Settles when the process has ended. */
  readonly ended: Promise<NodeEnding>;
  /** Settles when the process serves; undefined if it ends first. */
  readonly ready: Promise<Ready | undefined>;
  readonly #clock: Clock;
  readonly #child: ChildProcess;
  readonly #returned: (socket: Socket) => void;
  /** The connections that are on their way to the process. */
  readonly #sent = new Map<number, { readonly socket: Socket; readonly at: number }>();
  readonly #asked = new Map<number, (metrics: NodeMetrics) => void>();
  #id = 0;
  #open = 0;
  #closeMs = 0;
  #onReady: (ready: Ready | undefined) => void = () => {};
  #failure: string | undefined;
  readonly #heartbeat: Heartbeat;

  constructor({ module, args, identity, returned, named, clock = systemClock }: NodeProcessOptions) {
    this.#clock = clock;
    this.#returned = returned;
    const child = fork(module, args, {
      stdio: ['ignore', 'inherit', named ? 'pipe' : 'inherit', 'ipc'],
      env: { ...process.env, [NODE_VARIABLE]: JSON.stringify(identity) },
    });
    this.#child = child;
    if (child.stderr) copyLines(child.stderr, identity.name);
    child.on('message', (message) => {
      if (isNodeReport(message)) this.#receive(message);
    });
    this.#heartbeat = new Heartbeat({
      clock,
      ask: () => this.#send({ type: 'beat' }),
      state: () => (child.pid === undefined ? 'running' : processState(child.pid)),
      dead: (why) => this.kill(why),
    });
    this.ready = new Promise((resolve) => {
      this.#onReady = resolve;
    });
    const late = clock.after(START_MS, () => this.kill(`did not serve within ${durationOf(START_MS)}`));
    void this.ready.then(() => late.cancel());
    this.ended = exitOf(child).then((exit) => ({ code: exit.code, why: describeExit(exit, this.#failure) }));
    void this.ended.then(() => {
      this.#onReady(undefined);
      this.#heartbeat.stop();
      for (const { socket } of this.#sent.values()) returned(socket);
      this.#sent.clear();
    });
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  get connections(): number {
    return this.#open + this.#sent.size;
  }

  get busy(): boolean {
    const [oldest] = this.#sent.values();
    return oldest !== undefined && this.#clock.now() - oldest.at > BUSY_MS;
  }

  take(socket: Socket): void {
    this.#id += 1;
    const id = this.#id;
    this.#sent.set(id, { socket, at: this.#clock.now() });
    // The parent keeps its own copy until the process has confirmed: the process may end before it reads the message.
    this.#child.send({ type: 'connection', id } satisfies NodeOrder, socket, { keepOpen: true }, (error) => {
      if (error && this.#sent.delete(id)) this.#returned(socket);
    });
  }

  /** Orders the process to close once its clients have moved to other processes, and kills it if that takes too long. */
  replace(): void {
    this.#end({ type: 'replace' });
  }

  /** Orders the process to close, and kills it if that takes too long. */
  close(reason: string): void {
    this.#end({ type: 'close', reason });
  }

  #end(order: NodeOrder): void {
    this.#send(order);
    const timer = this.#clock.after(this.#closeMs + SLACK_MS, () => this.kill('did not close in time'));
    void this.ended.then(() => timer.cancel());
  }

  /** Asks for the metrics. @returns undefined if the process does not answer in time */
  async metrics(format: MetricsFormat): Promise<NodeMetrics | undefined> {
    this.#id += 1;
    const id = this.#id;
    const metrics = await new Promise<NodeMetrics | undefined>((resolve) => {
      this.#asked.set(id, resolve);
      this.#send({ type: 'metrics', id, format });
      this.#clock.after(METRICS_MS, () => resolve(undefined));
    });
    this.#asked.delete(id);
    return metrics;
  }

  kill(why: string): void {
    this.#failure ??= why;
    this.#child.kill('SIGKILL');
  }

  #send(order: NodeOrder): void {
    // A process that has ended cannot read it; `ended` says so.
    if (this.#child.connected) this.#child.send(order, () => {});
  }

  #receive(report: NodeReport): void {
    switch (report.type) {
      case 'ready':
        this.#closeMs = report.closeMs;
        this.#heartbeat.begin(report.hardMs);
        return this.#onReady(report);
      case 'beat':
        return this.#heartbeat.answered(report.debugged);
      case 'taken': {
        const sent = this.#sent.get(report.id);
        if (!sent) return;
        this.#sent.delete(report.id);
        this.#open += 1;
        // Closes only the parent's copy of the descriptor.
        return void sent.socket.destroy();
      }
      case 'closed':
        this.#open -= report.count;
        return;
      case 'metrics':
        return this.#asked.get(report.id)?.(report);
    }
  }
}
