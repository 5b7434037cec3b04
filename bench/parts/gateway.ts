/** Echo over HTTP through gateways to one server over stdio, beside the same server over HTTP without a gateway. */
import { type ChildProcess, spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Contender } from '../contenders.ts';
import { callAll, freePort, isEcho, openSession } from '../http.ts';
import { echo } from '../http-requests.ts';
import { inTurns, type Runner, tell, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';

export const WITHOUT_GATEWAY = 'without a gateway';
export const OUR_GATEWAY = 'Troupe';
export const GATEWAY_SIZES = [1, 32];
const TEXT = 'x'.repeat(64);
const TRIES = 200;
const PAUSE_MS = 50;

const HERE = fileURLToPath(new URL('..', import.meta.url));
const UPSTREAM = join(HERE, 'servers/troupe.mjs');
const PEERS = join(HERE, 'peers/node_modules');

interface Running {
  readonly url: URL;
  readonly way: 'session' | 'modern';
  readonly session: string;
  readonly child: ChildProcess;
  stop(): Promise<void>;
}

/** The arguments of node for each gateway. mcp-hub is left out: it serves no Streamable HTTP. */
const GATEWAYS: Readonly<Record<string, (port: number) => readonly string[]>> = {
  [WITHOUT_GATEWAY]: () => [join(HERE, 'servers/gateway.mjs'), 'direct'],
  [OUR_GATEWAY]: () => [join(HERE, 'servers/gateway.mjs'), UPSTREAM],
  'mcp-proxy': (port) => [
    join(PEERS, '.bin/mcp-proxy'),
    ...['--port', String(port), '--server', 'stream', '--', process.execPath, UPSTREAM],
  ],
  supergateway: (port) => [
    join(PEERS, '.bin/supergateway'),
    ...['--stdio', `${process.execPath} ${UPSTREAM}`, '--outputTransport', 'streamableHttp', '--stateful'],
    ...['--port', String(port), '--logLevel', 'none'],
  ],
};
/** Without sessions, supergateway starts a process for each call. */
const WAYS: Readonly<Record<string, readonly Running['way'][]>> = { supergateway: ['session'] };

export async function measureGateway(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('gateway');
  const peers = contenders.some(({ kind }) => kind === 'peer');
  const runners = Object.entries(GATEWAYS)
    .filter(([who]) => peers || who === OUR_GATEWAY || who === WITHOUT_GATEWAY)
    .flatMap(([who, args]) =>
      (WAYS[who] ?? (['session', 'modern'] as const)).map(
        (way): Runner<Running> => ({ who, way, start: () => start(args, way) }),
      ),
    );
  const call = ({ url, way, session }: Running, ms: number, inFlight: number) =>
    callAll(url, isEcho(TEXT), { ms }, inFlight, () => echo(url, way === 'session' ? { way, session } : { way }, TEXT));
  await inTurns({
    gathering,
    figures: { calls: '/s', p50: 'ms', memory: 'MB' },
    runners,
    sizes: GATEWAY_SIZES,
    rounds: scale.rounds,
    prepare: (running) => warmUp(scale.warmMs, (ms) => call(running, ms, 32)),
    async turn(running, size) {
      const { perSecond, p50 } = await call(running, scale.ms, size);
      return { calls: perSecond, p50, memory: residentMegabytes(running.child.pid) };
    },
  });
  return gathering.all;
}

async function start(args: (port: number) => readonly string[], way: Running['way']): Promise<Running> {
  const port = await freePort();
  const child = spawn(process.execPath, args(port), {
    cwd: HERE,
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'ignore'],
  });
  const ended = new Promise<void>((resolve) => void child.once('close', () => resolve()));
  const url = new URL(`http://127.0.0.1:${port}/mcp`);
  const stop = async (): Promise<void> => {
    child.kill('SIGTERM');
    const late = setTimeout(() => child.kill('SIGKILL'), 5_000);
    await ended;
    clearTimeout(late);
  };
  for (let tries = 1; ; tries += 1)
    try {
      return { url, way, session: way === 'session' ? await openSession(url) : await reached(url), child, stop };
    } catch (error) {
      if (tries < TRIES && child.exitCode === null) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      else {
        await stop();
        throw error;
      }
    }
}

/** Calls once without a session. */
async function reached(url: URL): Promise<string> {
  const { calls } = await callAll(url, isEcho(TEXT), { calls: 1 }, 1, () => echo(url, { way: 'modern' }, TEXT));
  if (calls !== 1) tell('a gateway', 'modern', 'it answered no call');
  return '';
}

/** The memory of the gateway's own process. Linux only: elsewhere 0. */
function residentMegabytes(pid: number | undefined): number {
  try {
    const kilobytes = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1];
    return Math.round(Number(kilobytes) / 1_024);
  } catch {
    return 0;
  }
}
