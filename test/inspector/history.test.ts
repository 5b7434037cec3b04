/** The option `history`: a page shows what happened before it was opened. */
import * as assert from 'uvu/assert';
import { createServer } from '../../src/index.ts';
import { openInspector, readRecording } from '../../src/inspector/inspector.ts';
import { LIVE, lastCalls, Model } from '../../src/inspector/model/index.ts';
import { connect } from '../../src/testing/testing.ts';
import { suite } from '../harness/door.ts';
import { viewerOf } from './viewing.ts';

const test = suite('inspector: history');

for (const history of [true, false])
  test(`the calls before the first page are ${history ? 'there' : 'not observed without it'}`, async () => {
    const server = createServer({ name: 's', version: '1.0.0', log: () => {} });
    server.tool('echo', {}, () => 'said');
    const inspector = await openInspector(server, { history });
    const client = await connect(server);
    for (let count = 0; count < 40; count += 1) await client.modern('tools/call', { name: 'echo', arguments: {} });
    const text = await (await viewerOf(inspector.url).get('/api/recording')).text();
    const model = new Model();
    for (const frame of readRecording(text).frames) model.take(frame);
    assert.is(lastCalls(model, LIVE, 200).length, history ? 40 : 0);
    await inspector.close();
    await server.close();
  });
