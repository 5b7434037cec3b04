/** A list so long that its bytes are kept: letter for letter what a stream of events says, for every id, until the catalogue changes. */
import * as assert from 'uvu/assert';
import type { Server } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { send } from './modern.ts';
import { serving } from './session.ts';
import { openSession } from './support.ts';

const test = suite('long lists');

const COUNT = 400;
/** Letters of one to four bytes, and what JSON escapes. */
const DESCRIPTION = 'Añade « 木 » to the 🎭, "quoted" \\ and\nbroken';

function offerMany(server: Server): void {
  for (let at = 0; at < COUNT; at += 1) server.tool(`long_${at}`, { description: DESCRIPTION }, () => 'done');
}

const IDS = [1, 0, -7, 'a', 'with "quotes" and 木', ''] as const;

test('are the same as one body and as events, whatever the id', () =>
  serving(
    async ({ url }) => {
      for (const id of IDS) {
        const whole = await send(url, 'tools/list', { id });
        const body = await whole.text();
        assert.is(whole.headers['content-length'], String(Buffer.byteLength(body)));
        assert.ok(body.length > 16_384, 'the list is long');
        const { result, id: answered } = JSON.parse(body);
        assert.is(answered, id);
        assert.is(result.tools.length, COUNT + 5);
        assert.ok(result.tools.some(({ description }: { description?: string }) => description === DESCRIPTION));
        const streamed = await send(url, 'tools/list', { id, headers: { accept: 'text/event-stream' } });
        const events = (await streamed.events.rest()).flatMap(({ data }) => (data ? [data] : []));
        assert.is(events.join(), body);
      }
    },
    {},
    offerMany,
  ));

test('have the form of each revision, also after a change', () =>
  serving(
    async ({ url, server }) => {
      const session = await openSession(url, '2025-03-26');
      const listed = async (): Promise<string> =>
        (await session.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).text();
      const [modern, legacy] = [await (await send(url, 'tools/list')).text(), await listed()];
      assert.match(modern, '"ttlMs"');
      assert.not.match(legacy, '"ttlMs"');
      assert.is(await listed(), legacy);
      server.tool('later', { description: 'came later' }, () => 'done');
      assert.match(await listed(), 'came later');
      assert.match(await (await send(url, 'tools/list')).text(), 'came later');
    },
    {},
    offerMany,
  ));
