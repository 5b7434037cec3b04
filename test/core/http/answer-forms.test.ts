/** The form of a modern answer: one JSON body or an event stream, as the client accepts, the author pins and time passes. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { answered, call } from './modern.ts';
import { serving } from './session.ts';
import { type Answer, textIn } from './support.ts';

const test = suite('the form of an answer');

const token = { progressToken: 1 };

/** Whether an answer is one JSON body, or the number of notifications that its stream brings before the result. */
async function formOf(answer: Answer): Promise<'json' | number> {
  assert.is(answer.status, 200);
  const type = answer.headers['content-type'] ?? '';
  if (type.startsWith('application/json')) {
    assert.ok((await answer.json()).result);
    return 'json';
  }
  assert.match(type, /^text\/event-stream\b/);
  const messages = (await answer.events.rest()).map(({ data = '' }) => JSON.parse(data));
  assert.ok(messages.at(-1)?.result);
  return messages.length - 1;
}

/** What a handler that is silent, and one that reports progress once, are answered with. */
const FORMS: readonly (readonly [accept: string | undefined, silent: 'json' | number, speaks: 'json' | number])[] = [
  ['application/json, text/event-stream', 'json', 1],
  ['text/event-stream, application/json;q=0.1', 'json', 1],
  [undefined, 'json', 1],
  ['*/*', 'json', 1],
  ['application/json', 'json', 'json'],
  ['application/*', 'json', 'json'],
  ['text/event-stream;q=0, */*', 'json', 'json'],
  ['text/event-stream', 0, 1],
  ['text/*;q=0.5', 0, 1],
];

test('follows what the client accepts', () =>
  serving(async (stage) => {
    for (const [accept, silent, speaks] of FORMS) {
      const options = { headers: { accept }, meta: token };
      const echo = await call(stage.url, 'echo', { text: 'x' }, options);
      assert.is(await formOf(echo), silent, `silent, to Accept: ${accept}`);
      assert.is(
        await formOf(await call(stage.url, 'count', { to: 1 }, options)),
        speaks,
        `speaks, to Accept: ${accept}`,
      );
    }
  }));

test('is JSON for whatever the handler says, where the author pins that', () =>
  serving(
    async (stage) => {
      assert.is(await formOf(await call(stage.url, 'count', { to: 5 }, { meta: token })), 'json');
    },
    { response: 'json' },
  ));

test('is a stream for a handler that says nothing, where the author pins that', () =>
  serving(
    async (stage) => {
      assert.is(await formOf(await call(stage.url, 'echo', { text: 'x' })), 0);
    },
    { response: 'sse' },
  ));

test('becomes a stream that is kept alive once an answer has taken long', () =>
  serving(
    async (stage) => {
      const asked = call(stage.url, 'held', { key: 'long' });
      const { finish } = await stage.held('long');
      await stage.clock.advance(1_000);
      const answer = await asked;
      assert.match(answer.headers['content-type'] ?? '', /^text\/event-stream\b/);
      for (const nth of [1, 2]) {
        await stage.clock.advance(1_000);
        await answer.events.comment(nth);
      }
      finish('at last');
      const [event, ...more] = await answer.events.rest();
      assert.is(textIn(JSON.parse(event?.data ?? '')), 'at last');
      assert.equal(more, []);
    },
    { keepAliveMs: 1_000 },
  ));

test('is kept alive between two things that its handler says, too', () =>
  serving(
    async (stage) => {
      const asked = call(stage.url, 'held', { key: 'talks' }, { meta: token });
      const { ctx, finish } = await stage.held('talks');
      ctx.progress(1);
      const answer = await asked;
      await answer.events.message();
      await stage.clock.advance(1_000);
      await answer.events.comment(1);
      ctx.progress(2);
      assert.is((await answer.events.message()).params?.progress, 2);
      finish();
      await answer.events.rest();
    },
    { keepAliveMs: 1_000 },
  ));

test('stays JSON for as long as it takes, to a client that takes nothing else', () =>
  serving(
    async (stage) => {
      const asked = call(stage.url, 'held', { key: 'json' }, { headers: { accept: 'application/json' } });
      const { finish } = await stage.held('json');
      await stage.clock.advance(30_000);
      finish('whole');
      assert.equal((await answered(await asked)).content, [{ type: 'text', text: 'whole' }]);
    },
    { keepAliveMs: 1_000 },
  ));
