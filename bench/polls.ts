/** What a poll of events without news costs a server beside a call of a tool, in turns: processor time, in memory and over HTTP (`--quick`: fewer). */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { loadavg } from 'node:os';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { createServer, http, memory } from 'troupe';
import { keepingAgent, prepare } from './posting.ts';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false }, url: { type: 'string' } } });
const ROUNDS = values.quick ? 7 : 15;
const EACH = 4_000;
/** Requests on their way at once. */
const IN_FLIGHT = 32;

const ECHO = { name: 'echo', arguments: { text: 'o1' } };
const POLL = { name: 'order.paid', arguments: { order: 'o1' } };

/** @returns microseconds of processor time of each request */
async function costOf(work: () => Promise<unknown>): Promise<number> {
  const before = process.cpuUsage();
  await work();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / EACH;
}

async function sendAll(send: () => Promise<string>): Promise<void> {
  let left = EACH;
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const text = await send();
      if (!text.includes('"result"')) throw new Error(text);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, one));
}

const median = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[all.length >> 1] ?? 0;

async function compared(where: string, call: () => Promise<unknown>, poll: () => Promise<unknown>): Promise<void> {
  const calls: number[] = [];
  const polls: number[] = [];
  for (let at = 0; at < ROUNDS + 2; at += 1) {
    const [called, polled] = [await costOf(call), await costOf(poll)];
    // The first rounds compile the code.
    if (at < 2) continue;
    calls.push(called);
    polls.push(polled);
  }
  const ratios = polls.map((each, at) => each / (calls[at] ?? 0));
  process.stdout.write(
    `${where}: a tool call ${median(calls).toFixed(1)} µs, a poll without news ${median(polls).toFixed(1)} µs: × ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})\n`,
  );
}

/** The process of the client, which sends as many requests as its parent asks for. */
if (values.url !== undefined) {
  const url = new URL(values.url);
  const agent = keepingAgent();
  const send = (method: string, params: object) => prepare(url, { way: 'modern' }, method, { ...params }, agent);
  const page = await send('events/poll', POLL)();
  const cursor = /"cursor":"([^"]+)"/.exec(page)?.[1];
  const ways = { call: send('tools/call', ECHO), poll: send('events/poll', { ...POLL, cursor }) };
  process.on('message', (way: keyof typeof ways) => {
    sendAll(ways[way]).then(() => process.send?.('done'));
  });
  process.send?.('ready');
} else await serve();

async function serve(): Promise<void> {
  const server = createServer({ name: 'polls', version: '1.0.0', log() {} });
  const input = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] } as const;
  server.tool('echo', { input }, ({ text }) => text);
  const object = { type: 'object', properties: { order: { type: 'string' } } } as const;
  const paid = server.event('order.paid', { description: 'An order was paid.', input: object, payload: object });
  const { transport, connect } = memory();
  await server.listen(transport);
  await paid.emit({ order: 'o1' });

  const peer = connect({ principal: 'ada' });
  const waiting = new Map<number, (text: string) => void>();
  let last = 0;
  peer.onText((text) => {
    const id = Number(/"id":(\d+)/.exec(text)?.[1]);
    waiting.get(id)?.(text);
    waiting.delete(id);
  });
  function request(method: string, params: object): Promise<string> {
    last += 1;
    const id = last;
    return new Promise((resolve) => {
      waiting.set(id, resolve);
      peer.send(JSON.stringify({ jsonrpc: '2.0', id, method, params }));
    });
  }

  const clientInfo = { name: 'bench', version: '1.0.0' };
  await request('initialize', { protocolVersion: '2025-11-25', capabilities: {}, clientInfo });
  peer.send('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  const cursor = /"cursor":"([^"]+)"/.exec(await request('events/poll', POLL))?.[1];
  if (cursor === undefined) throw new Error('expected a cursor');
  await compared(
    'in memory',
    () => sendAll(() => request('tools/call', ECHO)),
    () => sendAll(() => request('events/poll', { ...POLL, cursor })),
  );

  const web = http({ port: 0 });
  await server.listen(web);
  const client: ChildProcess = fork(fileURLToPath(import.meta.url), ['--url', web.url ?? '']);
  await once(client, 'message');
  const asked = async (way: string): Promise<void> => {
    client.send(way);
    await once(client, 'message');
  };
  await compared(
    'over HTTP',
    () => asked('call'),
    () => asked('poll'),
  );
  client.disconnect();
  client.kill();
  process.stdout.write(`Node ${process.version}, load ${loadavg()[0]?.toFixed(1)}\n`);
  await server.close();
}
