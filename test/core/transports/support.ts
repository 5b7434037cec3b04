/** What the tests of transports share: a clock turned by hand, a host that records, a sink that holds back, a child process. */

import { type ChildProcess, type StdioOptions, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Writable } from 'node:stream';
import { Quota } from '../../../src/core/kernel/quota.ts';
import { Metrics } from '../../../src/core/kernel/telemetry/metrics.ts';
import { Bus, type BusEvents } from '../../../src/core/transports/bus.ts';
import type { Readiness, TransportHost } from '../../../src/core/transports/transport.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { startable } from '../../harness/compiled.ts';

/** Time that moves only when told, turns of the event loop too. */
export class HandClock extends SimulatedClock {
  #soon: (() => void)[] = [];

  override soon(callback: () => void): void {
    this.#soon.push(callback);
  }

  /** Ends the current turn: runs what was to run soon. */
  turn(): void {
    for (const callback of this.#soon.splice(0)) callback();
  }
}

const HEARD: readonly (keyof BusEvents)[] = [
  'connection.opened',
  'connection.text',
  'connection.unreadable',
  'connection.slow',
  'connection.drained',
  'connection.ended',
  'connection.closed',
  'fault',
];

/** A host whose bus, log and requests to close end up in one list of lines, in order. */
export class RecordingHost implements TransportHost {
  readonly retained = new Quota({ what: 'bytes', max: Number.MAX_SAFE_INTEGER, option: 'limits.maxRetainedBytes' });
  readonly bus = new Bus();
  readonly metrics = new Metrics();
  readonly clock = new HandClock();
  readonly pace = this.clock;
  readonly pages = {};
  readonly maxMessageBytes: number;
  readonly heard: string[] = [];
  repeatable: readonly string[] = [];
  #connections = 0;

  constructor(maxMessageBytes = 1_000) {
    this.maxMessageBytes = maxMessageBytes;
    for (const name of HEARD) this.bus.on(name, (event) => void this.heard.push(describe(name, event)));
  }

  readiness(): Readiness {
    return { ready: true, reasons: [] };
  }

  document(): string {
    return '';
  }

  repeatableTools(): readonly string[] {
    return this.repeatable;
  }

  connectionId(): string {
    this.#connections += 1;
    return `c${this.#connections}`;
  }

  streamId(): string {
    return 's1';
  }

  log(level: string, message: string): void {
    this.heard.push(`${level}: ${message}`);
  }

  refusal(code: number, message: string): string {
    return `${code} ${message}`;
  }

  idIn(): undefined {
    return undefined;
  }

  requestClose(reason: string): void {
    this.heard.push(`asked to close: ${reason}`);
  }

  send(connection: string, text: string): void {
    this.bus.emit('connection.send', {
      connection,
      text,
      about: { kind: 'connection', exchange: undefined },
      status: undefined,
    });
  }
}

function describe(name: string, event: object): string {
  const { head: _, ...told }: { readonly head?: string } = { ...event };
  return [name.replace('connection.', ''), ...Object.values(told).map(String)].join(' ');
}

/** A writable stream that takes in each write at once, or holds it until told. */
export class Sink extends Writable {
  readonly writes: string[] = [];
  holding = false;
  #held: (() => void)[] = [];

  constructor(highWaterMark = 16_384) {
    super({ decodeStrings: false, highWaterMark });
  }

  override _write(chunk: unknown, _encoding: string, done: (error?: Error | null) => void): void {
    this.writes.push(String(chunk));
    if (this.holding) this.#held.push(done);
    else done();
  }

  /** Takes in the oldest write that is held, and goes on holding. */
  takeOne(): void {
    this.#held.shift()?.();
  }

  /** Takes in what was held, and holds no more. */
  async take(): Promise<void> {
    this.holding = false;
    for (const done of this.#held.splice(0)) done();
    await settled();
  }
}

/** Resolves once everything that is already due (ticks, promises, immediates) has run. */
export async function settled(): Promise<void> {
  for (let turn = 0; turn < 3; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

/** A fixture of test/fixtures/stdio as a process, with what it said so far. */
export class Fixture {
  readonly process: ChildProcess;
  readonly exited: Promise<{ code: number | null; signal: string | null }>;
  /** Resolves when every process that holds its stdout and stderr is gone. */
  readonly quiet: Promise<unknown>;
  out = '';
  err = '';
  #wake: (() => void)[] = [];

  constructor(name: string, stdio: StdioOptions = 'pipe', command: (script: string) => string[] = nodeCommand) {
    const [program = process.execPath, ...args] = command(startable(`test/fixtures/stdio/${name}`));
    this.process = spawn(program, args, { stdio });
    this.exited = once(this.process, 'exit').then(([code, signal]) => ({ code, signal }));
    this.quiet = once(this.process, 'close');
    this.process.stderr?.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
      this.wake();
    });
    this.process.stdin?.on('error', () => {});
  }

  /** Begins to collect stdout. Without it the child's answers stay unread. */
  read(): this {
    this.process.stdout?.setEncoding('utf8').on('data', (text: string) => {
      this.out += text;
      this.wake();
    });
    return this;
  }

  write(text: string): void {
    this.process.stdin?.write(text);
  }

  wake(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }

  /** Resolves when `condition` holds; looks again at each word from the child. */
  async until(condition: () => boolean): Promise<void> {
    while (!condition()) await new Promise<void>((resolve) => void this.#wake.push(resolve));
  }

  said(text: string): Promise<void> {
    return this.until(() => this.err.includes(text));
  }
}

export function nodeCommand(script: string): string[] {
  return [process.execPath, script];
}
