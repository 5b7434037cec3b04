/** A server in a process of its own, which says its url in the first line that it writes, and ends when its stdin does. */
import { type ChildProcess, spawn } from 'node:child_process';
import { fileURLToPath } from 'node:url';

export interface Serving {
  readonly url: URL;
  /** Asks the server over IPC, and waits for its answer. */
  ask(question: string): Promise<unknown>;
  /** Microseconds of processor time that it has used so far. */
  processorTime(): Promise<number>;
  stop(): Promise<void>;
}

/** Runs it. @returns what came of it, and the microseconds of processor time that the server used meanwhile */
export async function costing<T>(
  server: Pick<Serving, 'processorTime'>,
  run: () => Promise<T>,
): Promise<readonly [value: T, micros: number]> {
  const before = await server.processorTime();
  const value = await run();
  return [value, (await server.processorTime()) - before];
}

/**
 * Starts a server of `bench/servers`.
 *
 * @param args a file below this folder, with what belongs before and after it on node's command line
 * @throws {Error} when it ends before it says its url
 */
export async function serve(...args: readonly string[]): Promise<Serving> {
  const child = spawn(process.execPath, args, {
    cwd: fileURLToPath(new URL('.', import.meta.url)),
    stdio: ['pipe', 'pipe', 'inherit', 'ipc'],
  });
  const closed = new Promise<number | null>((resolve) => void child.once('close', resolve));
  const url = await Promise.race([
    new Promise<string>((resolve) => {
      let said = '';
      child.stdout?.setEncoding('utf8').on('data', (chunk: string) => {
        said += chunk;
        const [line, rest] = said.split('\n', 2);
        if (rest !== undefined) resolve(line ?? '');
      });
    }),
    closed.then((code) => {
      throw new Error(`${args.join(' ')}: expected its url in a line on stdout, but it ended with code ${code}`);
    }),
  ]);
  const ask = (question: string): Promise<unknown> => askOver(child, closed, question, args.join(' '));
  return {
    url: new URL(url),
    ask,
    processorTime: async () => microsOf(await ask('cpu')),
    async stop() {
      const timer = setTimeout(() => child.kill('SIGKILL'), 5_000);
      child.stdin?.end();
      await closed;
      clearTimeout(timer);
    },
  };
}

/** Asks a process over IPC. @param closed resolves with its code when it ends */
export function askOver(
  child: ChildProcess,
  closed: Promise<number | null>,
  question: string,
  name: string,
): Promise<unknown> {
  return Promise.race([
    new Promise((resolve, reject) => {
      child.once('message', resolve);
      child.send(question, (error) => error && reject(error));
    }),
    closed.then((code) => {
      throw new Error(`${name}: expected an answer to "${question}", but it ended with code ${code}`);
    }),
  ]);
}

/** Reads what `process.cpuUsage()` told. */
export function microsOf(used: unknown): number {
  if (typeof used !== 'object' || used === null || !('user' in used) || !('system' in used))
    throw new Error(`expected what process.cpuUsage() tells, got ${JSON.stringify(used)}`);
  return Number(used.user) + Number(used.system);
}
