/**
 * The world around a server that is killed: a sender of webhooks, callers that emit, subscribers that poll, stream and receive webhooks.
 * Each repeats what was not acknowledged. At the end, everything that was acknowledged has happened, in one order, and once in the state.
 */
import { createHmac } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { type Client, ClientError, connect } from 'troupe/client';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { type Receiver, SECRET } from '../../features/events/delivery/support.ts';
import { conclusive } from '../../harness/door.ts';
import { elapse, until } from '../../harness/wait.ts';
import { Patience } from './patience.ts';

export interface ReachedOptions {
  /** The endpoint, behind which processes are killed. */
  readonly url: string;
  /** The secret of the webhook. */
  readonly secret: string;
  /** The file to which handlers write. */
  readonly ledger: string;
  /** The receiver of events. It answers challenges as well. */
  readonly hook: Receiver;
  readonly kills: number;
  /** Kills a process, and resolves when the next one serves. */
  kill(count: number): Promise<void>;
}

/** Milliseconds between the acts that a process must have acknowledged and its kill, and between two acts of one of the world. */
const PAUSE_MS = 300;
const ACT_MS = 60;
/** Milliseconds for one act, over as many kills as there are. */
const ACT_HANG_MS = 600_000;
const SLOT_MS = 1_000;
/** The first wait for an acknowledgement. */
const ANSWER_MS = 5_000;

const Record = z.discriminatedUnion('of', [
  z.object({ of: z.literal('hook'), n: z.number(), key: z.string(), attempt: z.number() }),
  z.object({
    of: z.literal('slot'),
    scheduledFor: z.string(),
    missed: z.number(),
    key: z.string(),
    attempt: z.number(),
  }),
]);
const Tally = z.object({
  view: z.object({
    numbers: z.array(z.number()),
    slots: z.array(z.object({ scheduledFor: z.string(), missed: z.number() })),
  }),
});
const Place = z.object({ cursor: z.string() });

/** Repeats an act until it is acknowledged. @param act gets the milliseconds to wait for its acknowledgement @returns its result */
async function acknowledged<T>(act: (ms: number) => Promise<T>, what: string): Promise<T> {
  const patience = new Patience(ANSWER_MS);
  let result: { readonly value: T } | undefined;
  let last = '';
  await until(
    async () => {
      try {
        result = { value: await act(patience.ms) };
      } catch (error) {
        last = String(error);
        patience.failed(error);
        const wait = error instanceof ClientError ? error.retryAfterMs : undefined;
        await elapse(wait ?? 0, 'the server says when it takes the act');
      }
      return result !== undefined;
    },
    () => `${what} to be acknowledged: ${last}`,
    ACT_HANG_MS,
  );
  if (!result) throw new Error('expected a result after the wait for it');
  return result.value;
}

const dedupe = <T>(list: readonly T[]): readonly T[] => [...new Set(list)];

/** Each slot is one of a dense series: it ran, or the next one says that it was missed. */
function checkSlots(slots: readonly { readonly scheduledFor: string; readonly missed: number }[], what: string): void {
  for (const [place, { scheduledFor, missed }] of slots.entries()) {
    const before = slots[place - 1];
    if (!before) continue;
    const ms = Date.parse(scheduledFor) - Date.parse(before.scheduledFor);
    assert.is(
      ms,
      SLOT_MS * (missed + 1),
      `${what}: ${before.scheduledFor}, then ${scheduledFor} with ${missed} missed`,
    );
  }
}

/** Plays the world while processes are killed, and checks what it has been told. @returns a line of figures */
export async function reach({ url, secret, ledger, hook, kills, kill }: ReachedOptions): Promise<string> {
  const origin = url.replace('/mcp', '');
  const clientOf = (principal: string): Promise<Client> =>
    connect({ url, headers: { authorization: principal } }, { eras: 'modern', log() {} });
  const [caller, poller, streamer, owner] = await Promise.all(['caller', 'poller', 'streamer', 'owner'].map(clientOf));
  assert.ok(caller && poller && streamer && owner);
  const call = (client: Client, name: string, args: JsonObject) =>
    acknowledged(async (timeoutMs) => {
      const result = await client.call(name, args, { timeoutMs });
      if (result.isError) throw new Error(JSON.stringify(result.content));
      return result;
    }, name);

  // The subscribers begin before the first event.
  const begin = async (client: Client): Promise<string> => {
    const params = { name: 'note', arguments: {}, cursor: null };
    return Place.parse(await acknowledged(() => client.request('events/poll', params), 'a poll')).cursor;
  };
  const read = { poll: [] as string[], stream: [] as string[] };
  const faults: unknown[] = [];
  const follow = async (client: Client, via: 'poll' | 'stream', since: string): Promise<void> => {
    for await (const event of client.events('note', {}, { via, since })) {
      if (event.gap) throw new Error(`a gap by ${via}`);
      read[via].push(event.id);
    }
  };
  const places = [await begin(poller), await begin(streamer)];
  const following = [follow(poller, 'poll', places[0] ?? ''), follow(streamer, 'stream', places[1] ?? '')].map((loop) =>
    loop.catch((error: unknown) => void faults.push(error)),
  );
  const subscribe = (path: string, of?: string) => {
    const delivery = { mode: 'webhook', url: `${hook.origin}/${path}`, secret: SECRET };
    const params = { name: 'note', arguments: of === undefined ? {} : { of }, delivery };
    return acknowledged(() => owner.request('events/subscribe', params), 'a subscription');
  };
  await subscribe('all');

  let working = true;
  const repeatedly = async (act: (count: number) => Promise<unknown>, pauseMs = ACT_MS): Promise<void> => {
    for (let count = 1; working; count += 1) {
      await act(count);
      await elapse(pauseMs, 'the world does something else');
    }
  };
  const delivered: number[] = [];
  const emitted: number[] = [];
  const deliver = async (n: number): Promise<void> => {
    const body = JSON.stringify({ n });
    const signature = createHmac('sha256', secret).update(body).digest('hex');
    const headers = {
      'content-type': 'application/json',
      'x-github-event': 'push',
      'x-hub-signature-256': `sha256=${signature}`,
    };
    await acknowledged(async (ms) => {
      const signal = AbortSignal.timeout(ms);
      const { status } = await fetch(`${origin}/hooks/github`, { method: 'POST', body, headers, signal });
      if (status !== 200) throw new Error(`the webhook answered ${status}`);
    }, `delivery ${n}`);
    delivered.push(n);
  };
  // A subscription whose challenge is on its way while its process is killed: it is verified, or its client asks again.
  let verified = 0;
  const acts = [
    repeatedly(deliver),
    repeatedly(async (n) => {
      await call(caller, 'emit', { n });
      emitted.push(n);
    }),
    repeatedly(async (n) => {
      await subscribe(`late/${n}`, 'none');
      verified += 1;
    }, 15_000),
  ].map((act) =>
    act.catch((error: unknown) => {
      faults.push(error);
      working = false;
    }),
  );
  await call(caller, 'tally_count', { tally: 'all', n: 0, idempotencyKey: 'first' });
  for (let count = 1; count <= kills && working; count += 1) {
    // A process that is killed before it has served anything proves nothing, and a busy machine takes long for that.
    const [deliveries, emits] = [delivered.length, emitted.length];
    await until(
      () => !working || (delivered.length > deliveries && emitted.length > emits),
      'a delivery and an emit to be acknowledged',
    );
    await elapse(PAUSE_MS, 'the processes serve');
    await kill(count);
  }
  working = false;
  await Promise.all(acts);
  assert.equal(faults.map(String), []);

  const ids = [...delivered.map((n) => `h${n}`), ...emitted.map((n) => `t${n}`)];
  const posted = (): readonly string[] => hook.posts.filter(({ body }) => body.type === undefined).map(({ id }) => id);
  for (const [way, list] of [
    ['poll', () => read.poll],
    ['stream', () => read.stream],
    ['webhook', posted],
  ] as const)
    await until(
      () => dedupe(list()).length >= ids.length,
      () => {
        const missing = read.poll.flatMap((id, place) => (list().includes(id) ? [] : [`${id} at ${place}`]));
        return `${dedupe(list()).length} of ${ids.length} events by ${way}, without ${missing.join(', ')} ${String(faults)}`;
      },
    );
  let view: z.infer<typeof Tally>['view'] = { numbers: [], slots: [] };
  await until(
    async () => {
      ({ view } = Tally.parse((await call(caller, 'tally_get', { tally: 'all' })).structuredContent));
      return view.numbers.length >= delivered.length + 1;
    },
    () => `${view.numbers.length} of ${delivered.length + 1} numbers`,
  );
  const records = existsSync(ledger)
    ? readFileSync(ledger, 'utf8')
        .trim()
        .split('\n')
        .map((line) => Record.parse(JSON.parse(line)))
    : [];
  const hooks = records.filter((record) => record.of === 'hook');
  const slots = records.filter((record) => record.of === 'slot');
  conclusive(() => {
    // One order for all subscribers, and each event once for those who leave out repeats.
    assert.equal(dedupe(read.poll), read.poll);
    assert.equal(read.stream, read.poll);
    assert.equal(dedupe(posted()), read.poll);
    assert.equal([...read.poll].sort(), [...ids].sort());
    // Each delivery was handled, under one key, and is once in the state.
    assert.equal(
      dedupe(hooks.map(({ n }) => n)).toSorted((a, b) => a - b),
      delivered,
    );
    assert.is(dedupe(hooks.map(({ n, key }) => `${n} ${key}`)).length, delivered.length);
    assert.equal(
      [...view.numbers].sort((a, b) => a - b),
      [0, ...delivered],
    );
    // Each slot changed the state once; each slot of the server ran, or the next one counts it. One that runs again says so.
    checkSlots(view.slots, 'the slots of the instance');
    const first = slots.filter(({ attempt }) => attempt === 1);
    assert.is(dedupe(first.map(({ key }) => key)).length, first.length, 'a slot began twice as its first attempt');
    const byKey = new Map(slots.map((slot) => [slot.key, slot]));
    checkSlots(
      [...byKey.values()].toSorted((a, b) => a.scheduledFor.localeCompare(b.scheduledFor)),
      'the slots of the server',
    );
  });
  await Promise.all([caller, poller, streamer, owner].map((client) => client.close()));
  await Promise.all(following);
  const repeats = hook.posts.length - dedupe(posted()).length;
  return (
    `${kills} kills: ${delivered.length} deliveries, handled ${hooks.length} times; ${emitted.length} emits; ` +
    `${repeats} of ${hook.posts.length} POSTs were repeats; ${verified} subscriptions verified meanwhile; ` +
    `${view.slots.length} slots of the instance, ${slots.length} runs of ${new Set(slots.map(({ key }) => key)).size} slots of the server`
  );
}
