/** `examples/order` as processes that can be killed: what its tests share. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { laterBy } from '../../harness/later.ts';
import { command } from '../clients/wire.ts';

const FILE = 'examples/order/server.ts';

export interface Running {
  readonly url: URL;
  /** Resolves when it has ended, for whatever reason. */
  readonly gone: Promise<void>;
  kill(): Promise<void>;
}

interface Spawning {
  readonly command: string;
  readonly args: string[];
  readonly cwd: string;
  readonly env: Record<string, string>;
  readonly stderr: 'pipe';
}

export interface OrderShop {
  /** How a client spawns it over stdio. */
  readonly stdio: Spawning;
  /** What was charged: a line of key, customer and total for each. */
  charges(): readonly string[];
  /**
   * Serves over HTTP, on this port or on any.
   *
   * @param laterMs how far the clock of the process is ahead
   */
  serve(port?: string, laterMs?: number): Promise<Running>;
  close(): void;
}

/** @param more environment of the processes, beside where they keep what */
export function openShop(more: Record<string, string> = {}): OrderShop {
  const folder = mkdtempSync(join(tmpdir(), 'order-'));
  const ledger = join(folder, 'ledger');
  const env = { ORDER_LEDGER: ledger, ORDER_STORE: join(folder, 'orders.db'), ORDER_PACKING_MS: '300', ...more };
  const children = new Set<ChildProcess>();
  const end = (): void => {
    for (const child of children) child.kill('SIGKILL');
    rmSync(folder, { recursive: true, force: true });
  };
  // A test that runs out of time closes nothing.
  process.once('exit', end);
  const { args, ...how }: Spawning = command(env);
  return {
    stdio: { ...how, args: [...args, 'run', FILE] },
    charges: () => (existsSync(ledger) ? readFileSync(ledger, 'utf8').split('\n').filter(Boolean) : []),
    async serve(port = '0', laterMs = 0) {
      const child = spawn(how.command, [...args, 'serve', FILE, '--http', port], {
        cwd: how.cwd,
        env: { ...process.env, ...how.env, ...laterBy(laterMs) },
        stdio: ['ignore', 'ignore', 'pipe'],
      });
      children.add(child);
      const gone = once(child, 'exit').then(() => void children.delete(child));
      const url = await new Promise<URL>((resolve, reject) => {
        let said = '';
        child.stderr.setEncoding('utf8').on('data', (text: string) => {
          said += text;
          const at = /http:\/\/\S+\/mcp/.exec(said)?.[0];
          if (at !== undefined) resolve(new URL(at));
        });
        child.once('exit', (code) => reject(new Error(`the server ended with ${code}: ${said}`)));
      });
      return {
        url,
        gone,
        async kill() {
          child.kill('SIGKILL');
          await gone;
        },
      };
    },
    close() {
      process.off('exit', end);
      end();
    },
  };
}
