/** What a poll of events without news costs beside a call of a tool, in one process and in turns: processor time (`--quick`: fewer). */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { createServer, memory } from 'troupe';

const { values } = parseArgs({ options: { quick: { type: 'boolean', default: false } } });
const ROUNDS = values.quick ? 7 : 15;
const EACH = 4_000;
/** Requests on their way at once. */
const IN_FLIGHT = 32;

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
const poll = { name: 'order.paid', arguments: { order: 'o1' } };
const cursor = /"cursor":"([^"]+)"/.exec(await request('events/poll', poll))?.[1];
if (cursor === undefined) throw new Error('expected a cursor');

const ways = {
  'tool call': () => request('tools/call', { name: 'echo', arguments: { text: 'o1' } }),
  poll: () => request('events/poll', { ...poll, cursor }),
};

/** @returns microseconds of processor time of each request */
async function round(send: () => Promise<string>): Promise<number> {
  let left = EACH;
  const before = process.cpuUsage();
  const one = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const text = await send();
      if (!text.includes('"result"')) throw new Error(text);
    }
  };
  await Promise.all(Array.from({ length: IN_FLIGHT }, one));
  const { user, system } = process.cpuUsage(before);
  return (user + system) / EACH;
}

const median = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[all.length >> 1] ?? 0;
const calls: number[] = [];
const polls: number[] = [];
for (let at = 0; at < ROUNDS + 2; at += 1) {
  const [call, polled] = [await round(ways['tool call']), await round(ways.poll)];
  // The first rounds compile the code.
  if (at < 2) continue;
  calls.push(call);
  polls.push(polled);
}
const ratios = polls.map((each, at) => each / (calls[at] ?? 0));
process.stdout.write(
  `a tool call ${median(calls).toFixed(1)} µs, a poll without news ${median(polls).toFixed(1)} µs: × ${median(ratios).toFixed(2)} (${Math.min(...ratios).toFixed(2)} to ${Math.max(...ratios).toFixed(2)})\nNode ${process.version}, load ${loadavg()[0]?.toFixed(1)}\n`,
);
await server.close();
