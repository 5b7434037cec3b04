/** Each question of an upstream reaches the client, and each answer the upstream, in each pairing of eras and transports. */
import type { Client } from 'troupe/client';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { PROOF, SCALE } from '../../harness/scale.ts';
import { type Era, FORM, PAGE, PROMPT } from './asking-server.ts';
import { type Carrier, ROOTS, type Stage, stageOf } from './stage.ts';

const test = suite('questions through a gateway');

const ERAS: readonly Era[] = ['legacy', 'modern'];
const CARRIERS: readonly Carrier[] = ['memory', 'stdio', 'http'];

async function textOf(client: Client, tool: string): Promise<string> {
  const { content } = await client.call(tool);
  const [block] = content;
  return block?.type === 'text' ? block.text : JSON.stringify(content);
}

/** One script for all pairings. */
async function askEverything({ client, asked }: Stage): Promise<void> {
  assert.is(await textOf(client, 'up_form'), 'S false');
  assert.equal(asked.splice(0), [{ message: '[up] Which size?', requestedSchema: FORM }]);
  assert.is(await textOf(client, 'up_page'), 'accepted');
  assert.equal(asked.splice(0), [{ message: '[up] Agree', url: PAGE }]);
  assert.is(await textOf(client, 'up_model'), JSON.stringify({ type: 'text', text: 'hi' }));
  const { includeContext: _dropped, ...prompt } = PROMPT;
  assert.equal(asked.splice(0), [prompt]);
  assert.is(await textOf(client, 'up_dirs'), ROOTS.map(({ uri }) => uri).join());
  assert.equal(asked.splice(0), ['roots']);
  assert.is(await textOf(client, 'up_both'), 'accepted accepted 1');
  assert.is(asked.filter((each) => each !== 'roots').length, 2);
}

for (const downstream of ERAS)
  for (const upstream of ERAS)
    for (const over of CARRIERS)
      for (const upstreamOver of CARRIERS) {
        const quick = over === 'memory' && upstreamOver === 'memory';
        // One pairing that translates has processes and sockets.
        const real = downstream === 'modern' && upstream === 'legacy' && over === 'http' && upstreamOver === 'stdio';
        if (SCALE === 'quick' && !quick && !real) continue;
        // Only where the eras differ does the gateway translate.
        if (!PROOF && downstream === upstream && !quick) continue;
        test(`a ${downstream} client over ${over}, a ${upstream} upstream over ${upstreamOver}`, async () => {
          const stage = await stageOf({ era: downstream, over }, { era: upstream, over: upstreamOver });
          try {
            assert.is(stage.client.server.era, downstream);
            assert.is(await textOf(stage.client, 'up_era'), upstream);
            await askEverything(stage);
          } finally {
            await stage.close();
          }
        });
      }
