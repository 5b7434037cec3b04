/** The official client. */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { asked, calling, STDIO_SERVER } from './calling.mjs';

const { url, isModern } = asked();
const [command, ...args] = STDIO_SERVER;
const client = new Client(
  { name: 'bench', version: '1.0.0' },
  { versionNegotiation: { mode: isModern ? { pin: '2026-07-28' } : 'legacy' } },
);
await client.connect(
  url ? new StreamableHTTPClientTransport(url) : new StdioClientTransport({ command, args, stderr: 'inherit' }),
);

calling(
  async (text) => {
    const { content } = await client.callTool({ name: 'echo', arguments: { text } });
    return content[0]?.text;
  },
  () => client.close(),
);
