/** Idle clients of Troupe, to be weighed: `IDLE URL|memory legacy|modern`. In memory, the server is in the same process. */
import { createServer } from 'troupe';
import { connect } from 'troupe/client';
import { answering, served } from '../servers/telling.mjs';

const [target = 'memory', era = 'legacy'] = process.argv.slice(2);
const server = createServer({ name: 'bench', version: '1.0.0' });
const open = () => connect(target === 'memory' ? server : new URL(target), { eras: era });
const clients = [];

answering('open', async (count) => {
  for (let n = 0; n < Number(count); n += 1) clients.push(await open());
  return clients.length;
});
served('client:ready', () => process.exit());
