/** Tasks that survive the process: created before their clients hear of them, run anew where that is no harm, and never otherwise than they were. */
import * as assert from 'uvu/assert';
import { isObject, type JsonObject } from '../../../../src/core/protocol/json.ts';
import type { Feature } from '../../../../src/core/server/feature.ts';
import type { Server } from '../../../../src/index.ts';
import { SimulatedClock, settled } from '../../../../src/testing/testing.ts';
import { suite } from '../../../harness/door.ts';
import { errorResponse, textOf } from '../../../harness/results.ts';
import { accept, gate, idOf, inside, keysOf, NAME, pending } from '../support.ts';
import { Disk, start } from './support.ts';

const test = suite('durable tasks');

const ANA = accept({ name: 'Ana' });

/** A tool that charges in a step, then asks; and how often it has charged. */
function payment(task: 'allowed' | 'required') {
  let charged = 0;
  const offer = (server: Server): void => {
    server.tool('pay', { task }, async (_, ctx) => {
      const charge = await ctx.step('charge', () => {
        charged += 1;
        return charged;
      });
      await ctx.elicit(NAME);
      return `charge ${charge}`;
    });
  };
  return { offer, charges: () => charged };
}

test('R-29: a task is durable before its client is notified of it, and before its handler runs', async () => {
  let ran = 0;
  const one = await start(new Disk(), (server) => {
    server.tool('work', { task: 'required' }, () => {
      ran += 1;
      return 'worked';
    });
  });
  const client = one.modern();
  await settled();
  one.store.hold();
  const answer = client.call('work');
  assert.ok(await pending(answer));
  assert.is(ran, 0);
  await one.store.letThrough();
  const id = idOf(await answer);
  assert.is(await client.said(id), 'worked');
  await one.server.close();
});

test('R-29: a process that ends right after it has announced a task leaves one that can be read, in both eras', async () => {
  const disk = new Disk();
  const offer = (server: Server): void => {
    server.tool('forever', { task: 'required', rerun: true }, () => gate().opened.then(() => 'never'));
  };
  const clock = new SimulatedClock();
  for (let round = 1; round <= 20; round += 1) {
    const one = await start(disk, offer, {}, clock);
    const client = one.modern('ana');
    const id = idOf(await client.call('forever'));
    one.kill();
    const two = await start(disk, offer, {}, clock);
    assert.is(await two.modern('ana').status(id), 'working');
    const listed = await (await two.legacy('ana')).send('tasks/list', {});
    assert.is(Array.isArray(listed.tasks) ? listed.tasks.length : 0, round);
    two.kill();
  }
});

test('R-29: an ended task keeps its status and its result in every process', async () => {
  const disk = new Disk();
  const go = gate();
  const offer = (server: Server): void => {
    server.tool('fine', { task: 'required' }, () => 'fine');
    server.tool('broken', { task: 'required' }, () => {
      throw new Error('broken');
    });
    server.tool('slow', { task: 'required', rerun: true }, () => go.opened.then(() => 'late'));
  };
  const one = await start(disk, offer);
  const client = one.modern('ana');
  const [fine, broken, slow] = [await client.start('fine'), await client.start('broken'), await client.start('slow')];
  await client.cancel(slow);
  await settled();
  one.kill();
  const two = await start(disk, offer);
  const again = two.modern('ana');
  go.open();
  await settled();
  assert.is(await again.said(fine), 'fine');
  assert.is(inside(await again.get(broken), 'result', 'isError'), true);
  assert.is(await again.status(slow), 'cancelled');
  await again.cancel(fine);
  await again.update(fine, { elicit: ANA });
  assert.is(await again.status(fine), 'completed');
  // To others there is none.
  assert.is((await errorResponse(two.modern('eve').get(fine))).code, -32602);
  await two.server.close();
});

test('R-29: the records of a task are stored for as long as the task', async () => {
  const disk = new Disk();
  const { offer, charges } = payment('required');
  const one = await start(disk, offer);
  const id = await one.modern('ana').start('pay');
  await settled();
  // Longer than any request may take with the time that its client has to answer.
  await one.clock.advance(1_800_000);
  one.kill();
  const two = await start(disk, offer, {}, new SimulatedClock(1_800_000));
  await two.store.sweep(two.clock.date());
  const again = two.modern('ana');
  await again.update(id, { elicit: ANA });
  await settled();
  assert.is(await again.said(id), 'charge 1');
  assert.is(charges(), 1);
  await two.server.close();
});

test('R-29: a call that becomes a task while its first step is written repeats no step after a restart', async () => {
  const disk = new Disk();
  const { offer, charges } = payment('allowed');
  const one = await start(disk, offer);
  const client = one.modern('ana');
  one.store.hold();
  const answer = client.call('pay');
  await settled();
  assert.is(charges(), 1);
  await one.clock.advance(1_000);
  await one.store.letThrough();
  const id = idOf(await answer);
  // Longer than the steps of a request are stored that is no task.
  await one.clock.advance(1_800_000);
  one.kill();
  const two = await start(disk, offer, {}, new SimulatedClock(1_801_000));
  await two.store.sweep(two.clock.date());
  const again = two.modern('ana');
  await again.update(id, { elicit: ANA });
  await settled();
  assert.is(await again.said(id), 'charge 1');
  assert.is(charges(), 1);
  await two.server.close();
});

test('R-29: a question keeps its key over a restart, and no key is used twice', async () => {
  const disk = new Disk();
  let asked = 0;
  const offer = (server: Server): void => {
    server.tool('names', { task: 'required' }, async (_, ctx) => {
      asked += 1;
      const one = await ctx.elicit(NAME);
      const two = await ctx.elicit(NAME);
      return [one, two].map((each) => (each.status === 'accepted' ? each.content.name : each.status)).join();
    });
  };
  const one = await start(disk, offer);
  const client = one.modern('ana');
  const id = await client.start('names');
  await settled();
  // It does not fit, and is asked again under another key.
  await client.update(id, { elicit: accept({}) });
  await settled();
  assert.equal(keysOf(await client.get(id)), ['elicit#2']);
  one.kill();
  const two = await start(disk, offer);
  const again = two.modern('ana');
  const looked = await again.get(id);
  assert.is(looked.status, 'input_required');
  assert.equal(keysOf(looked), ['elicit#2']);
  // Nothing runs until somebody answers.
  assert.is(asked, 1);
  await again.update(id, { elicit: ANA });
  assert.equal(keysOf(await again.get(id)), ['elicit#2']);
  // It does not fit either.
  await again.update(id, { 'elicit#2': accept({}) });
  await settled();
  assert.equal(keysOf(await again.get(id)), ['elicit#3']);
  await again.update(id, { 'elicit#3': ANA });
  await settled();
  const [key = ''] = keysOf(await again.get(id));
  assert.not(/^elicit(#.*)?$/.test(key), `${key} was used before`);
  two.kill();
  const three = await start(disk, offer);
  const last = three.modern('ana');
  assert.equal(keysOf(await last.get(id)), [key]);
  await last.update(id, { [key]: accept({ name: 'Bo' }) });
  await settled();
  assert.is(await last.said(id), 'Ana,Bo');
  await three.server.close();
});

test('a task that is asked two things takes the answers one by one, before and after a restart', async () => {
  const disk = new Disk();
  const offer = (server: Server): void => {
    server.tool('pair', { task: 'required' }, async (_, ctx) => {
      const { a, b } = await ctx.ask({ a: { elicit: NAME }, b: { elicit: NAME } });
      return `${a.status} ${b.status}`;
    });
  };
  const one = await start(disk, offer);
  const id = await one.modern().start('pair');
  await settled();
  await one.modern().update(id, { a: ANA });
  one.kill();
  const two = await start(disk, offer);
  assert.equal(keysOf(await two.modern().get(id)), ['b']);
  await two.modern().update(id, { b: { action: 'decline' } });
  await settled();
  assert.is(await two.modern().said(id), 'accepted declined');
  await two.server.close();
});

test('an answer is acknowledged once it is durable', async () => {
  const one = await start(new Disk(), (server) => {
    server.tool('ask', { task: 'required' }, async (_, ctx) => (await ctx.elicit(NAME)).status);
  });
  const client = one.modern();
  const id = await client.start('ask');
  await settled();
  one.store.hold();
  const acknowledged = client.update(id, { elicit: ANA });
  assert.ok(await pending(acknowledged));
  // What is not durable yet, nobody sees.
  assert.is(await client.status(id), 'input_required');
  await one.store.letThrough();
  await acknowledged;
  await settled();
  assert.is(await client.status(id), 'completed');
  await one.server.close();
});

test('R-18: while the disk is full no task starts and requests to a task are rejected; tasks continue once there is room', async () => {
  let ran = 0;
  const one = await start(new Disk(), (server) => {
    server.tool('work', { task: 'required' }, () => {
      ran += 1;
      return 'worked';
    });
    server.tool('ask', { task: 'required' }, async (_, ctx) => (await ctx.elicit(NAME)).status);
  });
  const client = one.modern();
  const id = await client.start('ask');
  await settled();
  one.store.full = true;
  assert.is((await errorResponse(client.call('work'))).code, -32603);
  assert.is(ran, 0);
  const refused = await errorResponse(client.update(id, { elicit: ANA }));
  assert.is(refused.code, -32603);
  assert.match(refused.message, 'the disk is full');
  assert.is(await client.status(id), 'input_required');
  one.store.full = false;
  await one.clock.advance(2_000);
  assert.is(await client.said(id), 'accepted');
  await one.server.close();
});

/** The tasks that worked when their process ended, and what became of them. */
const WORKED: readonly (readonly [name: string, options: JsonObject, again: boolean])[] = [
  ['plain', {}, false],
  ['allowed', { rerun: true }, true],
  ['reading', { annotations: { readOnlyHint: true } }, true],
  ['idempotent', { annotations: { idempotentHint: true } }, true],
  ['forbidden', { rerun: false, annotations: { readOnlyHint: true } }, false],
  ['stepping', {}, true],
];

for (const [name, options, again] of WORKED) {
  test(`a task that worked when its process ended ${again ? 'runs again' : 'fails, and says that its effect is unknown'}: ${name}`, async () => {
    const disk = new Disk();
    let runs = 0;
    let charged = 0;
    const offer = (server: Server): void => {
      server.tool(name, { ...options, task: 'required' }, async (_, ctx) => {
        runs += 1;
        if (name === 'stepping')
          await ctx.step('charge', () => {
            charged += 1;
          });
        if (runs === 1) await gate().opened;
        return `run ${runs}`;
      });
    };
    const one = await start(disk, offer);
    const id = await one.modern().start(name);
    await settled();
    one.kill();
    const two = await start(disk, offer);
    await settled();
    const looked = await two.modern().get(id);
    assert.is(looked.status, again ? 'completed' : 'failed');
    assert.is(runs, again ? 2 : 1);
    assert.is(charged, name === 'stepping' ? 1 : 0);
    if (again) assert.is(await two.modern().said(id), 'run 2');
    else
      assert.match(
        String(inside(looked, 'error', 'message')),
        `tool "${name}" ran this task, and the outcome is unknown`,
      );
    await two.server.close();
  });
}

test('a server that closes leaves its tasks to the next: the signals of their handlers are aborted, and no task is cancelled', async () => {
  const disk = new Disk();
  let aborted = 0;
  let runs = 0;
  const offer = (server: Server): void => {
    server.tool('long', { task: 'required', rerun: true }, async (_, ctx) => {
      runs += 1;
      if (runs === 1) await new Promise<void>((resolve) => ctx.signal.addEventListener('abort', () => resolve()));
      if (ctx.signal.aborted) aborted += 1;
      return `run ${runs}`;
    });
  };
  const one = await start(disk, offer);
  const id = await one.modern().start('long');
  await settled();
  await one.server.close();
  await settled();
  assert.is(aborted, 1);
  const two = await start(disk, offer);
  await settled();
  assert.is(await two.modern().said(id), 'run 2');
  await two.server.close();
});

test('its time to live continues over a restart and the time in between; then the task is deleted', async () => {
  const disk = new Disk();
  const clock = new SimulatedClock();
  const offer = (server: Server): void => {
    server.tool('step', { task: 'required' }, (_, ctx) => ctx.step('one', () => 'done'));
  };
  const one = await start(disk, offer, { taskTtlMs: 10_000 }, clock);
  const [first] = [await one.modern().start('step')];
  await clock.advance(5_000);
  const second = await one.modern().start('step');
  await settled();
  one.kill();
  await clock.advance(6_000);
  const two = await start(disk, offer, { taskTtlMs: 10_000 }, clock);
  assert.is((await errorResponse(two.modern().get(first))).code, -32602);
  assert.is(await two.modern().status(second), 'completed');
  await clock.advance(4_000);
  assert.is((await errorResponse(two.modern().get(second))).code, -32602);
  await clock.advance(60_000);
  assert.equal(await two.store.list({ kind: 'task', limit: 10 }), []);
  assert.equal(await two.store.list({ kind: 'question', limit: 10 }), []);
  await two.server.close();
});

test('tasks that were restored count, keep their places in the list, and a cursor of before', async () => {
  const disk = new Disk();
  const offer = (server: Server): void => {
    server.tool('work', { task: 'required' }, () => 'worked');
  };
  const limits = { maxTasksPerPrincipal: 3, pageSize: 2 };
  const one = await start(disk, offer, limits);
  const client = one.modern('ana');
  const ids = [await client.start('work'), await client.start('work'), await client.start('work')];
  const page = await (await one.legacy('ana')).send('tasks/list', {});
  one.kill();
  const two = await start(disk, offer, limits);
  const idsOf = ({ tasks }: JsonObject): readonly unknown[] =>
    Array.isArray(tasks) ? tasks.map((task) => (isObject(task) ? task.taskId : task)) : [];
  const legacy = await two.legacy('ana');
  assert.equal(idsOf(page), ids.slice(0, 2));
  assert.equal(idsOf(await legacy.send('tasks/list', { cursor: String(page.nextCursor) })), ids.slice(2));
  assert.is((await errorResponse(two.modern('ana').call('work'))).code, -31001);
  await two.server.close();
});

test('a call that asked before it became a task is answered with the task, when its state comes again after a restart', async () => {
  const disk = new Disk();
  const offer = (server: Server): void => {
    server.tool('late', { task: 'allowed', rerun: true }, async (_, ctx) => {
      await ctx.elicit(NAME);
      await gate().opened;
      return 'never';
    });
  };
  const one = await start(disk, offer);
  const asked = await one.modern().call('late');
  const requestState = String(asked.requestState);
  const answer = one.modern().call('late', {}, { requestState, inputResponses: { elicit: ANA } });
  await one.clock.advance(1_500);
  const id = idOf(await answer);
  one.kill();
  const two = await start(disk, offer, {}, one.clock);
  const again = await two.modern().call('late', {}, { requestState, inputResponses: { elicit: ANA } });
  assert.is(idOf(again), id);
  assert.is(await two.modern().status(id), 'working');
  await two.server.close();
});

test('a call that outlasts its time stays a request if its task cannot be stored', async () => {
  const go = gate();
  const one = await start(new Disk(), (server) => {
    server.tool('late', { task: 'allowed' }, () => go.opened.then(() => 'as a request'));
  });
  const client = one.modern();
  const answer = client.call('late');
  await settled();
  one.store.full = true;
  await one.clock.advance(1_500);
  assert.ok(await pending(answer));
  go.open();
  assert.is(textOf(await answer), 'as a request');
  await one.server.close();
});

test('a working task runs again once the features are ready: the tools of mounts come after the store has opened', async () => {
  const disk = new Disk();
  const one = await start(disk, (server) => {
    server.tool('late', { task: 'required', rerun: true }, () => gate().opened.then(() => 'never'));
  });
  const id = idOf(await one.modern('ana').call('late'));
  one.kill();
  let offered: Server | undefined;
  const slow: Feature = {
    name: 'slow',
    open: () => ({
      service: undefined,
      async ready() {
        for (let turn = 0; turn < 10; turn += 1) await settled();
        offered?.tool('late', { task: 'required', rerun: true }, () => 'done');
      },
    }),
  };
  const keep = (server: Server): void => {
    offered = server;
  };
  const two = await start(disk, keep, {}, new SimulatedClock(), { features: [slow] });
  await settled();
  assert.is(await two.modern('ana').said(id), 'done');
  await two.server.close();
});

test('a tool that is gone after a restart fails its tasks', async () => {
  const disk = new Disk();
  const one = await start(disk, (server) => {
    server.tool('gone', { task: 'required', rerun: true }, () => gate().opened.then(() => ''));
  });
  const id = await one.modern().start('gone');
  one.kill();
  const two = await start(disk, (server) => {
    server.tool('other', { task: 'required' }, () => '');
  });
  await settled();
  const looked = await two.modern().get(id);
  assert.is(looked.status, 'failed');
  assert.match(String(inside(looked, 'error', 'message')), 'Unknown tool');
  await two.server.close();
});
