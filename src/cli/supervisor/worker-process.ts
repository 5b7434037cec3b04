/** One worker process of a supervised server: the supervisor's end of its pipes. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { Duplex, type Readable, type Writable } from 'node:stream';
import { type Clock, systemClock, type Timer } from '../../clock.ts';
import type { PreviousProcess } from '../../launcher.ts';
import type { Life, ServerLink } from '../shim/server-link.ts';
import { Heartbeat } from './heartbeat.ts';
import { processState } from './process-state.ts';

/** What a worker is given beyond `limits.graceMs` to end, in milliseconds, once it is asked to. */
const SLACK_MS = 5_000;

/** The same, and the grace time, of a worker that has not said what its server's is. */
const UNKNOWN_GRACE_MS = 5_000;

/** How long a worker of which a pipe has closed may take to end, in milliseconds: the pipes of a process close when it ends, too. */
const CLOSED_MS = 1_000;

/** Between two looks whether a dead worker's last words are still coming, in milliseconds. */
const LAST_WORDS_MS = 250;

/** The agent's session, under which a server with a durable store keeps what it must know again: the same for every worker. */
const SESSION = randomUUID();

/** What the system, or V8, ends a process with for an error of its own. Any other signal comes from outside, also SIGKILL for want of memory. */
const FAULTS: ReadonlySet<string> = new Set(['SIGABRT', 'SIGSEGV', 'SIGBUS', 'SIGILL', 'SIGFPE', 'SIGTRAP', 'SIGSYS']);

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
  /** What it has if it is inspected or recorded. */
  readonly watched?: Watched | undefined;
  readonly clock?: Clock;
}

/** How a worker ended. */
export interface Ending {
  readonly code: number | null;
  /** Its program has ended it, with code 0: it is not started again. */
  readonly byItself: boolean;
  /** It is to blame for its end itself, and not somebody who has killed it. */
  readonly crashed: boolean;
  /** In words, such as "the server was killed by SIGKILL". */
  readonly why: string;
}

interface Exit {
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** It was never started. */
  readonly error: Error | undefined;
}

export class WorkerProcess {
  readonly link: ServerLink;
  /** Settled when it has ended. */
  readonly ended: Promise<Ending>;
  /** True once it stands at the gate; false when it has ended before. */
  readonly loaded: Promise<boolean>;
  /** Another takes its place: that it ends is no crash. */
  replaced = false;
  readonly #child: ChildProcess;
  readonly #control: Duplex | undefined;
  readonly #watched: Watched | undefined;
  readonly #clock: Clock;
  readonly #heartbeat: Heartbeat;
  #graceMs = UNKNOWN_GRACE_MS;
  #keeps = false;
  #deadline: Timer | undefined;
  /** Why it cannot go on, or was asked to end by somebody else. */
  #broken: string | undefined;
  #endedItself = false;
  /** It has computed for longer than its watchdog allows. */
  #blocked = false;
  #atGate: (loaded: boolean) => void = () => {};

  constructor({ command, watched, clock = systemClock }: WorkerOptions) {
    this.#clock = clock;
    this.#watched = watched;
    const child = spawn(process.execPath, command, {
      // What it says to people goes where ours does, without a copy of it being made.
      stdio: ['pipe', 'pipe', 'inherit', 'pipe'],
      env: { ...process.env, TROUPE_WORKER: '1', TROUPE_SESSION: SESSION },
      windowsHide: true,
    });
    this.#child = child;
    const { stdin, stdout } = child;
    if (!stdin || !stdout) throw new Error('the worker process has no pipes: the system has no room for more');
    const [, , , control] = child.stdio;
    this.#control = control instanceof Duplex ? control : undefined;
    this.#listen(this.#control);
    this.#heartbeat = new Heartbeat({
      clock,
      ask: () => void this.#control?.write('beat\n'),
      state: () => (child.pid === undefined ? 'running' : processState(child.pid)),
      dead: (why, blocked) => {
        this.#blocked = blocked;
        this.#end(why);
      },
    });
    this.loaded = new Promise((resolve) => {
      this.#atGate = resolve;
    });
    this.ended = this.#endOf(child);
    void this.ended.then(() => {
      this.#heartbeat.stop();
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

  async #endOf(child: ChildProcess): Promise<Ending> {
    const { code, signal, error } = await new Promise<Exit>((resolve) => {
      child.once('error', (error) => resolve({ code: null, signal: null, error }));
      child.once('exit', (code, signal) => resolve({ code, signal, error: undefined }));
    });
    await this.#lastWord();
    const why = error
      ? `cannot be started (${error.message})`
      : (this.#broken ?? (signal === null ? `ended with code ${code}` : `was killed by ${signal}`));
    const byItself = code === 0 && this.#broken === undefined;
    this.#endedItself = byItself && !this.replaced;
    const crashed = this.#blocked || (signal === null ? code !== 0 : FAULTS.has(signal));
    return { code, byItself, crashed, why: `the server ${why}` };
  }

  /** What it said before it died is still in the private channel. That ends, unless a process which it started holds it open. */
  async #lastWord(): Promise<void> {
    const control = this.#control;
    if (!control || control.readableEnded || control.destroyed) return;
    const hold = this.#clock.hold();
    await new Promise<void>((resolve) => {
      control.once('end', resolve).once('close', resolve);
      this.#clock.after(LAST_WORDS_MS, resolve);
    });
    hold.cancel();
  }

  /** The supervisor wants it to end: with its input over, or in favour of another. */
  get #ending(): boolean {
    return this.replaced || this.link.output.writableEnded;
  }

  /** It can serve no more, though it lives: nothing that it does now would reach the agent. */
  #breaks(why: string): void {
    if (!this.#ending) this.#end(why);
  }

  #end(why: string): void {
    this.#broken ??= why;
    this.kill();
  }

  /** One of its pipes has closed: it has ended, or closed the pipe itself. */
  #closed(pipe: string): void {
    if (!this.#ending) this.#clock.after(CLOSED_MS, () => this.#breaks(`has closed its ${pipe}`));
  }

  /** Lets it serve. @param previous the worker before it, if there was one */
  release(previous: PreviousProcess | undefined): void {
    const told = previous ? ` ${previous.pid} ${previous.crashed ? 'crashed' : 'killed'}` : '';
    this.#control?.write(`go${told}\n`);
  }

  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** Ends it at once. */
  kill(): void {
    this.#child.kill('SIGKILL');
  }

  #linkTo(input: Readable, output: Writable): ServerLink {
    // 'close' follows.
    for (const stream of [input, output]) stream.on('error', () => {});
    input.once('end', () => this.#closed('stdout'));
    output.once('close', () => this.#closed('stdin'));
    // With its input over it is to finish what it does, and end.
    output.once('finish', () => this.#endInTime());
    const keeps = (): boolean => this.#keeps;
    const endedItself = (): boolean => this.#endedItself;
    const life: Life = {
      turns: () => this.#heartbeat.turns,
      end: (why) => this.#end(why),
      get endedItself() {
        return endedItself();
      },
    };
    return {
      input,
      output,
      closed: this.ended.then(() => this.#lastWords(input)),
      get keeps() {
        return keeps();
      },
      life,
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
    control?.once('close', () => this.#closed('private channel'));
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
    else if (name === 'serves') this.#heartbeat.begin(Number(value) || undefined);
    else if (name === 'beat') this.#heartbeat.answered(value === 'debugged');
    else if (name === 'cut') this.#breaks(`has lost its connection (${word.slice('cut '.length)})`);
    // It finishes what it has.
    else if (name === 'asked' && !this.#ending) this.#broken ??= `was asked to end by ${value}`;
    else if (name === 'grace') this.#graceMs = Number(value) || UNKNOWN_GRACE_MS;
    else if (name === 'inspecting' && this.#watched) this.#watched.port = Number(value) || 0;
  }
}
