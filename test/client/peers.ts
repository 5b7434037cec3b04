/** Servers of other projects, for tests of the client: which are installed, how to start them, and what is left of them. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import type { StdioCommand } from 'troupe/client';
import { freePort } from '../harness/free-port.ts';

const FOLDER = fileURLToPath(new URL('../../bench/peers/', import.meta.url));

/** True after `npm ci --prefix bench/peers`. */
export const havePeers: boolean = existsSync(join(FOLDER, 'node_modules/@modelcontextprotocol/server-everything'));

/** The file of a peer of ours (`v1.mjs`), or of a package (`@modelcontextprotocol/server-memory/dist/index.js`). */
export function peerFile(name: string): string {
  return join(FOLDER, name.endsWith('.mjs') ? 'conversation' : 'node_modules', name);
}

/** A program with a mark in its environment, which its children inherit. */
export interface MarkedCommand extends StdioCommand {
  readonly env: { readonly TROUPE_TEST_MARK: string };
}

export function peerCommand(name: string, args: readonly string[], env: Record<string, string> = {}): MarkedCommand {
  const marked = { ...env, TROUPE_TEST_MARK: randomUUID() };
  return { command: process.execPath, args: [peerFile(name), ...args], env: marked };
}

/** The processes with the mark of the command, their children included. Linux only: elsewhere it finds none. */
export function processesOf({ env: { TROUPE_TEST_MARK: mark } }: MarkedCommand): readonly string[] {
  if (process.platform !== 'linux') return [];
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false;
    try {
      // An ended process that its parent has not yet waited for has no environment.
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(mark);
    } catch {
      return false;
    }
  });
}

export interface ServedPeer {
  readonly url: string;
  close(): Promise<void>;
}

/** Starts a peer that serves HTTP, and reads its address from the first line that it prints. */
export async function servePeer(name: string): Promise<ServedPeer> {
  const child = spawn(process.execPath, [peerFile(name), 'http'], { stdio: ['pipe', 'pipe', 'inherit'] });
  const url = await line(child, child.stdout, /./);
  return { url, close: () => ended(child, () => child.stdin?.end()) };
}

/** Starts the reference server `everything` on a free port: it does not choose one itself. */
export async function serveEverything(): Promise<ServedPeer> {
  const port = await freePort();
  const file = peerFile('@modelcontextprotocol/server-everything/dist/index.js');
  const child = spawn(process.execPath, [file, 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await line(child, child.stderr, /listening on port/);
  return { url: `http://127.0.0.1:${port}/mcp`, close: () => ended(child, () => child.kill('SIGKILL')) };
}

/** The first line that fits. The others are dropped, so that the pipe never fills up. */
function line(child: ChildProcess, from: Readable | null, fits: RegExp): Promise<string> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`the peer ended with ${code} before it served`)));
    if (from) createInterface(from).on('line', (text) => fits.test(text) && resolve(text));
  });
}

async function ended(child: ChildProcess, end: () => void): Promise<void> {
  const exit = new Promise((resolve) => child.once('exit', resolve));
  end();
  await exit;
}
