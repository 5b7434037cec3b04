/** The official client of version 2 against the everything server, over HTTP, in both eras. */
import * as assert from 'uvu/assert';
import { LEGACY_REVISIONS, type LegacyRevision } from '../../../src/core/protocol/revisions.ts';
import { suite } from '../../harness/door.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { everything } from './http-wire.ts';
import { scenarioOverHttp } from './over-http.ts';
import { connectV2Http } from './v2.ts';

const WHO = '@modelcontextprotocol/client';
/** Quick: none, because the client of version 1 speaks one over stdio, and the transcripts and tests of sessions have them all. */
const REVISIONS = atScale<readonly LegacyRevision[]>({
  quick: [],
  full: LEGACY_REVISIONS,
  proof: LEGACY_REVISIONS,
});

for (const revision of REVISIONS)
  scenarioOverHttp(WHO, revision, async () => connectV2Http(await everything(), { initialize: revision }));

scenarioOverHttp(`${WHO}, pinned`, '2026-07-28', async () => connectV2Http(await everything(), { pin: '2026-07-28' }));

if (SCALE !== 'quick')
  scenarioOverHttp(`${WHO}, probing`, '2026-07-28', async () => connectV2Http(await everything(), 'auto'));

const test = suite(`${WHO} over HTTP`);

test.full('probes for the modern era', async () => {
  const client = await connectV2Http(await everything(), 'auto');
  assert.is(client.revision, '2026-07-28');
  await client.close();
  assert.is(await client.wire.exit(), 0);
});

test.full('learns that a subscription has ended gracefully when the server closes', async () => {
  const client = await connectV2Http(await everything(), { pin: '2026-07-28' });
  const { closed } = await client.listen({ toolsListChanged: true });
  assert.is(await client.wire.exit(), 0);
  assert.is(await closed, 'graceful');
  assert.equal(client.wire.faults, []);
  await client.close();
});

for (const negotiation of [{ initialize: '2025-11-25' }, { pin: '2026-07-28' }] as const)
  test.full(`gets a list in pages (${Object.values(negotiation)})`, async () => {
    const client = await connectV2Http(await everything({ EVERYTHING_PAGE_SIZE: '7' }), negotiation);
    const names = (await client.listTools()).map(({ name }) => name);
    assert.is(new Set(names).size, names.length);
    const pages = client.wire.received.filter(({ result }) => Array.isArray(Object(result).tools));
    assert.is(pages.length, Math.ceil(names.length / 7));
    await client.close();
    assert.is(await client.wire.exit(), 0);
  });
