/** The sandboxes of a server: threads that run scripts in turns, end those that do not end, and survive what happens to them. */
import * as assert from 'uvu/assert';
import { createActorSystem } from '../../../../src/core/kernel/actor-system.ts';
import { systemClock } from '../../../../src/core/kernel/clock.ts';
import { Sandboxes, type SandboxesOptions } from '../../../../src/features/code/sandbox/sandboxes.ts';
import { suite } from '../../../harness/door.ts';
import { endOf, scriptOf, value } from './support.ts';

const test = suite('sandboxes');
const logged: string[] = [];
const open: Sandboxes[] = [];

function sandboxes(options: Partial<SandboxesOptions> = {}): Sandboxes {
  const system = createActorSystem({ clock: systemClock, log: (level, text) => void logged.push(`${level}: ${text}`) });
  const made = new Sandboxes({ system, sliceMs: 300, ...options });
  open.push(made);
  return made;
}

test.after(() => {
  for (const each of open) each.end();
});

test('a script makes calls, waits, and returns with their results', async () => {
  const boxes = sandboxes();
  const first = await boxes.begin('a', 'ann', scriptOf('const x = await shop.list({ page: 1 });\nreturn x.length;'));
  assert.equal(first.calls, [{ number: 1, name: 'shop.list', arguments: '[{"page":1}]', line: 1 }]);
  assert.is(endOf(first), 'waits');
  const last = await boxes.proceed('a', [value(1, '[1,2,3]')]);
  assert.is(last && endOf(last), 'returned 3');
  assert.is(await boxes.proceed('a', [value(1, '[]')]), undefined, 'a script that has ended is forgotten');
  assert.is(boxes.size.scripts, 0);
});

test('a script that is repeated makes the same calls, in another thread, too', async () => {
  const code = `const parts = await Promise.all([shop.a(), shop.b(Math.random()), shop.c(Date.now())]);
for (const part of parts) await mail.send(part, Math.random(), new Date().toISOString());
return Math.random();`;
  const deliveries = [3, 1, 2, 4, 5, 6].map((number, at) => value(number, `"${number}"`, 2_000 + at * 10));
  const [one, other] = [sandboxes(), sandboxes()];
  const live = [await one.begin('a', 'ann', scriptOf(code))];
  for (const delivery of deliveries) {
    const slice = await one.proceed('a', [delivery]);
    assert.ok(slice);
    live.push(slice);
  }
  const repeated = await other.begin('a', 'ann', scriptOf(code), deliveries);
  assert.equal(
    repeated.calls,
    live.flatMap(({ calls }) => calls),
  );
  assert.equal(repeated.end, live.at(-1)?.end);
  assert.match(endOf(repeated), /^returned 0\.\d+$/);
});
