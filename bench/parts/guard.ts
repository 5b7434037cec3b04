/** Calls of a server that demands tokens beside the same server with `authenticate: () => 'ada'`; and what a rejected token costs. */
import { type FakeIssuer, fakeIssuer } from 'troupe/testing';
import { callAll, isEcho, wanting } from '../http.ts';
import { HttpConnection } from '../http-connection.ts';
import { echo, PreparedCall } from '../http-requests.ts';
import { inTurns, type Runner, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing, type Serving, serve } from '../serving.ts';

/** The same server, by who authenticates its clients: a function that returns a name, or tokens. The last is no Troupe. */
export const GUARDS = {
  name: 'authenticate returns a name',
  remembered: 'remembered token',
  fresh: 'each token verified',
  rejected: 'rejected token',
  bare: 'bare node:http, 401',
} as const;
export type Guard = keyof typeof GUARDS;

/** Requests in flight. */
export const GUARD_SIZE = 32;
const SERVERS = {
  name: ['servers/guard.mjs', 'name'],
  remembered: ['servers/guard.mjs', 'remember'],
  fresh: ['servers/guard.mjs', 'verify'],
  rejected: ['servers/guard.mjs', 'remember'],
  bare: ['servers/floor-rejecting.mjs'],
} as const satisfies Readonly<Record<Guard, readonly string[]>>;
const TEXT = 'x'.repeat(64);
const RESOURCE = 'https://mcp.example.com/mcp';

interface Guarded extends Serving {
  /** One for each connection: requests with the same token share a verification. */
  readonly tokens: readonly string[];
  readonly rejects: boolean;
}

export async function measureGuard(_contenders: unknown, scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('guard');
  const issuer = await fakeIssuer({ algorithm: 'RS256' });
  const guards: readonly Guard[] = ['name', 'remembered', 'fresh', 'rejected', 'bare'];
  const runners = guards.map(
    (guard): Runner<Guarded> => ({ who: GUARDS[guard], way: 'modern', start: () => start(guard, issuer) }),
  );
  try {
    await inTurns({
      gathering,
      figures: { calls: '/s', cpu: 'µs' },
      runners,
      sizes: [GUARD_SIZE],
      rounds: scale.rounds,
      prepare: (running) => warmUp(scale.warmMs, (ms) => call(running, ms)),
      async turn(running) {
        const [{ calls, perSecond }, micros] = await costing(running, () => call(running, scale.ms));
        return { calls: perSecond, cpu: micros / calls };
      },
    });
  } finally {
    await issuer.close();
  }
  return gathering.all;
}

async function start(guard: Guard, issuer: FakeIssuer): Promise<Guarded> {
  const serving = await serve(...SERVERS[guard], ...(guard === 'name' || guard === 'bare' ? [] : [issuer.issuer]));
  const rejects = guard === 'rejected' || guard === 'bare';
  // A hundred hours: a token that expires would be another measurement.
  const good = { audience: RESOURCE, scopes: ['orders:read'], expiresIn: 360_000 };
  const tokens = await Promise.all(Array.from({ length: GUARD_SIZE }, () => issuer.token(good)));
  if (!rejects) return { ...serving, tokens, rejects };
  // One token: it is remembered for five seconds only, and its verification is no part of this figure.
  return { ...serving, tokens: tokens.map(() => `${tokens[0]?.slice(0, -8)}AAAAAAAA`), rejects };
}

/** Calls of echo, each with its token; a rejected one is a call, too. */
async function call(
  { url, tokens, rejects }: Guarded,
  ms: number,
): Promise<{ readonly calls: number; readonly perSecond: number }> {
  const text = echo(url, { way: 'modern' }, TEXT).bytes.toString('latin1');
  const calls = tokens.map(
    (token) =>
      new PreparedCall(Buffer.from(text.replace('\r\nAccept:', `\r\nAuthorization: Bearer ${token}\r\nAccept:`))),
  );
  return rejects
    ? reject(url, calls, ms)
    : callAll(url, isEcho(TEXT), { ms }, GUARD_SIZE, (connection) => {
        const prepared = calls[connection];
        if (!prepared) throw new Error(`expected ${GUARD_SIZE} connections, got one more`);
        return prepared;
      });
}

/** @throws {Error} for an answer that is no rejection */
async function reject(
  url: URL,
  calls: readonly PreparedCall[],
  ms: number,
): Promise<{ readonly calls: number; readonly perSecond: number }> {
  const connections = await Promise.all(
    calls.map(async ({ bytes }) => ({ to: await HttpConnection.open(url), bytes })),
  );
  const started = performance.now();
  const wants = wanting({ ms }, started);
  let sent = 0;
  try {
    await Promise.all(
      connections.map(async ({ to, bytes }) => {
        while (wants(sent)) {
          sent += 1;
          const answer = await to.exchange(bytes);
          if (answer.status !== 401) throw new Error(`expected 401, got ${answer.head}`);
        }
      }),
    );
  } finally {
    for (const { to } of connections) to.close();
  }
  return { calls: sent, perSecond: (sent / (performance.now() - started)) * 1_000 };
}
