/** The server's side of `troupe run`: serves on stdio, alone or as the worker process of a supervisor. */
import { url as inspectorUrl } from 'node:inspector';
import { Socket } from 'node:net';
import type { MetricsAddress } from '../../core/http/http-options.ts';
import { systemClock } from '../../core/kernel/clock.ts';
import { DEFAULT_LIMITS } from '../../core/kernel/limits.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { PreviousProcess } from '../../core/server/launcher.ts';
import { reserveStdout } from '../../core/transports/stdout-guard.ts';
import type { Transport } from '../../core/transports/transport.ts';
import type { Server } from '../../features/server/server.ts';
import { type CommandIo, type ExitCode, endProcess, processIo } from '../command-io.ts';
import { logAsJson } from '../command-log.ts';
import type { LocalCaller } from '../serving/caller-option.ts';
import { type ClusterValues, readCluster } from '../serving/cluster-option.ts';
import { readEnvBeside } from '../serving/env-file.ts';
import type { InspectorAddress } from '../serving/inspecting.ts';
import type { Inspecting } from '../serving/inspecting-options.ts';
import { hardLimit, loadBlockedCalls, watchLoading, watchLoop } from '../serving/loop-watch.ts';
import { chosenStore } from '../serving/served-store.ts';
import { servedOn } from '../serving/served-transports.ts';
import { serveTarget } from '../serving/serving.ts';
import { drainOnSignal, endDrained } from '../serving/stop-signals.ts';
import type { StoreOptions } from '../serving/store-option.ts';
import { CALLED, type Target } from '../serving/target.ts';
import { runCommand, say } from '../usage.ts';

/** Maximum time beyond `limits.graceMs` for the server to end after its supervisor has exited, in milliseconds. */
const SLACK_MS = 5_000;

/** The file descriptor of the control channel to the supervisor. */
const CONTROL = 3;

/** The heartbeat's question. */
const BEAT = 'beat\n';

/** The parsed arguments of `troupe run`. The worker process receives them as JSON. */
export interface WorkerServer extends StoreOptions, ClusterValues {
  readonly target: Target;
  /** Writes the log as JSON. */
  readonly json: boolean;
  readonly inspecting: Inspecting;
  /** The address of the metrics of the first server that listens. */
  readonly metrics?: MetricsAddress | undefined;
  /** The client on stdio; undefined for the one that the program names. */
  readonly caller?: LocalCaller | undefined;
  /** Present if `.env` beside the program is not read. */
  readonly 'no-env-file'?: string | undefined;
}

/** Serves until the client disconnects. @throws {UsageError} if the store cannot be made */
export async function serveWorker(work: WorkerServer, io: CommandIo): Promise<ExitCode> {
  const { target, data, json, inspecting, metrics, caller } = work;
  if (json) logAsJson();
  // Each worker reads it again: a new version of the program may need other variables.
  readEnvBeside('run', target, { 'no-env-file': work['no-env-file'] }, io).apply();
  const store = await chosenStore('run', work, io);
  // From here on stdout carries only the protocol, also while the program loads.
  reserveStdout();
  const isWorker = process.env.TROUPE_WORKER !== undefined;
  // Child processes must not inherit the variable: this supervisor is not theirs.
  delete process.env.TROUPE_WORKER;
  const supervisor = isWorker ? new SupervisorEnd() : undefined;
  const called = process.env[CALLED] !== undefined;
  delete process.env[CALLED];
  const serving = new Map<Server, Promise<void>>();
  const isInspected = inspecting.inspect || inspecting.record !== undefined;
  const watch = async (server: Server): Promise<void> => {
    // Only the first server that listens is inspected: there is one page and one file.
    if (!isInspected || serving.size > 1) return;
    const onPort = (port: number): void => supervisor?.inspects(port);
    const { inspect } = await import('../serving/inspecting.ts');
    const address = supervisor?.inspectorAddress;
    await inspect(server, { ...inspecting, command: 'run', target: target.path, address, onPort });
  };
  let readsInput = false;
  const blocked = loadBlockedCalls(data);
  watchLoading({ input: true });
  return serveTarget(target, {
    command: 'run',
    listen(server, transports) {
      const before = serving.get(server);
      if (before) return before;
      const opened = open(server, servedOn(transports, caller), supervisor, watch).then(() => {
        watchLoop(server, { record: blocked, supervised: supervisor !== undefined, called, input: readsInput });
        if (metrics && serving.keys().next().value === server) void serveMetrics(server, metrics);
        supervisor?.serves(server, transports);
        if (readsInput) return;
        // Only the stdio transport handles signals and the end of stdin. Without one, both are handled here.
        drainOnSignal(io, server, (signal) => supervisor?.closes(signal, 'transport'));
        void supervisor?.inputEnded.then(() => readsInput || endDrained(io, server, 'stdin ended'));
      });
      readsInput ||= transports.length === 0 || transports.some(isStdio);
      serving.set(server, opened);
      return opened;
    },
    listenMore(transports) {
      readsInput ||= transports.some(isStdio);
      return undefined;
    },
    closes: (reason, by) => supervisor?.closes(reason, by),
    previous: () => supervisor?.previous,
    store,
    cluster: readCluster('run', work),
  });
}

/** Runs the worker process. Its arguments are a {@link WorkerServer} as JSON, and the ARGS of the program. */
export async function workFor([node = '', , json = '', ...rest]: readonly string[]): Promise<void> {
  const work: WorkerServer = JSON.parse(json);
  // As if node had been started with the program.
  process.argv = [node, work.target.path, ...rest];
  const io = processIo();
  endProcess(await runCommand(io, 'troupe run', () => serveWorker(work, io)));
}

function isStdio({ name }: Transport): boolean {
  return name === 'stdio';
}

async function open(
  server: Server,
  transports: readonly Transport[],
  supervisor: SupervisorEnd | undefined,
  watch: (server: Server) => Promise<void>,
): Promise<void> {
  await supervisor?.gate();
  await watch(server);
  await server.listen(...transports);
}

/** Never throws: an agent must not lose its server because another process has the port. */
async function serveMetrics(server: Server, address: MetricsAddress): Promise<void> {
  const { MetricsListener } = await import('../../core/http/metrics-listener.ts');
  const listener = new MetricsListener(address);
  const { name, version } = server.info;
  try {
    await server.listen(listener);
    say(`troupe run: ${name} ${version}: metrics at ${listener.url}`);
  } catch (error) {
    say(`troupe run: --metrics: ${messageOf(error)}. The server runs without it`);
  }
}

/**
 * The worker's end of the control channel.
 *
 * The worker sends `loaded`, `grace MS`, `keeps` (the store is durable), `serves HARD_MS`, `beat`, `beat debugged`, `inspecting PORT`,
 * `asked SIGNAL` and `cut REASON`. It receives `go`, `go PID crashed`, `go PID killed`, `beat`,
 * `end` (the agent sends nothing more) and `watch WORKERS PORT TOKEN`.
 */
class SupervisorEnd {
  readonly #control = new Socket({ fd: CONTROL });
  readonly #released: Promise<void>;
  /** The inspector's address; resolves when all earlier workers have released the port and the recording. */
  readonly inspectorAddress: Promise<InspectorAddress>;
  /** Resolves when the agent sends nothing more. A server without a stdio transport does not read stdin. */
  readonly inputEnded: Promise<void>;
  #closes = false;
  /** The previous worker. */
  previous: PreviousProcess | undefined;
  /** Milliseconds that the server may take to drain; undefined until it serves. */
  #graceMs: number | undefined;

  constructor() {
    const control = this.#control;
    let release = (): void => {};
    let inspect = (_: InspectorAddress): void => {};
    let end = (): void => {};
    this.inputEnded = new Promise((resolve) => {
      end = resolve;
    });
    this.#released = new Promise((resolve) => {
      release = resolve;
    });
    this.inspectorAddress = new Promise((resolve) => {
      inspect = resolve;
    });
    let rest = '';
    control.setEncoding('utf8').on('data', (chunk: string) => {
      // Without an iterator or a method of arrays: a tool may have overwritten those, and the event loop runs all the same.
      if (chunk === BEAT) return this.#beat();
      const words = (rest + chunk).split('\n');
      rest = words.pop() ?? '';
      for (const word of words) {
        const [name, first, second, token = ''] = word.split(' ');
        if (name === 'go') {
          if (first !== undefined) this.previous = { pid: Number(first), crashed: second === 'crashed' };
          release();
        } else if (name === 'beat') this.#beat();
        else if (name === 'end') end();
        else if (name === 'watch') inspect({ restarted: first !== '0', port: Number(second) || 0, token });
      }
    });
    // Before the server listens, only this channel shows that the supervisor has exited. Later, stdin ends as well and the server
    // closes. The timer ends a server that cannot close.
    const gone = (): void => {
      const graceMs = this.#graceMs;
      if (graceMs === undefined) process.exit(1);
      systemClock.after(graceMs + SLACK_MS, () => process.exit(1));
    };
    control.on('end', gone).on('error', gone);
    control.unref();
  }

  /** Resolves when this worker may serve: the previous worker must first release the store. */
  async gate(): Promise<void> {
    this.#send('loaded');
    const hold = systemClock.hold();
    await this.#released;
    hold.cancel();
  }

  /** @param transports those that are open */
  serves({ options }: Server, transports: readonly Transport[]): void {
    // If nothing reads stdin, the process ends although its program has not closed the server: report that as a failure.
    process.once('beforeExit', () => {
      if (!this.#closes) this.#send('cut nothing reads its stdin');
    });
    const delays = transports.map(({ drainDelayMs = 0 }) => drainDelayMs);
    const delayMs = Math.max(options.http?.drainDelayMs ?? 0, ...delays);
    const graceMs = delayMs + (options.limits?.graceMs ?? DEFAULT_LIMITS.graceMs);
    this.#graceMs = graceMs;
    this.#send(`grace ${graceMs}`);
    this.#send(`serves ${hardLimit(options) ?? 'unwatched'}`);
    // A durable store keeps the results of requests under the name of the agent's session (TROUPE_SESSION).
    if (options.store?.durable) this.#send('keeps');
  }

  /** The server closes. If the program has not asked for it, the cause is a signal or a broken connection to the agent. */
  closes(reason: string, by: 'program' | 'transport'): void {
    this.#closes = true;
    if (by === 'transport')
      this.#send(reason.startsWith('SIG') ? `asked ${reason}` : `cut ${reason.replaceAll('\n', ' ')}`);
  }

  inspects(port: number): void {
    this.#send(`inspecting ${port}`);
  }

  /** Answers the heartbeat. A debugger may pause this process for long. */
  #beat(): void {
    this.#send(inspectorUrl() === undefined ? 'beat' : 'beat debugged');
  }

  #send(word: string): void {
    this.#control.write(`${word}\n`);
  }
}
