/** Two principals at one gateway, with equal request ids and equal tools: nothing of one reaches the other. */
import { createServer, type Server } from 'troupe';
import * as assert from 'uvu/assert';
import { MemoryChannel } from '../../../src/client/channels/memory-channel.ts';
import { type Client, connect } from '../../../src/client/client.ts';
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { type MemoryPeer, memory } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { type Era, speakLegacy } from './asking-server.ts';

const test = suite('principals at a gateway');

const CALLS = atScale({ quick: 20, full: 75, proof: 2_500 });
const AT_ONCE = 16;
const NAMES = ['ada', 'bob'] as const;
const SCHEMA = { type: 'object', properties: { who: { type: 'string' } }, required: ['who'] } as const;

/** Each call asks, reports progress and logs, always with the name of its caller. */
function upstreamOf(era: Era): Server {
  const server = createServer({ name: 'upstream', version: '1.0.0', log() {} });
  if (era === 'legacy') speakLegacy(server);
  server.tool('mine', { input: { type: 'object' } }, async (args, ctx) => {
    const { who, n } = args as { readonly who: string; readonly n: number };
    const mark = `<${who} ${n}>`;
    ctx.progress(1, 2, mark);
    ctx.log.info(mark);
    const [answer, roots] = await Promise.all([
      ctx.elicit({ message: mark, schema: SCHEMA }),
      n % 5 === 0 ? ctx.roots() : undefined,
    ]);
    if (answer.status !== 'accepted' || answer.content.who !== mark) throw new Error(`${mark}: another answered`);
    if (roots && roots[0]?.uri !== `file:///${who}`) throw new Error(`${mark}: the roots of another`);
    return mark;
  });
  return server;
}

interface Principal {
  readonly client: Client;
  /** Texts with the name of another principal. */
  readonly foreign: string[];
}

async function principal(open: () => MemoryPeer, who: string, eras: Era): Promise<Principal> {
  const foreign: string[] = [];
  const other = NAMES.find((name) => name !== who) ?? '';
  const check = (text: string): void => {
    if (text.includes(`<${other} `) || text.includes(`file:///${other}`)) foreign.push(text);
  };
  const watched = async (): Promise<Pick<MemoryPeer, 'send' | 'onText' | 'close' | 'closed'>> => {
    const peer = open();
    return {
      send: (text) => peer.send(text),
      close: () => peer.close(),
      closed: peer.closed,
      onText: (listener) =>
        peer.onText((text) => {
          check(text);
          listener(text);
        }),
    };
  };
  const client = await connect(
    { name: who, channel: () => new MemoryChannel({ clock: systemClock, connect: watched }) },
    {
      eras,
      log() {},
      logLevel: 'debug',
      onLog() {},
      elicit: ({ message }) => ({ who: message.replace('[up] ', '') }),
      roots: () => [{ uri: `file:///${who}` }],
    },
  );
  return { client, foreign };
}

async function callOften({ client }: Principal, who: string): Promise<void> {
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let n = next++; n < CALLS; n = next++) {
      const progress: (string | undefined)[] = [];
      const result = await client.call('up_mine', { who, n }, { onProgress: ({ message }) => progress.push(message) });
      const mark = `<${who} ${n}>`;
      assert.equal(result.content, [{ type: 'text', text: mark }]);
      for (const message of progress) assert.is(message, mark);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, lane));
}

for (const downstream of ['legacy', 'modern'] as const)
  for (const era of ['legacy', 'modern'] as const)
    test(`U-16: ${2 * CALLS} calls of two ${downstream} principals through a gateway to a ${era} upstream`, async () => {
      const upstream = upstreamOf(era);
      const gateway = createServer({ name: 'gateway', version: '1.0.0', log() {}, limits: { maxInFlight: 64 } });
      await gateway.mount('up', upstream);
      const { transport, connect: open } = memory();
      await gateway.listen(transport);
      const principals = await Promise.all(
        NAMES.map((who) => principal(() => open({ principal: who }), who, downstream)),
      );
      await Promise.all(principals.map((each, index) => callOften(each, NAMES[index] ?? '')));
      assert.equal(
        principals.flatMap(({ foreign }) => foreign),
        [],
      );
      for (const { client } of principals) await client.close();
      await gateway.close();
      await upstream.close();
    });
