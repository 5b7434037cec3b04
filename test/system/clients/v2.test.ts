/** The official client of version 2 against the everything server, over real stdio, in both eras. */
import * as assert from 'uvu/assert';
import { LEGACY_REVISIONS } from '../../../src/core/protocol/revisions.ts';
import { fullOnly, suite } from '../../harness/door.ts';
import { EVERYTHING, scenario } from './scenario.ts';
import { connectV2 } from './v2.ts';

fullOnly('the quick tests of clients of others are v1.test.ts and v2-http.test.ts');

for (const revision of LEGACY_REVISIONS)
  scenario('@modelcontextprotocol/client', revision, () => connectV2(EVERYTHING, { initialize: revision }));

scenario('@modelcontextprotocol/client, pinned', '2026-07-28', () => connectV2(EVERYTHING, { pin: '2026-07-28' }));

scenario('@modelcontextprotocol/client, probing', '2026-07-28', () => connectV2(EVERYTHING, 'auto'));

const test = suite('@modelcontextprotocol/client');

for (const negotiation of [{ initialize: '2025-11-25' }, { pin: '2026-07-28' }] as const)
  test(`gets a list in pages (${Object.values(negotiation)})`, async () => {
    const client = await connectV2(EVERYTHING, negotiation, { EVERYTHING_PAGE_SIZE: '7' });
    const names = (await client.listTools()).map(({ name }) => name);
    assert.is(new Set(names).size, names.length);
    const pages = client.wire.received.filter(({ result }) => Array.isArray(Object(result).tools));
    assert.is(pages.length, Math.ceil(names.length / 7));
    await client.close();
  });
