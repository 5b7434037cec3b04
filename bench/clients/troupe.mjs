/** Troupe's client as it is built. */
import { connect } from 'troupe/client';
import { asked, calling, STDIO_SERVER } from './calling.mjs';

const { url, isModern } = asked();
const [command, ...args] = STDIO_SERVER;
const client = await connect(url ?? { command, args }, { eras: isModern ? 'modern' : 'legacy' });

calling(
  async (text) => {
    const { content } = await client.call('echo', { text });
    return content[0]?.text;
  },
  () => client.close(),
);
