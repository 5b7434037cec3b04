/** `mcp-remote`, by which a client that knows only stdio reaches a server over HTTP: it stands between the official client and ours. */
import type { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import * as assert from 'uvu/assert';
import type { LegacyRevision } from '../../../src/core/protocol/revisions.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { everything, type Served } from './http-wire.ts';
import { mcpRemote } from './mcp-remote.ts';
import { failure, type OfficialClient } from './official.ts';
import { scenario } from './scenario.ts';
import { textOf } from './stage.ts';
import { asking, connected } from './v1.ts';
import { StdioWire } from './wire.ts';

fullOnly('starts mcp-remote; the quick tests of clients of others are v1.test.ts and v2-http.test.ts');

/** Between the client and the proxy; the server ends with the proxy. */
class ProxyWire extends StdioWire {
  readonly #served: Served;

  constructor(transport: StdioClientTransport, revision: LegacyRevision, served: Served) {
    super(transport, revision, asking(revision));
    this.#served = served;
    this.listen(served.child.stdout);
    this.listen(served.child.stderr);
  }

  override async exit(): Promise<unknown> {
    const code = await super.exit();
    return code === 0 ? this.#served.end() : `the proxy: ${code}`;
  }
}

async function connect(revision: LegacyRevision, ...options: readonly string[]): Promise<OfficialClient> {
  const served = await everything();
  const transport = mcpRemote(served.url, ...options);
  return connected(transport, new ProxyWire(transport, revision, served));
}

scenario('mcp-remote', '2025-11-25', () => connect('2025-11-25'));

scenario('mcp-remote over HTTP+SSE', '2024-11-05', () => connect('2024-11-05', '--transport', 'sse-only'));

const test = suite('mcp-remote that turns a legacy client into a modern one');

test('asks our server without a session, and tells the client what it answered', async () => {
  const client = await connect('2025-11-25', '--protocol', 'auto');
  assert.is(client.revision, '2025-11-25');
  const seen = JSON.parse(textOf(await client.callTool('describe_client')));
  assert.equal([seen.revision, seen.era, seen.session], ['2026-07-28', 'modern', false]);
  assert.equal((await client.callTool('add', { a: 2, b: 40 })).structuredContent, { sum: 42 });
  await client.callTool('test_tool_with_progress', {}, { onProgress: () => {} });
  assert.is(client.wire.notifications('notifications/progress').length, 3);
  await client.setLevel('warning');
  await client.callTool('log_each_level');
  assert.is(client.wire.notifications('notifications/message').length, 5);
  const { code, data } = await failure(client.callTool('protocol_error'));
  assert.equal([code, data], [-32602, { hint: 'call another' }]);
  const texts = Array.from({ length: 100 }, (_, i) => `call ${i}`);
  const results = await Promise.all(texts.map((text) => client.callTool('echo', { text })));
  assert.equal(results.map(textOf), texts);
  await client.close();
  assert.is(await client.wire.exit(), 0);
  assert.equal(client.wire.faults, []);
});
