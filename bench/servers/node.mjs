/**
 * One of two nodes of a cluster, each a process with a store of its own in memory: `node.mjs owner`, which owns all cells, or
 * `node.mjs entry`, which owns none. Each gets the address of the other's link over IPC.
 */
import { createServer, http, memoryStore } from 'troupe';
import { answering, served } from './telling.mjs';

const [role] = process.argv.slice(2);
const isOwner = role === 'owner';
const other = isOwner ? 'entry' : 'owner';
let address = '';
let peers = [];
let changed = () => {};
const member = {
  id: role,
  date: Date.now,
  connected: () => true,
  peers: () => peers,
  ownerOf: () => 'owner',
  claim: async (cells) => (isOwner ? cells : []),
  release: async () => {},
  fence: async () => false,
  refresh: async () => {},
  retire: async () => {},
  leave: async () => {},
};
const store = Object.assign(memoryStore(), {
  nodes: {
    async join(self, hear) {
      address = self.address;
      changed = hear.changed.bind(hear);
      return member;
    },
  },
});
answering('address', () => address);
answering('link', async (to) => {
  // A node that leaves gets no share of the cells.
  peers = [{ node: other, address: to, version: '1.0.0', leaving: isOwner }];
  changed();
  return true;
});

const server = createServer({
  ...{ name: 'bench', version: '1.0.0', log() {}, store, keys: ['a key of both nodes that has at least 32 bytes'] },
  cluster: { listen: '127.0.0.1:0', secret: 'a secret of the cluster that has at least 32 bytes' },
});
const input = { type: 'object', properties: { text: { type: 'string' } }, required: ['text'] };
server.tool('echo', { description: 'Answers the text', input }, async ({ text }) => text);
const transport = http({ port: 0 });
await server.listen(transport);
served(transport.url, () => process.exit());
