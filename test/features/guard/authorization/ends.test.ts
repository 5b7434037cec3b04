/** A stream ends a minute after the token that opened it; the next token of its principal continues without a gap (G-07). */
import * as assert from 'uvu/assert';
import type { HttpOptions } from '../../../../src/index.ts';
import { settled } from '../../../../src/testing/testing.ts';
import { modern } from '../../../core/http/modern.ts';
import { change, serving, watch } from '../../../core/http/session.ts';
import { ask, openSession, type SseEvent, type Stage } from '../../../core/http/support.ts';
import { suite } from '../../../harness/door.ts';

const test = suite('streams and their tokens');

const FIVE_MINUTES = 300_000;
/** The date at which the simulated clock begins. */
const START = Date.parse('2026-01-01T00:00:00.000Z');

/** The header is the end of a token, in milliseconds after the start, and `late` a token without an end. */
const authenticate: NonNullable<HttpOptions['authenticate']> = ({ header }) => {
  const end = header('authorization') ?? '';
  return end === 'late' ? { principal: 'ada' } : { principal: 'ada', expiresAt: START + Number(end) };
};
const FIRST = { authorization: String(FIVE_MINUTES) };
const NEXT = { authorization: String(10 * FIVE_MINUTES) };

/** Moves the clock in steps of ten seconds: streams are looked after once a second. */
async function pass({ clock }: Stage, ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += 10_000) await clock.advance(Math.min(10_000, ms - passed));
  await settled();
}

const withData = (events: readonly SseEvent[]): readonly string[] => events.flatMap(({ data }) => (data ? [data] : []));

for (const resumes of [false, true])
  test(`G-07: a GET stream ends, and its next reader receives what was sent meanwhile${resumes ? ' (resumed)' : ''}`, () =>
    serving(
      async (stage) => {
        const { url } = stage;
        const session = await openSession(url, '2025-11-25', FIRST);
        await watch(session, 'notes://a');
        const stream = await ask(url, { method: 'GET', headers: { ...session.headers, ...FIRST } });
        const other = await ask(url, { method: 'GET', headers: { ...session.headers, ...NEXT } });
        const primed = await stream.events.next();
        await pass(stage, FIVE_MINUTES + 59_000);
        assert.is(stream.events.over, undefined, 'it is open for a minute after the end of its token');
        await pass(stage, 2_000);
        const rest = await stream.events.rest();
        assert.is(rest.at(-1)?.retry, '1000');
        // The second GET was a reserve: its token is valid, and it takes over.
        await change(stage, 'notes://a');
        const { data = '' } = await next(other.events.next.bind(other.events));
        assert.match(data, /notes:\/\/a/);
        other.cut();
        const again = await ask(url, {
          method: 'GET',
          headers: { ...session.headers, ...NEXT, ...(resumes ? { 'last-event-id': primed.id } : {}) },
        });
        assert.is(again.status, 200);
        if (resumes) {
          const replayed = await next(again.events.next.bind(again.events));
          assert.match(String(replayed.data), /notes:\/\/a/);
        }
        again.cut();
        assert.equal(withData(rest), []);
      },
      { authenticate },
    ));

/** The next event with data. */
async function next(take: () => Promise<SseEvent>): Promise<SseEvent> {
  for (;;) {
    const event = await take();
    if (event.data) return event;
  }
}

test('G-07: a subscription ends with the token that opened it, and a call does not', () =>
  serving(
    async (stage) => {
      const { url, held } = stage;
      const params = { notifications: { resourceSubscriptions: ['notes://a'] } };
      const listening = await ask(url, modern('subscriptions/listen', { params, headers: FIRST }));
      const endless = await ask(
        url,
        modern('subscriptions/listen', { id: 2, params, headers: { authorization: 'late' } }),
      );
      const calling = ask(
        url,
        modern('tools/call', { params: { name: 'held', arguments: { key: 'a' } }, headers: FIRST }),
      );
      const call = await held('a');
      await pass(stage, FIVE_MINUTES + 59_000);
      assert.is(listening.events.over, undefined);
      await pass(stage, 2_000);
      const events = await listening.events.rest();
      assert.is(events.at(-1)?.retry, '1000');
      assert.is(endless.events.over, undefined);
      await change(stage, 'notes://a');
      assert.match(String((await endless.events.next()).data), /acknowledged/);
      assert.match(String((await endless.events.next()).data), /notes:\/\/a/);
      call.finish();
      assert.match(await (await calling).text(), /done/);
      endless.cut();
    },
    { authenticate, server: { limits: { timeoutMs: 1_000_000, maxTimeoutMs: 1_000_000 } } },
  ));

test('a stream of 2024-11-05 lives as long as the tokens with which its client posts', () =>
  serving(
    async (stage) => {
      const { url } = stage;
      const stream = await ask(url, { method: 'GET', headers: FIRST });
      const { data = '' } = await stream.events.next();
      const post = async (headers: { readonly authorization: string }): Promise<number> =>
        (await ask(new URL(data, url).href, { body: { jsonrpc: '2.0', id: 1, method: 'ping' }, headers })).status;
      assert.is(await post(NEXT), 202);
      await pass(stage, FIVE_MINUTES + 70_000);
      assert.is(stream.events.over, undefined);
      await pass(stage, 9 * FIVE_MINUTES);
      await stream.events.rest();
      assert.is(await post(NEXT), 404);
    },
    { authenticate },
  ));
