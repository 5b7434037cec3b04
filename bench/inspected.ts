/** What it costs to be inspected: echo over stdio without an inspector, with one that nobody watches, and watched, in turns. */
import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { freePort } from './http.ts';
import { StdioEcho } from './stdio.ts';
import { compare, type Echo } from './turns.ts';

const here = fileURLToPath(new URL('.', import.meta.url));

async function start(watched: boolean): Promise<Echo> {
  const port = await freePort();
  const token = randomBytes(32).toString('base64url');
  const echo = await StdioEcho.start({
    server: 'servers/inspected.mjs',
    args: [String(port), token],
    era: 'legacy',
    handshake: true,
  });
  let viewer: ChildProcess | undefined;
  if (watched) {
    viewer = spawn(process.execPath, ['servers/viewer.mjs', `http://127.0.0.1:${port}`, token], {
      cwd: here,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    if (viewer.stdout) await once(viewer.stdout, 'data');
  }
  return {
    run: (count, inFlight) => echo.run(count, inFlight),
    async stop() {
      viewer?.kill();
      await echo.stop();
    },
  };
}

/** How long the event loop of a server is held up in a flood, in milliseconds: the server says so itself. */
async function flood(calls: number, watched: boolean): Promise<{ readonly p99: number; readonly max: number }> {
  const port = await freePort();
  const token = randomBytes(32).toString('base64url');
  const child = spawn(process.execPath, ['servers/inspected.mjs', String(port), token], {
    cwd: here,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const answers: AsyncIterator<string> = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const post = (id: number, method: string, params: object): void =>
    void child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
  const said = async (): Promise<string> => (await answers.next()).value ?? '';
  post(0, 'initialize', { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'b', version: '1' } });
  await said();
  const viewer = watched
    ? spawn(process.execPath, ['servers/viewer.mjs', `http://127.0.0.1:${port}`, token], {
        cwd: here,
        stdio: ['ignore', 'pipe', 'inherit'],
      })
    : undefined;
  if (viewer) await once(viewer.stdout, 'data');
  post(1, 'tools/call', { name: 'delay', arguments: {} });
  await said();
  let sent = 0;
  const one = (): void => {
    sent += 1;
    post(sent + 1, 'tools/call', { name: 'echo', arguments: { text: 'x'.repeat(64) } });
  };
  while (sent < 120) one();
  for (let answered = 0; answered < calls; answered += 1) {
    await said();
    if (sent < calls) one();
  }
  post(calls + 2, 'tools/call', { name: 'delay', arguments: {} });
  const answer: unknown = JSON.parse(await said());
  viewer?.kill();
  child.stdin.end();
  const [, p99, max] = /"p99":([\d.]+),"max":([\d.]+)/.exec(JSON.stringify(answer).replaceAll('\\', '')) ?? [];
  return { p99: Number(p99), max: Number(max) };
}

const quick = process.argv.includes('--quick');
const FLOOR = 'troupe, without an inspector';
const fine = await compare({
  title: 'echo over stdio, inspected',
  rounds: quick ? 5 : 11,
  runs: [{ inFlight: 64, calls: quick ? 30_000 : 100_000 }],
  contenders: [
    { name: FLOOR, start: () => StdioEcho.start({ server: 'servers/troupe.mjs', era: 'legacy', handshake: true }) },
    { name: 'an inspector that nobody watches', start: () => start(false), floor: FLOOR, goal: 0.95 },
    { name: 'watched', start: () => start(true), floor: FLOOR, goal: 0.6 },
  ],
});
const held: number[] = [];
for (const watched of [false, true]) {
  const { p99, max } = await flood(20_000, watched);
  held.push(p99);
  process.stdout.write(
    `20,000 calls, 120 in flight, ${watched ? 'watched' : 'not watched'}: event loop held up ${p99.toFixed(1)} ms (p99), ${max.toFixed(1)} ms at most\n`,
  );
}
const [without = 0, watching = Number.NaN] = held;
// Where the machine does something else, it holds up both.
if (!fine || !(watching < Math.max(50, 1.5 * without))) process.exitCode = 1;
