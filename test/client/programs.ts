/** Server programs for tests of the client: small, of the legacy era, and as faulty as their mode says. */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { StdioCommand } from 'troupe/client';

/** Reads lines, writes each method with its name into a file, and responds by mode. */
const PROGRAM = `
const fs = require('node:fs');
const [mode, file] = process.argv.slice(1);
const note = (text) => fs.appendFileSync(file, text + '\\n');
const write = (message) => process.stdout.write(noise + JSON.stringify({ jsonrpc: '2.0', ...message }) + '\\n');
const noise = mode === 'noisy' ? '[info] {"id":1} 50 %' : '';
const stubborn = 'process.on("SIGTERM", () => {}); setInterval(() => {}, 60000);';
note('start ' + process.pid);
if (mode.startsWith('stubborn') || mode === 'family') {
  if (mode !== 'family') process.on('SIGTERM', () => {});
  setInterval(() => {}, 60000);
  const child = require('node:child_process').spawn(process.execPath, ['-e', stubborn + 'process.stdout.write("up\\\\n")'], { stdio: ['inherit', 'pipe', 'inherit', process.stdout] });
  child.stdout.once('data', () => note('grandchild ' + child.pid));
}
let left = Number(mode.split(' ').pop());
const life = fs.readFileSync(file, 'utf8').split('start ').length - 1;
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params = {} } = JSON.parse(line);
  note(method + ' ' + (params.name ?? params.uri ?? ''));
  if (method === 'server/discover' && mode === 'exits on the probe') process.exit(1);
  if (method === 'server/discover' && mode === 'silent to the probe') return;
  if (method === 'initialize')
    return write({ id, result: { protocolVersion: '2025-11-25', capabilities: { tools: {}, resources: {} }, serverInfo: { name: 'program', version: '1' } } });
  if (method === 'tools/call' || method === 'resources/read') {
    if (mode.startsWith('dies after') && life === 1) {
      left -= 1;
      if (left === 0) process.kill(process.pid, 'SIGKILL');
      return;
    }
    if (params.name === 'flood') return flood(id);
    return write({ id, result: method === 'tools/call' ? { content: [] } : { contents: [] } });
  }
  const lists = { 'tools/list': { tools: [{ name: 'work', inputSchema: { type: 'object' } }] }, 'resources/list': { resources: [] }, 'resources/templates/list': { resourceTemplates: [] } };
  if (lists[method]) return write({ id, result: lists[method] });
  if (id !== undefined) write({ id, error: { code: -32601, message: 'unknown method' } });
});
async function flood(id) {
  const put = (stream, text) => new Promise((done) => stream.write(text, done));
  const junk = ('x'.repeat(99) + '\\n').repeat(640);
  for (let at = 0; at < left; at += 1) {
    await put(process.stderr, junk);
    await put(process.stdout, junk);
  }
  await put(process.stdout, '{"jsonrpc":"2.0","id":' + id + ',"result":{"text":"');
  for (let at = 0; at < left * 16; at += 1) await put(process.stdout, 'x'.repeat(65536));
  await put(process.stdout, '"}}\\n{"half": ');
  await put(process.stdout, '"line"}\\n');
}
`;

export type Mode =
  | 'serves'
  /** Responds to no call, and is killed at the given one; its next process serves. */
  | `dies after ${number}`
  /** The tool `flood` writes megabytes to both streams, 6.4 times a hundredth of this number, and a line that is too long. */
  | `floods ${number}`
  /** Ignores TERM and the end of stdin, and so does its child. */
  | 'stubborn'
  /** Its child ignores TERM and holds its pipes open. */
  | 'family'
  /** Writes a progress bar in front of each message, on the same line. */
  | 'noisy'
  | 'exits on the probe'
  | 'silent to the probe';

export interface Program {
  readonly command: StdioCommand;
  /** What its processes wrote: `start PID`, `grandchild PID`, and each method with its name. */
  notes(): readonly string[];
  /** The processes that it started. */
  pids(): readonly number[];
  remove(): void;
}

export function program(mode: Mode): Program {
  const folder = mkdtempSync(join(tmpdir(), 'program-'));
  const file = join(folder, 'notes');
  const notes = (): readonly string[] => {
    try {
      return readFileSync(file, 'utf8').trim().split('\n');
    } catch {
      return [];
    }
  };
  return {
    command: { command: process.execPath, args: ['-e', PROGRAM, mode, file] },
    notes,
    pids: () => notes().flatMap((note) => (/^(start|grandchild) /.test(note) ? [Number(note.split(' ')[1])] : [])),
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** True while a process runs; a zombie does not. */
export function runs(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  try {
    return !/^\d+ \(.*\) [ZX]/.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return process.platform !== 'linux';
  }
}
