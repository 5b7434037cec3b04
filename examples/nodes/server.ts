/** Counts. Each counter has a handle, and survives the node that serves it. */
import { createServer, type Server } from 'troupe';
import { assign, setup } from 'xstate';

const counter = setup({
  types: {} as { context: { count: number }; events: { type: 'add' } },
}).createMachine({
  context: { count: 0 },
  initial: 'open',
  states: { open: { on: { add: { actions: assign({ count: ({ context }) => context.count + 1 }) } } } },
});

// The command names the store and the cluster, so the same program runs alone.
const server: Server = createServer({
  name: 'counters',
  version: '1.0.0',
  limits: { graceMs: 20_000 },
  http: { allowedHosts: ['mcp.example.com'] },
});

server.machine('counter', counter, {
  description: 'A counter.',
  events: { add: true },
  view: ({ context }) => ({ count: context.count }),
});

export default server;
