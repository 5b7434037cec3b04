/** Published advisories of MCP servers, each as a client would try it: CVE-2026-27896, CVE-2026-33946, CVE-2025-6515, CVE-2025-53365, and others. */

import * as assert from 'uvu/assert';
import { randomId } from '../../../src/core/kernel/random-id.ts';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { settled } from '../../../src/testing/testing.ts';
import { type Flooding, flood } from '../../core/http/flood.ts';
import { answered, call, modern, refused, SELF } from '../../core/http/modern.ts';
import { Raw, rawRequest } from '../../core/http/raw.ts';
import { PING, serving } from '../../core/http/session.ts';
import { type Answer, ask, initialize, openSession, type Stage } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { atScale, SCALE, times } from '../../harness/scale.ts';
import { busy } from '../fuzz/conversation.ts';

const test = suite('advisories');

const { headers: calling = {} } = modern('tools/call', { params: { name: 'whoami' } });
const LONG_S = '\u017f';
const KELVIN = '\u212a';

test('CVE-2026-27896: a key in another case, or that folds to it, is no key of ours', () =>
  serving(async ({ url, sessions }) => {
    const params = { name: 'whoami', _meta: SELF };
    for (const body of [
      { jsonrpc: '2.0', id: 1, Method: 'tools/call', params },
      { jsonrpc: '2.0', id: 1, METHOD: 'tools/call', params },
      { JSONRPC: '2.0', id: 1, method: 'tools/call', params },
      { [`j${LONG_S}onrpc`]: '2.0', id: 1, method: 'tools/call', params },
    ])
      assert.is((await ask(url, { headers: calling, body })).status, 400, JSON.stringify(body));
    for (const body of [
      { jsonrpc: '2.0', id: 1, method: 'tools/call', Params: params },
      { jsonrpc: '2.0', id: 1, method: 'tools/call', [`param${LONG_S}`]: params },
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { Name: 'whoami', _meta: SELF } },
      { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', _Meta: SELF } },
    ])
      await refused(await ask(url, { headers: calling, body }), 400, undefined, 1);
    // Without the key that counts, an initialize opens nothing.
    const opening = JSON.stringify(initialize('2025-11-25'));
    for (const other of ['ProtocolVersion', 'protocolversion', `protocolVer${LONG_S}ion`])
      assert.is((await ask(url, { body: opening.replace('protocolVersion', other) })).status, 400, other);
    assert.is(sessions(), 0);
  }));

test('CVE-2026-27896: beside the key that counts, its likeness changes nothing, for the headers and for the handler', () =>
  serving(async ({ url }) => {
    const likeness = {
      Method: 'resources/read',
      METHOD: 'ping',
      Params: { name: 'held' },
      [`param${LONG_S}`]: { name: 'held' },
      Id: 2,
      JsonRpc: '1.0',
    };
    const name = { Name: 'held', NAME: 'held', Arguments: { key: 'x' } };
    const whole = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'whoami', _meta: SELF, ...name } };
    for (const body of [
      { ...whole, ...likeness },
      { ...likeness, ...whole },
    ])
      assert.equal((await answered(await ask(url, { headers: calling, body }))).content, [
        { type: 'text', text: `anonymous ${LATEST_MODERN}` },
      ]);
    const args = { Text: 'other', TEXT: 'other', text: 'x', [`${KELVIN}`]: 1 };
    assert.equal((await answered(await call(url, 'echo', args))).content, [{ type: 'text', text: 'x' }]);
  }));

const IDS = atScale({ quick: 20_000, full: 100_000, proof: 1_000_000 });

test(`CVE-2025-6515: of ${IDS} session ids none comes twice, and every character is used as often as any other`, () =>
  serving(async ({ url }) => {
    const real = await openSession(url);
    const counts = new Map<string, number>();
    const ids = new Set<string>();
    for (let made = 0; made < IDS; made += 1) {
      const id = randomId(real.id.length);
      ids.add(id);
      // Each place, in turn.
      const character = id.charAt(made % id.length);
      counts.set(character, (counts.get(character) ?? 0) + 1);
    }
    assert.is(ids.size, IDS);
    assert.is(counts.size, 64);
    assert.match(real.id, /^[\w-]{24}$/);
    const expected = IDS / 64;
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    // 63 degrees of freedom: above 150 in one run of a hundred million.
    assert.ok(chiSquare < 150, String(chiSquare));
  }));

const ENDED = times(200, { quick: 30 });

test('CVE-2025-6515: an id is not used again once its session has ended', () =>
  serving(async ({ url }) => {
    const ids = new Set<string>();
    for (let nth = 0; nth < ENDED; nth += 1) {
      const session = await openSession(url);
      ids.add(session.id);
      await (await session.delete()).text();
      assert.is((await session.post(PING)).status, 404);
    }
    assert.is(ids.size, ENDED);
  }));

/** A request that streams three events and its answer. */
function counting(headers: readonly string[], extra: object): string {
  const params = { name: 'count', arguments: { to: 3 }, _meta: { progressToken: 'p', ...extra } };
  return rawRequest(
    'POST',
    '/mcp',
    ['Host: localhost', 'Content-Type: application/json', 'Accept: application/json, text/event-stream', ...headers],
    JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  );
}

/** The bytes between two of its ends: odd, so that both ways of leaving have their turn. */
const [SENT_STEP, READ_STEP] = SCALE === 'quick' ? [33, 51] : [11, 17];

/** Sends so much of a request, reads so much of what comes, and is gone. */
async function abort(url: string, text: string, sent: number, read: number, reset: boolean): Promise<void> {
  const raw = await Raw.open(url);
  raw.write(text.slice(0, sent));
  if (read > 0) await raw.until(`${read} bytes`, () => raw.received >= read);
  if (reset) raw.socket.resetAndDestroy();
  else raw.cut();
}

test('CVE-2025-53365: R-06: a client that leaves after any byte that it sent or read, by FIN or by RST, breaks nothing', () =>
  serving(
    async (stage: Stage) => {
      const { url, told, server } = stage;
      const uncaught: unknown[] = [];
      const keep = (error: unknown): void => void uncaught.push(error);
      process.on('uncaughtException', keep);
      process.on('unhandledRejection', keep);
      const session = await openSession(url);
      const modernLines = Object.entries(calling).map(([name, value]) => `${name}: ${String(value)}`);
      const kinds = [
        counting(
          modernLines.map((line) => line.replace('whoami', 'count')),
          SELF,
        ),
        counting([`Mcp-Session-Id: ${session.id}`, 'MCP-Protocol-Version: 2025-11-25'], {}),
      ];
      for (const text of kinds) {
        const whole = await Raw.open(url);
        whole.write(text);
        await whole.until('the end of the stream', (heard) => heard.includes('0\r\n\r\n'));
        const length = whole.received;
        whole.cut();
        for (let sent = 0; sent < text.length; sent += SENT_STEP) await abort(url, text, sent, 0, sent % 2 === 1);
        for (let read = 0; read <= length - 40; read += READ_STEP)
          await abort(url, text, text.length, read, read % 2 === 1);
      }
      const ping: Answer = await session.post(PING);
      assert.is(ping.status, 200);
      await answered(await call(url, 'echo', { text: 'x' }));
      await settled();
      assert.equal(busy(server), []);
      assert.equal(
        told.filter((line) => /^(error|warning)/.test(line)),
        [],
      );
      process.off('uncaughtException', keep);
      process.off('unhandledRejection', keep);
      assert.equal(uncaught, []);
    },
    { server: { limits: { maxInFlight: 1_000 } } },
  ));

/** Rounds of refused requests, and of a tenth as many health checks. */
const ROUNDS = atScale({ quick: 1, full: 2, proof: 10 });
const REFUSED = times(10_000, { quick: 1_000 });

test(`GHSA-9pj6-vhgr-3mwh, python-sdk 0f12dae: ${ROUNDS * REFUSED} refused requests, and health checks, leave no session and no timer`, () =>
  serving(async ({ url, clock, sessions }) => {
    // The actors of a new server become passive first.
    await clock.advance(60_000);
    const before = clock.timers;
    const json = { 'content-type': 'application/json', accept: '*/*' };
    const stranger = { ...json, 'mcp-session-id': 'x'.repeat(22) };
    const opening = JSON.stringify(initialize('2025-11-25'));
    const kinds: readonly (readonly [Flooding, number])[] = [
      [{ method: 'GET', headers: { accept: 'application/json' } }, 0],
      [{ method: 'GET' }, 0],
      [{ method: 'GET', headers: { ...stranger, accept: 'text/event-stream' } }, 404],
      [{ method: 'DELETE', headers: stranger }, 404],
      [{ method: 'DELETE' }, 400],
      [{ method: 'POST', headers: json, body: opening.replace('"jsonrpc"', '"jsonrcp"') }, 400],
      [{ method: 'POST', headers: json, body: opening.replace('protocolVersion', 'version') }, 400],
      [{ method: 'POST', headers: json, body: opening.slice(0, -1) }, 400],
      [{ method: 'POST', headers: { ...json, origin: 'http://evil.example.com' }, body: opening }, 403],
      [{ method: 'POST', headers: stranger, body: opening }, 404],
    ];
    for (let round = 0; round < ROUNDS; round += 1) {
      const answers = await flood(
        url,
        Array.from({ length: REFUSED / kinds.length }, () => kinds.map(([one]) => one)).flat(),
      );
      for (const [index, { status }] of answers.entries()) {
        const expected = kinds[index % kinds.length]?.[1];
        if (expected === 0 ? status < 400 || status > 499 : status !== expected)
          assert.unreachable(`${index % kinds.length} got ${status}`);
      }
      const health = await flood(
        new URL('/healthz', url).href,
        Array.from({ length: REFUSED / 10 }, () => ({ method: 'GET' })),
      );
      assert.ok(health.every(({ status }) => status === 200));
      assert.is(sessions(), 0);
    }
    await clock.advance(60_000);
    assert.is(clock.timers, before);
  }));

test('CVE-2026-39313: on every route and method a body beyond the limit is refused, or not read at all', () =>
  serving(
    async ({ url }) => {
      const session = await openSession(url);
      const body = 'x'.repeat(200_000);
      for (const path of ['/mcp', '/mcp?sse=x', '/healthz', '/readyz', '/other', '/mcp/']) {
        for (const method of ['POST', 'GET', 'DELETE', 'PUT', 'OPTIONS', 'PATCH']) {
          for (const framing of [`Content-Length: ${body.length}`, 'Transfer-Encoding: chunked']) {
            const raw = await Raw.open(url);
            const head = [
              `${method} ${path} HTTP/1.1`,
              'Host: localhost',
              'Content-Type: application/json',
              'Accept: application/json, text/event-stream',
              `Mcp-Session-Id: ${session.id}x`,
              framing,
            ];
            raw.write(`${head.join('\r\n')}\r\n\r\n`);
            // The body never ends: whoever answered has not waited for it.
            raw.write(framing.startsWith('T') ? `20000\r\n${body.slice(0, 0x20000)}\r\n` : body.slice(1));
            const { status } = await raw.response();
            const isHealth = path.endsWith('z') && method === 'GET';
            assert.ok(
              isHealth ? status === 200 : status === 204 || (status >= 400 && status < 500),
              `${method} ${path}: ${status}`,
            );
            raw.cut();
          }
        }
      }
      assert.is((await session.post(PING)).status, 200);
    },
    { server: { limits: { maxMessageBytes: 10_000 } } },
  ));
