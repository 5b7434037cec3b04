/** The watch of a view: it waits at the server, falls back to reads, and rests while no one looks. */
import type { AppBridge } from '@modelcontextprotocol/ext-apps/app-bridge';
import { settled } from 'troupe/testing';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { type Bridged, bridged } from './bridged.ts';

const test = suite('the watch of a view');
const URI = 'troupe://order/h1';

/** Everything that a watch yields, until it ends. */
function collected(view: Bridged['view'], signal?: AbortSignal) {
  const values: unknown[] = [];
  const watching = (async () => {
    for await (const value of view.watch(URI, signal ? { signal } : {})) values.push(value);
  })();
  const ended = watching.then(
    () => 'ended',
    (error: Error) => error.message,
  );
  return { values, ended, caught: watching.catch((error: unknown) => error) };
}

interface Wait {
  readonly args: Record<string, unknown>;
  answer(content: object): Promise<void>;
  fail(): Promise<void>;
}

/** A host that proxies `troupe_watch`: each wait is answered by the test. */
function waiting(host: AppBridge): Wait[] {
  const waits: Wait[] = [];
  host.oncalltool = ({ name, arguments: args = {} }) => {
    assert.is(name, 'troupe_watch');
    return new Promise((resolve, reject) => {
      waits.push({
        args,
        answer: async (structuredContent) => {
          resolve({ content: [], structuredContent } as never);
          await settled();
        },
        fail: async () => {
          reject(new Error('the connection is lost'));
          await settled();
        },
      });
    });
  };
  return waits;
}

async function watched() {
  let waits: Wait[] = [];
  const parts = await bridged({
    prepare: (host) => {
      waits = waiting(host);
    },
  });
  return { ...parts, waits };
}

test('a watch asks for what differs from the last version, at once after each answer', async () => {
  const { view, waits } = await watched();
  const { values, ended } = collected(view);
  await settled();
  assert.equal(
    waits.map(({ args }) => args),
    [{ uri: URI, waitMs: 25_000 }],
  );
  await waits[0]?.answer({ version: 1, changed: true, state: 'cart' });
  await waits[1]?.answer({ version: 1, changed: false });
  await waits[2]?.answer({ version: 2, changed: true, state: 'paid' });
  assert.equal(
    waits.map(({ args }) => args.version),
    [undefined, 1, 1, 2],
  );
  assert.equal(values, [
    { version: 1, state: 'cart' },
    { version: 2, state: 'paid' },
  ]);
  view.close();
  assert.is(await ended, 'ended');
});

test('no request leaves while the view is hidden, and one does as soon as it is seen', async () => {
  const { view, waits, window } = await watched();
  const { values } = collected(view);
  await settled();
  window.hide();
  await waits[0]?.answer({ version: 1, changed: true, state: 'cart' });
  await window.clock.advance(3_600_000);
  assert.is(waits.length, 1);
  assert.is(values.length, 1);
  window.show();
  await settled();
  assert.is(waits.length, 2);
  view.close();
});

test('after 10 minutes without a change a watch asks once a minute, until a person turns to it', async () => {
  const { view, waits, window } = await watched();
  collected(view);
  await settled();
  for (let answered = 0; answered < 24; answered += 1) {
    await window.clock.advance(25_000);
    await waits[answered]?.answer({ version: 1, changed: false });
  }
  // 600 s have passed: the 25th wait began at once, and the 26th follows it after a minute.
  assert.is(waits.length, 24);
  await window.clock.advance(34_999);
  assert.is(waits.length, 24);
  await window.clock.advance(1);
  assert.is(waits.length, 25);
  await waits[24]?.answer({ version: 1, changed: false });
  assert.is(waits.length, 25);
  window.show();
  await settled();
  assert.is(waits.length, 26);
  view.close();
});

test('a watch that failed once after it worked asks again after 5 seconds', async () => {
  const { view, waits, window } = await watched();
  collected(view);
  await settled();
  await waits[0]?.answer({ version: 1, changed: true });
  await waits[1]?.fail();
  assert.is(waits.length, 2);
  await window.clock.advance(5_000);
  assert.is(waits.length, 3);
  view.close();
});

test('a watch yields the JSON of the resource, as a read does: the version of the watch is none of its members', async () => {
  const { view, waits } = await watched();
  const { values } = collected(view);
  await settled();
  await waits[0]?.answer({ changed: true, cards: 1, version: 'a' });
  await waits[1]?.answer({ changed: true, value: { changed: false, version: 'mine' }, version: 'b' });
  await waits[2]?.answer({ changed: true, value: [1], version: 'c' });
  await waits[3]?.answer({ changed: true, state: 'cart', version: 4 });
  assert.equal(values, [{ cards: 1 }, { changed: false, version: 'mine' }, [1], { state: 'cart', version: 4 }]);
  assert.equal(
    waits.map(({ args }) => args.version),
    [undefined, 'a', 'b', 'c', 4],
  );
  view.close();
});

test('a host that does not proxy the tool is read every 5 seconds, and only changes are yielded', async () => {
  let reads = 0;
  let text = '{"state":"cart"}';
  const { view, window } = await bridged({
    prepare: (host) => {
      host.oncalltool = async () => ({ content: [{ type: 'text', text: 'unknown tool' }], isError: true });
      host.onreadresource = async ({ uri }) => {
        reads += 1;
        return { contents: [{ uri, text }] };
      };
    },
  });
  const { values } = collected(view);
  await settled();
  assert.is(reads, 1);
  await window.clock.advance(5_000);
  assert.is(reads, 2);
  text = '{"state":"paid"}';
  await window.clock.advance(5_000);
  assert.equal(values, [{ state: 'cart' }, { state: 'paid' }]);
  window.hide();
  await window.clock.advance(60_000);
  const hidden = reads;
  await window.clock.advance(60_000);
  assert.is(reads, hidden);
  view.close();
});

test('a host that proxies neither ends the watch with its refusal, and leaves no timer', async () => {
  const { view, window } = await bridged({ capabilities: {} });
  const { ended } = collected(view);
  assert.match(await ended, /Method not found/);
  assert.is(window.clock.timers, 0);
});

test('a resource that was read once survives three failures in a row', async () => {
  let failing = false;
  const { view, window } = await bridged({
    prepare: (host) => {
      host.oncalltool = async () => ({ content: [], isError: true });
      host.onreadresource = async ({ uri }) => {
        if (failing) throw new Error('gone');
        return { contents: [{ uri, text: '1' }] };
      };
    },
  });
  const { ended } = collected(view);
  await settled();
  failing = true;
  await window.clock.advance(15_000);
  assert.is(await Promise.race([ended, 'open']), 'open');
  await window.clock.advance(5_000);
  assert.match(await ended, /gone/);
});

test('a watch reports its loss with the first request that fails, and its return with the first that works', async () => {
  const { view, waits, window } = await watched();
  const lost: (string | undefined)[] = [];
  void (async () => {
    for await (const _ of view.watch(URI, { onLost: (error) => lost.push(error?.reason) }));
  })();
  await settled();
  await waits[0]?.answer({ version: 1, changed: true });
  await waits[1]?.fail();
  assert.equal(lost, ['refused']);
  await window.clock.advance(5_000);
  // The host does not answer: the server waits at most 25 seconds, and an answer needs at most 10.
  await window.clock.advance(35_000);
  assert.equal(lost, ['refused', 'timeout']);
  await window.clock.advance(5_000);
  await waits[3]?.answer({ version: 1, changed: false });
  assert.equal(lost, ['refused', 'timeout', undefined]);
  view.close();
});

test('a watch of a resource that is not there, or not any more, ends at once and is not read', async () => {
  for (const reason of ['unknown', 'expired']) {
    let reads = 0;
    const { view } = await bridged({
      prepare: (host) => {
        host.oncalltool = async () =>
          ({ content: [], isError: true, _meta: { 'dev.troupe/view': { reason } } }) as never;
        host.onreadresource = async () => {
          reads += 1;
          return { contents: [] };
        };
      },
    });
    const error: unknown = await collected(view).caught;
    assert.is(Object(error).reason, 'gone');
    assert.is(reads, 0);
  }
});

test('the signal of a watch ends it', async () => {
  const { view, waits, window } = await watched();
  const controller = new AbortController();
  const { ended } = collected(view, controller.signal);
  await settled();
  assert.is(waits.length, 1);
  controller.abort();
  assert.is(await ended, 'ended');
  assert.is(window.clock.timers, 0);
});
