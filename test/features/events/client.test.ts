/** The client's events: by stream and by polls the same, once each, over lost streams and restarts, and with its gaps. */
import * as assert from 'uvu/assert';
import { connect, settled } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { rejection } from '../../harness/results.ts';
import { eventStage, noted, PAYLOAD } from './support.ts';

const test = suite('events of a client');

for (const via of ['stream', 'poll'] as const)
  test(`${via}: reads each event once, keeps a cursor, and continues there`, async () => {
    const { server, note, clock } = noted();
    const client = await connect(server, { clock });
    assert.equal(
      (await client.eventTypes()).map(({ name }) => name),
      ['note'],
    );
    const events = client.events('note', {}, { via });
    await settled();
    for (const id of ['a', 'b', 'c']) await note.emit({ n: 1 }, { id });
    await clock.advance(31_000);
    const read: unknown[] = [];
    let cursor: string | undefined;
    for (const _ of ['a', 'b', 'c']) {
      const { value } = await events.next();
      read.push(value.gap ? 'gap' : value.id);
      ({ cursor } = value);
    }
    assert.equal(read, ['a', 'b', 'c']);
    await events.return();
    await note.emit({ n: 2 }, { id: 'd' });
    const later = client.events('note', {}, { via, since: cursor });
    const { value } = await later.next();
    assert.is(value.gap ? 'gap' : value.id, 'd');
    await later.return();
    await server.close();
  });

test('a reader that is slower than the server loses nothing', async () => {
  const { server, note, clock } = noted();
  const client = await connect(server, { clock });
  const events = client.events('note');
  await settled();
  await Promise.all(Array.from({ length: 2_500 }, (_, n) => note.emit({ n })));
  for (let n = 0; n < 2_500; n += 1) {
    const next = events.next();
    if (n % 100 === 0) await clock.advance(10);
    const { value } = await next;
    assert.is(value.gap ? 'gap' : value.data.n, n);
  }
  await events.return();
  await server.close();
});

test('a type that is unknown or goes away is the error of the loop', async () => {
  const { server } = eventStage();
  server.event('other', { description: 'd', payload: PAYLOAD });
  const note = server.event('note', { description: 'd', payload: PAYLOAD });
  const client = await connect(server);
  assert.match((await rejection(client.events('missing').next())).message, 'Unknown event: missing');
  const events = client.events('note');
  await settled();
  const next = events.next();
  note.remove();
  assert.match((await rejection(next)).message, 'the event type "note" is gone');
  await server.close();
});

test('a session is read by polls', async () => {
  const { server, note, clock } = noted();
  const client = await connect(server, { clock });
  await client.initialize('2025-06-18');
  const events = client.events('note');
  await settled();
  await note.emit({ n: 1 }, { id: 'a' });
  await clock.advance(31_000);
  const { value } = await events.next();
  assert.is(value.gap ? 'gap' : value.id, 'a');
  await events.return();
  await server.close();
});
