/** What a listener does without is not even recorded, and costs what it costs while nobody listens; who lives, in which state, is told all the same. */
import * as assert from 'uvu/assert';
import type { InspectionRecord } from '../../src/core/kernel/inspection/records.ts';
import { INTERNALS } from '../../src/features/server/internals.ts';
import { createServer } from '../../src/index.ts';
import { suite } from '../harness/door.ts';
import { inSession } from '../harness/memory.ts';

const test = suite('inspector: what is left out');

async function listened(leavesOut?: (seq: number) => boolean) {
  const server = createServer({ name: 'left-out', version: '1.0.0' });
  server.tool('echo', {}, () => 'echo');
  server.tool('later', {}, async () => {
    await new Promise((done) => setImmediate(done));
    return 'later';
  });
  server.tool('says', {}, async (_, ctx) => {
    await new Promise((done) => setImmediate(done));
    ctx.log.info('later');
    return 'says';
  });
  const client = await inSession(server);
  const { inspection } = server[INTERNALS];
  const heard: InspectionRecord[] = [];
  const stop = inspection.listen((record) => void heard.push(record), leavesOut);
  const begin = heard.length;
  const types = (): string[] => [...new Set(heard.slice(begin).map(({ type }) => type))].sort();
  return { server, client, inspection, heard, begin, types, stop };
}

test('of an exchange that is left out there is its request, and no mail', async () => {
  const { server, client, types, heard, begin } = await listened((seq) => seq > 0);
  await client.call('echo');
  await client.call('later');
  assert.equal(types(), ['wire']);
  assert.is(heard.length - begin, 2);
  await client.call('says');
  const told = heard.slice(begin);
  assert.ok(types().includes('mail'));
  // What a handler says of its own accord, later, is heard: with the request as its cause, so that it can be left out then.
  for (const record of told) if (record.type === 'mail') assert.ok(record.cause > 0);
  await server.close();
});

test('its later states are sent while catching up, once', async () => {
  const { server, client, inspection, heard, begin } = await listened((seq) => seq > 0);
  const later = (): Promise<unknown> => client.send('tools/call', { name: 'later' });
  const calls = [later(), later()];
  inspection.catchUp();
  const states = (): string[] =>
    heard
      .slice(begin)
      .flatMap((record) => (record.type === 'state' ? [`${record.actor.split('/')[0]} ${record.state}`] : []));
  assert.equal(states().sort(), ['executor running (2)', 'requests admitting (2)']);
  inspection.catchUp();
  assert.is(states().length, 2);
  await Promise.all(calls);
  inspection.catchUp();
  assert.equal(states().slice(2).sort(), ['executor idle', 'requests admitting (0)']);
  await server.close();
});

test('everything is recorded for both listeners if one of them wants everything', async () => {
  const { server, client, inspection, types } = await listened((seq) => seq > 0);
  const stop = inspection.listen(() => {});
  inspection.listen(
    () => {},
    (seq) => seq > 0,
  );
  await client.call('echo');
  assert.ok(types().includes('mail'));
  stop();
  assert.is(inspection.full, true);
  await server.close();
});

test('an omission ends with its turn: later records are complete', async () => {
  let out = true;
  const { server, client, inspection, heard, stop } = await listened((seq) => out && seq > 0);
  await client.call('echo');
  out = false;
  const before = heard.length;
  await client.call('echo');
  const mail = heard.slice(before).filter(({ type }) => type === 'mail');
  assert.ok(mail.length >= 5);
  stop();
  assert.equal([inspection.on, inspection.full], [false, false]);
  await server.close();
});
