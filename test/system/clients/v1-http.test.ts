/** The official client of version 1 against the everything server, over HTTP, at each revision that it speaks. */
import * as assert from 'uvu/assert';
import { LEGACY_REVISIONS, type LegacyRevision } from '../../../src/core/protocol/revisions.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { everything } from './http-wire.ts';
import { scenarioOverHttp, scenarioOverSse } from './over-http.ts';
import { connectV1Http, connectV1Sse } from './v1.ts';

fullOnly('the quick test over HTTP is v2-http.test.ts');

const WHO = '@modelcontextprotocol/sdk';
/** Quick: the first and the last of HTTP. Over stdio, all of them have their turn at each scale. */
const REVISIONS = atScale<readonly LegacyRevision[]>({
  quick: LEGACY_REVISIONS.filter((revision) => revision === '2024-11-05' || revision === '2025-11-25'),
  full: LEGACY_REVISIONS,
  proof: LEGACY_REVISIONS,
});

for (const revision of REVISIONS)
  scenarioOverHttp(WHO, revision, async () => connectV1Http(await everything(), revision));

scenarioOverSse(WHO, '2024-11-05', async () => connectV1Sse(await everything(), '2024-11-05'));

const test = suite(`${WHO} over HTTP`);

test('is offered the latest revision of its era where it asks for one that is not spoken', async () => {
  const client = await connectV1Http(await everything(), '2024-10-07');
  assert.is(client.revision, '2025-11-25');
  assert.is((await client.listTools())[0]?.name, 'echo');
  await client.close();
  assert.is(await client.wire.exit(), 0);
});

test('gets a list in pages', async () => {
  const client = await connectV1Http(await everything({ EVERYTHING_PAGE_SIZE: '7' }), '2025-11-25');
  const names = (await client.listTools()).map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  const pages = client.wire.received.filter(({ result }) => Array.isArray(Object(result).tools));
  assert.is(pages.length, Math.ceil(names.length / 7));
  await client.close();
  assert.is(await client.wire.exit(), 0);
});

test('gets the answer of a call that runs when the server is asked to end', async () => {
  const client = await connectV1Http(await everything(), '2025-11-25');
  let calling: Promise<unknown> = Promise.resolve();
  await new Promise((onProgress) => {
    calling = client.callTool('wait', { ms: 300 }, { onProgress });
  });
  const ended = client.wire.exit();
  assert.equal(Object(await calling).content, [{ type: 'text', text: 'Waited 300 ms.' }]);
  assert.is(await ended, 0);
  await client.close().catch(() => {});
});
