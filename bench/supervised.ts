/** Measures what `troupe run` costs beside the same server in one process: calls for each second, a single call, the time to the first answer, memory. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { median } from './measured.ts';
import { StdioEcho } from './stdio.ts';

const CALLS = process.argv.includes('--quick') ? 20_000 : 100_000;
const ROUNDS = process.argv.includes('--quick') ? 3 : 7;

const main = fileURLToPath(new URL('../dist/lib/cli/main.js', import.meta.url));
const echo = fileURLToPath(new URL('./servers/troupe.mjs', import.meta.url));
const hello = fileURLToPath(new URL('../examples/hello/server.ts', import.meta.url));

const INITIALIZE = JSON.stringify({
  jsonrpc: '2.0',
  id: 0,
  method: 'initialize',
  params: { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'bench', version: '1.0.0' } },
});

const HOW = { alone: ['--no-supervisor'], supervised: [] } as const;
type How = keyof typeof HOW;

/** Milliseconds to the first answer, and the megabytes of the process that an agent starts. */
async function start(how: How): Promise<{ ms: number; megabytes: number }> {
  const began = performance.now();
  const child = spawn(process.execPath, [main, 'run', ...HOW[how], hello], { stdio: ['pipe', 'pipe', 'inherit'] });
  const closed = new Promise((resolve) => void child.once('close', resolve));
  child.stdin.write(`${INITIALIZE}\n`);
  await new Promise((resolve) => void child.stdout.once('data', resolve));
  const ms = performance.now() - began;
  const status = `/proc/${child.pid}/status`;
  const kilobytes = existsSync(status) ? /VmRSS:\s+(\d+)/.exec(readFileSync(status, 'utf8'))?.[1] : undefined;
  child.stdin.end();
  await closed;
  return { ms, megabytes: Number(kilobytes ?? 0) / 1024 };
}

async function calls(how: How): Promise<{ many: number; one: number }> {
  const served = await StdioEcho.start({
    server: main,
    args: ['run', ...HOW[how], echo],
    era: 'legacy',
    handshake: true,
  });
  await served.run(CALLS / 10, 64);
  const many = await served.run(CALLS, 64);
  const one = await served.run(CALLS / 20, 1);
  await served.stop();
  return { many: many.perSecond, one: one.p50 };
}

const rows: Record<How, { many: number[]; one: number[]; ms: number[]; megabytes: number[] }> = {
  alone: { many: [], one: [], ms: [], megabytes: [] },
  supervised: { many: [], one: [], ms: [], megabytes: [] },
};

// In turns: what else the machine does changes both.
for (let round = 0; round < ROUNDS; round += 1) {
  for (const how of ['alone', 'supervised'] as const) {
    const { many, one } = await calls(how);
    const { ms, megabytes } = await start(how);
    rows[how].many.push(many);
    rows[how].one.push(one);
    rows[how].ms.push(ms);
    rows[how].megabytes.push(megabytes);
  }
}

for (const [how, { many, one, ms, megabytes }] of Object.entries(rows))
  process.stdout.write(
    `${how.padEnd(12)}${Math.round(median(many))} calls/s with 64 in flight · one call ${(median(one) * 1000).toFixed(0)} µs · ` +
      `first answer after ${median(ms).toFixed(0)} ms (least ${Math.min(...ms).toFixed(0)}) · ${median(megabytes).toFixed(0)} MB in the agent's process\n`,
  );
