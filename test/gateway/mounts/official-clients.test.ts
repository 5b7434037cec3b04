/** Official clients of both versions, and mcp-remote, behind a gateway to the everything server in both eras. */
import * as assert from 'uvu/assert';
import { fullOnly, suite } from '../../harness/door.ts';
import { PROOF } from '../../harness/scale.ts';
import { serve } from '../../system/clients/http-wire.ts';
import { mcpRemote } from '../../system/clients/mcp-remote.ts';
import type { OfficialClient } from '../../system/clients/official.ts';
import { textOf } from '../../system/clients/stage.ts';
import { asking, connected, connectV1, connectV1Http } from '../../system/clients/v1.ts';
import { connectV2, connectV2Http } from '../../system/clients/v2.ts';
import { StdioWire } from '../../system/clients/wire.ts';

fullOnly('starts clients of other projects; the quick test of a gateway is mount.test.ts');

const test = suite('official clients behind a gateway');
const GATEWAY = 'test/fixtures/mounts/everything.ts';

type Connect = (env: Record<string, string>) => Promise<OfficialClient>;

const CLIENTS: Readonly<Record<string, Connect>> = {
  'version 1 over stdio': (env) => connectV1(GATEWAY, '2025-11-25', env),
  'version 1 over stdio, at 2025-03-26': (env) => connectV1(GATEWAY, '2025-03-26', env),
  'version 1 over HTTP': async (env) => connectV1Http(await serve(GATEWAY, env), '2025-11-25'),
  'version 2 over stdio': (env) => connectV2(GATEWAY, 'auto', env),
  'version 2 over stdio, legacy': (env) => connectV2(GATEWAY, { initialize: '2025-11-25' }, env),
  'version 2 over HTTP': async (env) => connectV2Http(await serve(GATEWAY, env), { pin: '2026-07-28' }),
  'mcp-remote': async (env) => {
    const served = await serve(GATEWAY, env);
    const transport = mcpRemote(served.url);
    const client = await connected(transport, new StdioWire(transport, '2025-11-25', asking('2025-11-25')));
    return {
      ...client,
      async close() {
        await client.close();
        await served.end();
      },
    };
  },
};

for (const [index, [who, connect]] of Object.entries(CLIENTS).entries())
  for (const [turn, era] of (['legacy', 'modern'] as const).entries()) {
    // In a full run, each client meets one of the two upstreams; over stdio, both versions meet both.
    if (!PROOF && !who.endsWith('over stdio') && (index + turn) % 2 === 1) continue;
    test(`${who}, before a ${era} upstream`, async () => {
      const client = await connect({ UPSTREAM_ERA: era });
      const names = (await client.listTools()).map(({ name }) => name);
      assert.ok(names.includes('add') && names.includes('test_tool_with_progress'), names.join());
      const sum = await client.callTool('add', { a: 2, b: 40 });
      if (client.revision >= '2025-06-18') assert.equal(sum.structuredContent, { sum: 42 });
      else assert.match(textOf(sum), '42');
      const seen = JSON.parse(textOf(await client.callTool('describe_client')));
      assert.is(seen.era, era, 'the era that the upstream sees');
      // Not of a call that ends: the clients drop progress that arrives together with the result.
      const waiting = new AbortController();
      await new Promise<object>((onProgress, reject) => {
        const { signal } = waiting;
        client.callTool('wait', { ms: 60_000 }, { signal, onProgress }).catch(reject);
      });
      waiting.abort();
      assert.is((await client.callTool('test_error_handling')).isError, true);
      const resources = await client.listResources();
      assert.ok(resources.length > 0);
      const { contents } = await client.readResource(String(resources[0]?.uri));
      assert.ok(Array.isArray(contents) && contents.length > 0);
      assert.ok((await client.listTemplates()).length > 0);
      const prompts = await client.listPrompts();
      assert.ok(prompts.length > 0);
      const simple = prompts.find(({ arguments: needs }) => !Array.isArray(needs) || needs.length === 0);
      if (simple) assert.ok(Array.isArray((await client.getPrompt(String(simple.name))).messages));
      await client.close();
      assert.is(await client.wire.exit(), 0);
    });
  }
