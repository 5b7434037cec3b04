/** `troupe inspect`: the page shows the server of a client, and calls it through this client. */
import * as assert from 'uvu/assert';
import { openClient } from '../../src/client/open-client.ts';
import { systemClock } from '../../src/core/kernel/clock.ts';
import { ViewerQuestions } from '../../src/inspector/calls/viewer-questions.ts';
import { ClientListing } from '../../src/inspector/catalogue/client-listing.ts';
import type { CatalogueFrame, ServerCatalogue } from '../../src/inspector/frames.ts';
import { openInspectorOn } from '../../src/inspector/open-inspector.ts';
import { readRecording } from '../../src/inspector/stream/recording.ts';
import { reachable } from '../client/fixture.ts';
import { suite } from '../harness/door.ts';
import { viewerOf } from './viewing.ts';

const test = suite('inspector: the server of a client');

async function inspected() {
  const fixture = await reachable();
  const questions = new ViewerQuestions(systemClock);
  const client = await openClient(fixture.url, questions.answerers());
  const listing = new ClientListing(client);
  await listing.refresh();
  const inspector = await openInspectorOn({ client, questions, listing });
  const viewer = viewerOf(inspector.url);
  const catalogue = async (): Promise<ServerCatalogue> => {
    const frame: CatalogueFrame = JSON.parse(await (await viewer.get('/api/catalogue')).text());
    return frame.catalogue;
  };
  const close = async (): Promise<void> => {
    await inspector.close();
    await client.close();
    await fixture.close();
  };
  return { fixture, client, listing, viewer, catalogue, close };
}

const names = (elements: readonly { readonly name: string }[]): readonly string[] => elements.map(({ name }) => name);

test('shows everything that the server lists, with its definitions, and nothing of Troupe', async () => {
  const { catalogue, close } = await inspected();
  const shown = await catalogue();
  assert.equal(names(shown.tools), ['add', 'ask', 'count', 'wait']);
  assert.equal(names(shown.templates), ['notes://{id}']);
  assert.equal(names(shown.prompts), ['review']);
  assert.is(Object(shown.server).name, 'fixture');
  assert.equal(Object.keys(Object(Object(shown.tools[0]?.definition).inputSchema).properties), ['a', 'b']);
  assert.equal([shown.machines, shown.limits, shown.revisions], [[], {}, ['2026-07-28']]);
  await close();
});

test('S-52 calls tools, reads resources and gets prompts through the client, and a viewer answers its questions', async () => {
  const { viewer, client, close } = await inspected();
  const { tool, start, ended, answer, text, result } = viewer;
  const add = await tool('add', { a: 2, b: 3 });
  assert.is((await ended(add)).status, 'done');
  assert.equal((await result(add)).structured, { sum: 5 });
  const ask = await tool('ask');
  await answer({ action: 'accept', content: { size: 'small', gift: true } }, 'form');
  await ended(ask);
  assert.is(await text(ask), 'small true');
  const note = await start({ kind: 'template', template: 'notes://{id}', variables: { id: '7' } });
  assert.is((await ended(note)).status, 'done');
  assert.match(JSON.stringify((await result(note)).raw), 'note 7');
  const review = await start({ kind: 'prompt', name: 'review', arguments: { code: 'x = 1' } });
  assert.is((await ended(review)).status, 'done');
  // Other options of a caller open no second connection.
  await ended(await tool('add', { a: 1, b: 1 }, { revision: '2025-11-25', principal: 'ada' }));
  assert.is((await viewer.state()).sessions.length, 1);
  const waits = await tool('wait');
  assert.equal(await viewer.post({ action: 'cancel', call: waits }), [200, 'cancelled']);
  assert.is((await ended(waits)).status, 'cancelled');
  assert.is(client.state, 'ready');
  await close();
});

test('a changed list is shown after the next listing', async () => {
  const { fixture, listing, catalogue, close } = await inspected();
  fixture.server.tool('later', {}, () => 'now');
  assert.not.ok(names((await catalogue()).tools).includes('later'));
  await listing.refresh();
  assert.ok(names((await catalogue()).tools).includes('later'));
  await close();
});

test('a recording says that the server is another program', async () => {
  const { viewer, close } = await inspected();
  const { frames } = readRecording(await (await viewer.get('/api/recording')).text());
  const [hello, offered] = frames;
  assert.ok(hello?.type === 'hello' && hello.remote === true);
  assert.is(offered?.type, 'catalogue');
  await close();
});
