/** One long run over stdio: both eras on one connection, some failures, some progress, some cancels, every answer checked, the child weighed as it goes. */
import { type ChildProcessWithoutNullStreams, execFileSync, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

const SELF = {
  'io.modelcontextprotocol/protocolVersion': '2026-07-28',
  'io.modelcontextprotocol/clientInfo': { name: 'soak', version: '1.0.0' },
  'io.modelcontextprotocol/clientCapabilities': {},
};

/** What one call in so many is instead of an echo. Primes, so that every kind meets both eras. */
const EVERY = { fail: 53, unknown: 97, report: 31, wait: 41 } as const;

/** Lets garbage be collected before each weighing, and gives young objects all their room at once: Node would enlarge it in steps. */
const STEADY = ['--expose-gc', '--min-semi-space-size=16', '--max-semi-space-size=16'];

export interface SoakOptions {
  readonly calls: number;
  /** Requests in flight at once. Default 64. */
  readonly inFlight?: number;
  /** Calls between two weighings. */
  readonly every: number;
  /** Arguments for node before the server's file. Default: none, which runs what was built. */
  readonly nodeArgs?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  weighed?(sample: Sample): void;
}

export interface Sample {
  readonly calls: number;
  readonly seconds: number;
  /** Resident memory of the child in bytes; `undefined` where this system does not tell. */
  readonly resident: number | undefined;
}

export interface Soaked {
  readonly samples: readonly Sample[];
  readonly cancelled: number;
  /** How the child ended. */
  readonly code: number | null;
}

type Answer = {
  readonly id?: number | string;
  readonly method?: string;
  readonly result?: unknown;
  readonly error?: unknown;
};

/** What the answer to a request must look like, as text that it has in it. */
interface Expected {
  readonly holds: string;
  /** Progress notifications that must come first. */
  progress: number;
}

/** Calls a server until `calls` answers have come. @throws {Error} for an answer that is wrong, missing, or there twice */
export async function soak(options: SoakOptions): Promise<Soaked> {
  const server = fileURLToPath(new URL('servers/soak.mjs', import.meta.url));
  const child = spawn(process.execPath, [...STEADY, ...(options.nodeArgs ?? []), server], {
    cwd: fileURLToPath(new URL('..', import.meta.url)),
    env: { ...process.env, ...options.env },
    stdio: 'pipe',
  });
  child.stderr.pipe(process.stderr);
  const ended = new Promise<number | null>((resolve) => void child.once('close', resolve));
  try {
    const run = new Run(child, options);
    await Promise.race([
      run.finished,
      ended.then((code) => {
        throw new Error(`the server ended with code ${code} while it was called`);
      }),
    ]);
    child.stdin.end();
    return { samples: run.samples, cancelled: run.cancelled, code: await ended };
  } finally {
    child.kill('SIGKILL');
  }
}

class Run {
  readonly samples: Sample[] = [];
  readonly finished: Promise<void>;
  cancelled = 0;
  readonly #child: ChildProcessWithoutNullStreams;
  readonly #options: SoakOptions;
  readonly #expected = new Map<number | string, Expected>();
  readonly #started = performance.now();
  #resolve: () => void = () => {};
  #reject: (error: Error) => void = () => {};
  #rest = '';
  #sent = 0;
  #done = 0;
  #due = 0;
  #last = false;

  constructor(child: ChildProcessWithoutNullStreams, options: SoakOptions) {
    this.#child = child;
    this.#options = options;
    this.finished = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
    child.stdout.setEncoding('utf8').on('data', (chunk: string) => {
      const lines = (this.#rest + chunk).split('\n');
      this.#rest = lines.pop() ?? '';
      try {
        for (const line of lines) this.#heard(line);
      } catch (error) {
        this.#reject(error instanceof Error ? error : new Error(String(error)));
      }
    });
    this.#expected.set('open', { holds: '"protocolVersion":"2025-06-18"', progress: 0 });
    const opening = { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'soak', version: '1.0.0' } };
    this.#write(say({ id: 'open', method: 'initialize', params: opening }));
    this.#write(say({ method: 'notifications/initialized' }));
    this.#due = options.inFlight ?? 64;
    this.#refill();
  }

  #write(text: string): void {
    this.#child.stdin.write(text);
  }

  /** Sends what may be sent: once a turn, in one write. */
  #refill(): void {
    let text = '';
    for (; this.#due > 0 && this.#sent < this.#options.calls; this.#due -= 1) text += this.#next();
    this.#due = 0;
    if (text !== '') this.#write(text);
  }

  #next(): string {
    this.#sent += 1;
    const n = this.#sent;
    // Ids of both kinds, and each era every other time.
    const id = n % 5 === 0 ? `id ${n}` : n;
    const meta = n % 2 === 0 ? SELF : {};
    const call = (name: string, more: object = {}): string =>
      say({
        id,
        method: 'tools/call',
        params: { name, arguments: { text: `text ${n}` }, _meta: { ...meta, ...more } },
      });
    if (n % EVERY.wait === 0) {
      this.cancelled += 1;
      // No answer will come: its place is free at once.
      queueMicrotask(() => this.#counted());
      return call('wait') + say({ method: 'notifications/cancelled', params: { requestId: id } });
    }
    if (n % EVERY.report === 0) {
      this.#expected.set(id, { holds: `"structuredContent":{"text":"text ${n}"}`, progress: 3 });
      return call('report', { progressToken: id });
    }
    if (n % EVERY.unknown === 0) {
      this.#expected.set(id, { holds: '"error":{"code":-32602,', progress: 0 });
      return call('nobody');
    }
    const fails = n % EVERY.fail === 0;
    const block = `"content":[{"type":"text","text":"text ${n}"}]`;
    this.#expected.set(id, { holds: fails ? `${block},"isError":true` : block, progress: 0 });
    return call(fails ? 'fail' : 'echo');
  }

  #heard(line: string): void {
    const message = JSON.parse(line) as Answer & { params?: { progressToken: number | string } };
    if (message.method !== undefined) {
      const about = this.#expected.get(message.params?.progressToken ?? '');
      if (!about || message.method !== 'notifications/progress') throw new Error(`nobody asked for this: ${line}`);
      about.progress -= 1;
      return;
    }
    const expected = this.#expected.get(message.id ?? '');
    if (!expected) throw new Error(`nobody asked for this, or it is answered already: ${line}`);
    if (!line.includes(expected.holds)) throw new Error(`expected ${expected.holds}, got ${line.slice(0, 500)}`);
    if (expected.progress !== 0) throw new Error(`${expected.progress} progress notifications are missing: ${line}`);
    this.#expected.delete(message.id ?? '');
    if (message.id === 'last') return this.#resolve();
    if (message.id === 'weigh') return this.#weigh();
    if (message.id !== 'open') this.#counted();
  }

  #counted(): void {
    this.#done += 1;
    if (this.#done % this.#options.every === 0) this.#collect();
    if (this.#done === this.#options.calls) return this.#finish();
    if (this.#due === 0) setImmediate(() => this.#refill());
    this.#due += 1;
  }

  /** All is answered: asks what the tool that waits has seen of the cancels. */
  #finish(): void {
    if (this.#last) return;
    this.#last = true;
    this.#expected.set('last', {
      holds: `"structuredContent":{"running":0,"cancelled":${this.cancelled}}`,
      progress: 0,
    });
    this.#write(say({ id: 'last', method: 'tools/call', params: { name: 'waits' } }));
  }

  /** Has the child collect its garbage first: what is merely not collected yet comes and goes by megabytes. */
  #collect(): void {
    this.#expected.set('weigh', { holds: '"content":[{"type":"text","text":"collected"}]', progress: 0 });
    this.#write(say({ id: 'weigh', method: 'tools/call', params: { name: 'collect' } }));
  }

  #weigh(): void {
    const sample = {
      calls: (this.samples.length + 1) * this.#options.every,
      seconds: (performance.now() - this.#started) / 1_000,
      resident: resident(this.#child.pid ?? 0),
    };
    this.samples.push(sample);
    this.#options.weighed?.(sample);
  }
}

function say(message: object): string {
  return `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`;
}

/** Resident memory of a process in bytes: from /proc, else from `ps`; `undefined` where there is neither. */
function resident(pid: number): number | undefined {
  for (const look of [
    () => /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1],
    () => /\d+/.exec(execFileSync('ps', ['-o', 'rss=', '-p', String(pid)], { encoding: 'utf8' }))?.[0],
  ]) {
    try {
      const kibibytes = look();
      if (kibibytes !== undefined) return Number(kibibytes) * 1_024;
    } catch {
      // This system has no such thing.
    }
  }
  return undefined;
}

/** How resident memory grows over the second half of a run, in bytes for each 100,000 calls: the slope of the line that fits best. */
export function slope(samples: readonly Sample[]): number | undefined {
  const half = samples.slice(Math.floor(samples.length / 2));
  const points = half.flatMap(({ calls, resident }) =>
    resident === undefined ? [] : [{ x: calls / 100_000, y: resident }],
  );
  if (points.length < 2) return undefined;
  const mean = (values: readonly number[]): number => values.reduce((sum, value) => sum + value, 0) / values.length;
  const x = mean(points.map((point) => point.x));
  const y = mean(points.map((point) => point.y));
  const over = points.reduce((sum, point) => sum + (point.x - x) * (point.y - y), 0);
  const under = points.reduce((sum, point) => sum + (point.x - x) ** 2, 0);
  return over / under;
}
