/** The polls of the page: one read at a time, each with a deadline, the newest answer last, and none while the page is hidden. */
import * as assert from 'uvu/assert';
import { ask } from '../../../inspector/src/store/api.ts';
import { poll } from '../../../inspector/src/store/poll.ts';
import { suite } from '../../harness/door.ts';
import { elapse, until } from '../../harness/wait.ts';

const test = suite('polls of the page');

/** A read that a test answers. */
function reads() {
  const open: { answer(): void; fail(): void }[] = [];
  let begun = 0;
  return {
    get begun() {
      return begun;
    },
    read: () =>
      new Promise<void>((resolve, reject) => {
        begun += 1;
        open.push({ answer: resolve, fail: () => reject(new Error('lost')) });
      }),
    answer: () => open.shift()?.answer(),
    fail: () => open.shift()?.fail(),
  };
}

/** The part of a document that a poll reads. */
const page = { hidden: false };
const before = Reflect.get(globalThis, 'document');
test.before(() => {
  Reflect.set(globalThis, 'document', page);
});
test.after(() => {
  if (before === undefined) Reflect.deleteProperty(globalThis, 'document');
  else Reflect.set(globalThis, 'document', before);
});

test('the next read waits for the answer to the last one, also after a failure', async () => {
  const server = reads();
  const end = poll(server.read, 1).begin();
  await until(() => server.begun === 1);
  await elapse(20, 'a second read');
  assert.is(server.begun, 1, 'a slow server gets no second read');
  server.fail();
  await until(() => server.begun === 2);
  end();
  server.answer();
});

test('a look reads after the read that is under way: its answer is newer', async () => {
  const server = reads();
  const { look } = poll(server.read, 1);
  const states: string[] = [];
  const first = look().then(() => states.push('first'));
  const second = look().then(() => states.push('second'));
  await until(() => server.begun === 1);
  server.answer();
  await first;
  await until(() => server.begun === 2);
  assert.equal(states, ['first']);
  server.answer();
  await second;
});

test('a hidden page reads nothing', async () => {
  const server = reads();
  page.hidden = true;
  const end = poll(server.read, 1).begin();
  await elapse(20, 'a second read');
  assert.is(server.begun, 0);
  page.hidden = false;
  await until(() => server.begun === 1);
  end();
  server.answer();
});

test('a read that the server does not answer ends at its deadline, and the next one follows; an act has no deadline', async () => {
  const deadlines: AbortController[] = [];
  const signals: (AbortSignal | null | undefined)[] = [];
  const { fetch } = globalThis;
  const { timeout } = AbortSignal;
  Reflect.set(AbortSignal, 'timeout', () => {
    const deadline = new AbortController();
    deadlines.push(deadline);
    return deadline.signal;
  });
  Reflect.set(globalThis, 'fetch', (_: string, { signal }: RequestInit) => {
    signals.push(signal);
    return new Promise((_done, fail) => signal?.addEventListener('abort', () => fail(signal.reason)));
  });
  try {
    const end = poll(() => ask('api/traffic'), 1).begin();
    await until(() => deadlines.length === 1);
    deadlines[0]?.abort();
    await until(() => deadlines.length === 2);
    end();
    deadlines[1]?.abort();
    void ask('api/control', { body: {} });
    assert.is(signals.at(-1), null);
  } finally {
    Reflect.set(AbortSignal, 'timeout', timeout);
    Reflect.set(globalThis, 'fetch', fetch);
  }
});
