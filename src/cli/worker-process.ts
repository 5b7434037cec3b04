/** One worker process of a supervised server: the supervisor's end of its pipes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { type Clock, systemClock, type Timer } from '../clock.ts';
import type { Link } from './link.ts';

/** What a worker is given beyond `limits.graceMs` to end, in milliseconds, once it is asked to. */
const SLACK_MS = 5_000;

/** The same, and the grace time, of a worker that has not said what its server's is. */
const UNKNOWN_GRACE_MS = 5_000;

/** Between two looks whether a dead worker's last words are still coming, in milliseconds. */
const LAST_WORDS_MS = 250;

/** The agent's session, under which a server with a durable store keeps what it must know again: the same for every worker. */
const SESSION = randomUUID();

/** What the workers of a server that is inspected or recorded have one after the other. */
export interface Watched {
  /** Of the inspector: the first worker finds it, and those after it come back there. */
  port: number;
  readonly token: string;
  /** How many workers have had it. */
  turns: number;
  /** Settled when no worker has it any more. */
  free: Promise<unknown>;
}

export interface WorkerOptions {
  /** What node is told to run. */
  readonly command: readonly string[];
  /** Whether it waits for {@link WorkerProcess.release} before it serves. */
  readonly gated: boolean;
  /** What it has if it is inspected or recorded. */
  readonly watched?: Watched | undefined;
  readonly clock?: Clock;
}

/** How a worker ended. */
export interface Ending {
  readonly code: number | null;
  /** In words, such as "the server was killed by SIGKILL". */
  readonly why: string;
}

export class WorkerProcess {
  readonly link: Link;
  /** Settled when it has ended. */
  readonly ended: Promise<Ending>;
  /** True once it stands at the gate; false when it has ended before. */
  readonly loaded: Promise<boolean>;
  /** It has said something to the agent. */
  spoke = false;
  /** Another takes its place: that it ends is no crash. */
  replaced = false;
  readonly #child: ChildProcess;
  readonly #control: Duplex | undefined;
  readonly #watched: Watched | undefined;
  readonly #clock: Clock;
  #graceMs = UNKNOWN_GRACE_MS;
  #keeps = false;
  #deadline: Timer | undefined;
  #atGate: (loaded: boolean) => void = () => {};

  constructor({ command, gated, watched, clock = systemClock }: WorkerOptions) {
    this.#clock = clock;
    this.#watched = watched;
    const child = spawn(process.execPath, command, {
      // What it says to people goes where ours does, without a copy of it being made.
      stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
      env: { ...process.env, TROUPE_WORKER: gated ? 'gated' : 'free', TROUPE_SESSION: SESSION },
      windowsHide: true,
    });
    this.#child = child;
    const { stdin, stdout } = child;
    if (!stdin || !stdout) throw new Error('the worker process has no pipes: the system has no room for more');
    const [, , , control] = child.stdio;
    this.#control = control instanceof Duplex ? control : undefined;
    this.#listen(this.#control);
    this.loaded = new Promise((resolve) => {
      this.#atGate = resolve;
    });
    this.ended = new Promise((resolve) => {
      child.once('error', ({ message }) => resolve({ code: null, why: `the server cannot be started (${message})` }));
      child.once('exit', (code, signal) =>
        resolve({
          code,
          why: signal === null ? `the server ended with code ${code}` : `the server was killed by ${signal}`,
        }),
      );
    });
    void this.ended.then(() => {
      this.#deadline?.cancel();
      this.#atGate(false);
    });
    this.link = this.#linkTo(stdout, stdin);
    if (watched) this.#handOver(watched);
  }

  /** It may be inspected once those before it have ended: there is one port, and one file. */
  #handOver(watched: Watched): void {
    const { free } = watched;
    watched.free = Promise.all([free, this.ended]);
    // Arguments and environments can be read by others: this pipe cannot.
    void free.then(() => {
      this.#control?.write(`watch ${watched.turns} ${watched.port} ${watched.token}\n`);
      watched.turns += 1;
    });
  }

  /** Lets it serve. */
  release(): void {
    this.#control?.write('go\n');
  }

  /** Ends it at once. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #linkTo(input: Readable, output: Writable): Link {
    // 'exit' says all that there is to say.
    for (const stream of [input, output]) stream.on('error', () => {});
    input.once('data', () => {
      this.spoke = true;
    });
    // With its input over it is to finish what it does, and end.
    output.once('finish', () => this.#endInTime());
    const keeps = (): boolean => this.#keeps;
    return {
      input,
      output,
      closed: this.ended.then(() => this.#lastWords(input)),
      get keeps() {
        return keeps();
      },
      drain: () => {
        this.replaced = true;
        this.#child.kill('SIGTERM');
        this.#endInTime();
      },
      destroy: () => this.kill(),
    };
  }

  #endInTime(): void {
    this.#deadline ??= this.#clock.after(this.#graceMs + SLACK_MS, () => this.kill());
  }

  /** What it wrote before it died is still in the pipe. That ends, unless a process which it started holds it open. */
  async #lastWords(input: Readable): Promise<void> {
    let read = 0;
    input.on('data', ({ length }: { length: number }) => {
      read += length;
    });
    for (let before = -1; !input.readableEnded && !input.destroyed && (before !== read || input.isPaused()); ) {
      before = read;
      const hold = this.#clock.hold();
      await new Promise<void>((resolve) => {
        input.once('close', resolve);
        this.#clock.after(LAST_WORDS_MS, resolve);
      });
      hold.cancel();
    }
    input.destroy();
  }

  #listen(control: Duplex | undefined): void {
    let rest = '';
    control?.setEncoding('utf8').on('error', () => {});
    control?.on('data', (chunk: string) => {
      const words = (rest + chunk).split('\n');
      rest = words.pop() ?? '';
      for (const word of words) this.#heard(word);
    });
  }

  #heard(word: string): void {
    const [name, value] = word.split(' ');
    if (name === 'loaded') this.#atGate(true);
    else if (name === 'keeps') this.#keeps = true;
    else if (name === 'grace') this.#graceMs = Number(value) || UNKNOWN_GRACE_MS;
    else if (name === 'inspecting' && this.#watched) this.#watched.port = Number(value) || 0;
  }
}
