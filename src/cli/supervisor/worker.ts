/** The server's side of `troupe run`: it serves on stdio, alone or as the worker process of a supervisor. */
import { url as inspectorUrl } from 'node:inspector';
import { Socket } from 'node:net';
import { systemClock } from '../../clock.ts';
import type { PreviousProcess } from '../../launcher.ts';
import { DEFAULT_LIMITS } from '../../limits.ts';
import type { Server } from '../../server.ts';
import { stdio } from '../../transports/stdio.ts';
import { reserveStdout } from '../../transports/stdout-guard.ts';
import type { Transport } from '../../transports/transport.ts';
import { dataDirectory } from '../serving/data-directory.ts';
import type { InspectedProcess } from '../serving/inspecting.ts';
import type { Inspecting } from '../serving/inspecting-options.ts';
import { blockedIn, hardLimit, watchLoop } from '../serving/loop-watch.ts';
import { serveTarget } from '../serving/serving.ts';
import type { Target } from '../serving/target.ts';
import { understood } from '../usage.ts';

/** What the server is given beyond `limits.graceMs` to end, in milliseconds, once its supervisor has gone. */
const SLACK_MS = 5_000;

/** The descriptor of the pipe to the supervisor, beside the agent's own three. */
const CONTROL = 3;

/** What is to be served, and how: what `troupe run` has read, which its worker process is told as JSON. */
export interface WorkerServer {
  readonly target: Target;
  /** The directory in which is kept what must survive. */
  readonly data?: string | undefined;
  readonly inspecting: Inspecting;
}

/** Serves until its client has gone. @throws {UsageError} for data that cannot be kept where it is to be */
export async function serveWorker({ target, data, inspecting }: WorkerServer): Promise<void> {
  // From here on stdout is the protocol, also for what the program says while it loads.
  reserveStdout();
  const isWorker = process.env.TROUPE_WORKER !== undefined;
  // What this process starts has another supervisor, or none.
  delete process.env.TROUPE_WORKER;
  const supervisor = isWorker ? new SupervisorEnd() : undefined;
  const serving = new Map<Server, Promise<void>>();
  const isWatched = inspecting.inspect || inspecting.record !== undefined;
  const watch = async (server: Server): Promise<void> => {
    // There is one page, and one file: of the server that listens first.
    if (!isWatched || serving.size > 1) return;
    const onPort = (port: number): void => supervisor?.inspects(port);
    const { inspect } = await import('../serving/inspecting.ts');
    await inspect(server, { ...inspecting, command: 'run', target: target.path, place: supervisor?.place, onPort });
  };
  const store = await dataDirectory('run', data);
  const blocked = blockedIn(data);
  await serveTarget(target, {
    command: 'run',
    listen(server, transports) {
      const before = serving.get(server);
      if (before) return before;
      const opened = open(server, transports, supervisor, watch).then(() => {
        watchLoop(server, blocked, supervisor !== undefined);
        supervisor?.serves(server);
      });
      serving.set(server, opened);
      return opened;
    },
    closes: (reason, by) => supervisor?.closes(reason, by),
    previous: () => supervisor?.previous,
    store,
  });
}

/** The same, in a process of its own: its arguments are the work, as JSON, and what the program is to find. */
export function workFor([node = '', , told = '', ...rest]: readonly string[]): Promise<void> {
  const work: WorkerServer = JSON.parse(told);
  // As if node had been told to run the program.
  process.argv = [node, work.target.path, ...rest];
  return understood(() => serveWorker(work));
}

async function open(
  server: Server,
  transports: readonly Transport[],
  supervisor: SupervisorEnd | undefined,
  watch: (server: Server) => Promise<void>,
): Promise<void> {
  await supervisor?.gate();
  await watch(server);
  await server.listen(...(transports.length > 0 ? transports : [stdio()]));
}

/** The pipe to the supervisor. Said here: `loaded`, `grace MS`, `keeps`, `serves HARD_MS`, `beat`, `beat debugged`, `inspecting PORT`, `asked SIGNAL`, `cut REASON`; heard: `go`, `go PID crashed`, `go PID killed`, `beat`, `watch TURNS PORT TOKEN`. */
class SupervisorEnd {
  readonly #control = new Socket({ fd: CONTROL });
  readonly #released: Promise<void>;
  /** Where the inspector is to be: settled when no worker before this one has what there is one of, its port and its file. */
  readonly place: Promise<InspectedProcess>;
  #closes = false;
  /** The worker before this one. */
  previous: PreviousProcess | undefined;
  /** Within which the server ends once it is asked to; undefined until it serves. */
  #graceMs: number | undefined;

  constructor() {
    const control = this.#control;
    let release = (): void => {};
    let watch = (_: InspectedProcess): void => {};
    this.#released = new Promise((resolve) => {
      release = resolve;
    });
    this.place = new Promise((resolve) => {
      watch = resolve;
    });
    let rest = '';
    control.setEncoding('utf8').on('data', (chunk: string) => {
      const words = (rest + chunk).split('\n');
      rest = words.pop() ?? '';
      for (const word of words) {
        const [name, turns, port, token = ''] = word.split(' ');
        if (name === 'go') {
          if (turns !== undefined) this.previous = { pid: Number(turns), crashed: port === 'crashed' };
          release();
        }
        // A debugger may hold this process for long.
        else if (name === 'beat') this.#say(inspectorUrl() === undefined ? 'beat' : 'beat debugged');
        else if (name === 'watch') watch({ again: turns !== '0', port: Number(port) || 0, token });
      }
    });
    // While nothing is served yet, nothing else tells that the supervisor has gone. Later stdin ends, too, and the server closes:
    // one that cannot close any more is no orphan either.
    const gone = (): void => {
      const graceMs = this.#graceMs;
      if (graceMs === undefined) process.exit(1);
      systemClock.after(graceMs + SLACK_MS, () => process.exit(1));
    };
    control.on('end', gone).on('error', gone);
    control.unref();
  }

  /** Resolves when this worker may serve: with one store, the worker before it must have let go of that. */
  async gate(): Promise<void> {
    this.#say('loaded');
    const hold = systemClock.hold();
    await this.#released;
    hold.cancel();
  }

  serves({ options }: Server): void {
    // An input that nobody reads holds no process: that it ends then is not what its program wants.
    process.once('beforeExit', () => {
      if (!this.#closes) this.#say('cut nothing reads its input');
    });
    const graceMs = options.limits?.graceMs ?? DEFAULT_LIMITS.graceMs;
    this.#graceMs = graceMs;
    this.#say(`grace ${graceMs}`);
    this.#say(`serves ${hardLimit(options) ?? 'unwatched'}`);
    // A store that outlives this process has what requests came to, under the name of the agent's session (TROUPE_SESSION).
    if (options.store?.durable) this.#say('keeps');
  }

  /** Its server closes. Unless the program has asked for it, a signal has, or the connection to the agent is broken. */
  closes(reason: string, by: 'program' | 'transport'): void {
    this.#closes = true;
    if (by === 'transport')
      this.#say(reason.startsWith('SIG') ? `asked ${reason}` : `cut ${reason.replaceAll('\n', ' ')}`);
  }

  inspects(port: number): void {
    this.#say(`inspecting ${port}`);
  }

  #say(word: string): void {
    this.#control.write(`${word}\n`);
  }
}
