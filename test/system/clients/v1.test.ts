/** The official client of version 1 against the everything server, over real stdio, at each revision that it speaks. */
import * as assert from 'uvu/assert';
import { LEGACY_REVISIONS } from '../../../src/core/protocol/revisions.ts';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';
import { EVERYTHING, scenario } from './scenario.ts';
import { connectV1 } from './v1.ts';

/** Quick: the last one of the legacy era; the client of version 2 has the modern one over HTTP. */
const REVISIONS = LEGACY_REVISIONS.filter((revision) => SCALE !== 'quick' || revision === '2025-11-25');

for (const revision of REVISIONS)
  scenario('@modelcontextprotocol/sdk', revision, () => connectV1(EVERYTHING, revision));

const test = suite('@modelcontextprotocol/sdk');

test.full('is offered the latest revision of its era where it asks for one that is not spoken', async () => {
  const client = await connectV1(EVERYTHING, '2024-10-07');
  assert.is(client.revision, '2025-11-25');
  await client.close();
  assert.is(await client.wire.exit(), 0);
});

test.full('gets a list in pages', async () => {
  const client = await connectV1(EVERYTHING, '2025-11-25', { EVERYTHING_PAGE_SIZE: '7' });
  const names = (await client.listTools()).map(({ name }) => name);
  assert.is(new Set(names).size, names.length);
  const pages = client.wire.received.filter(({ result }) => Array.isArray(Object(result).tools));
  assert.is(pages.length, Math.ceil(names.length / 7));
  await client.close();
});
