/** What a process bears: exceptions that come too late, too few descriptors, too little memory. In real processes, over HTTP. */
import { connect, type Socket } from 'node:net';
import * as assert from 'uvu/assert';
import { Hosted } from '../../features/workers/hosted.ts';
import { suite } from '../../harness/door.ts';
import { assertFigure } from '../../harness/pace.ts';
import { atScale, PROOF } from '../../harness/scale.ts';
import { until } from '../../harness/wait.ts';
import { ask } from '../http/support.ts';

const test = suite('process');
const FULL = PROOF;

async function using(hosted: Hosted, body: (hosted: Hosted) => Promise<void>): Promise<void> {
  try {
    await body(hosted);
  } finally {
    await hosted.stop();
  }
}

test('R-12: an error that is thrown too late is an incident, and the process continues', async () => {
  await using(await Hosted.open(), async (hosted) => {
    for (let i = 0; i < atScale({ quick: 5, full: 20, proof: 1_000 }); i += 1) await hosted.call('late');
    await hosted.said(/incident [\w-]+ in tool "late", in code that it does not await/);
    await hosted.served();
    assert.equal(hosted.endings, []);
  });
});

test.full('R-12: with afterLateError "restart" requests in flight are answered, and the process restarts', async () => {
  await using(await Hosted.open({ config: { afterLateError: 'restart' } }), async (hosted) => {
    const inFlight = Array.from({ length: 20 }, () => hosted.call('wait', { ms: 600 }).catch(String));
    await hosted.call('light');
    assert.match(await hosted.call('late'), /left a timer/);
    for (const answer of await Promise.all(inFlight)) assert.match(answer, /waited/);
    await until(
      () => hosted.endings.length > 0,
      () => `the end of the process; it said: ${hosted.err}`,
    );
    assert.is(hosted.endings[0]?.code, 70);
    const again = await hosted.served();
    assertFigure(again, 3_000, 'served again');
  });
});

test('R-21: without descriptors to spare, new connections wait or are refused, and those that are open live', async () => {
  // Fewer do not suffice for the modules that the compiled tests load at once.
  const DESCRIPTORS = FULL ? 256 : 192;
  const wrap = (command: readonly string[]): readonly string[] => [
    'sh',
    '-c',
    `ulimit -n ${DESCRIPTORS}; exec "$@"`,
    'sh',
    ...command,
  ];
  await using(await Hosted.open({ wrap }), async (hosted) => {
    const inFlight = Array.from({ length: 10 }, () => hosted.call('wait', { ms: 2_000 }).catch(String));
    await hosted.said(/^waits 10$/m);
    const { port, hostname } = new URL(hosted.url);
    const sockets: Socket[] = [];
    let there = 0;
    for (let i = 0; i < (FULL ? 1_000 : 300); i += 1) {
      const socket = connect({ host: hostname, port: Number(port) });
      socket.on('error', () => {});
      // The system completes a connection, whether or not the server has a descriptor for it.
      socket.once('connect', () => {
        there += 1;
      });
      sockets.push(socket);
    }
    await until(() => there >= DESCRIPTORS, 'more connections than descriptors');
    // None of those that were there before has been dropped for them.
    for (const answer of await Promise.all(inFlight)) assert.match(answer, /waited/);
    assert.equal(hosted.endings, []);
    for (const socket of sockets) socket.destroy();
    await hosted.served();
  });
});

test.full('R-22: idle sessions fit into little memory, and each still answers', async () => {
  const count = atScale({ quick: 500, full: 1_500, proof: 10_000 });
  const options = { script: 'idle.mjs', node: ['--max-old-space-size=128'] };
  await using(await Hosted.open(options), async (hosted) => {
    const ids: string[] = [];
    for (let at = 0; at < count; at += 50)
      ids.push(...(await Promise.all(Array.from({ length: Math.min(50, count - at) }, () => session(hosted.url)))));
    assert.is(new Set(ids).size, count);
    const took: number[] = [];
    for (let at = 0; at < count; at += Math.ceil(count / 200)) {
      const began = performance.now();
      const answer = await ask(hosted.url, {
        headers: { 'mcp-session-id': ids[at] ?? '', 'mcp-protocol-version': '2025-06-18' },
        body: { jsonrpc: '2.0', id: 2, method: 'ping' },
      });
      assert.is(answer.status, 200);
      assert.match(await answer.text(), /"result"/);
      took.push(performance.now() - began);
    }
    took.sort((a, b) => a - b);
    const p99 = took[Math.floor(took.length * 0.99)] ?? 0;
    assertFigure(p99, 20, 'p99 of the answer of a session');
    assert.equal(hosted.endings, []);
  });
});

async function session(url: string): Promise<string> {
  const answer = await ask(url, {
    body: {
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'idle', version: '1' } },
    },
  });
  await answer.text();
  const { 'mcp-session-id': id } = answer.headers;
  if (typeof id !== 'string') throw new Error(`expected a session, got status ${answer.status}`);
  return id;
}
