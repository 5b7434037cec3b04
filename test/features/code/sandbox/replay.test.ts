/** A property of all scripts: with the same deliveries a script makes the same calls, and has the same end, in each sandbox. */
import fc from 'fast-check';
import * as assert from 'uvu/assert';
import type { Engine } from '../../../../src/features/code/sandbox/engine.ts';
import { quickJsEngine } from '../../../../src/features/code/sandbox/quickjs-engine.ts';
import { SandboxedScript } from '../../../../src/features/code/sandbox/sandboxed-script.ts';
import type { Delivery, ScriptCall, ScriptEnd } from '../../../../src/features/code/sandbox/script.ts';
import { suite } from '../../../harness/door.ts';
import { atScale } from '../../../harness/scale.ts';
import { BOUNDS } from './support.ts';

const test = suite('repeated scripts');
let engine: Engine;
test.before(async () => {
  engine = await quickJsEngine();
});

/** Statements that make calls: one after another, side by side, raced, caught, not awaited, and dependent on clock and chance. */
const STATEMENTS = [
  'seen.push(await shop.one(seen.length));',
  'seen.push(...await Promise.all([shop.a(1), mail.b(Math.random()), sleep(5)]));',
  'seen.push(await Promise.race([shop.slow(), shop.fast(Date.now())]));',
  'seen.push(await Promise.any([shop.x(), shop.y()]).catch((error) => error.constructor.name));',
  'seen.push(...(await Promise.allSettled([shop.p(), shop.q(seen.at(-1))])).map(({ status }) => status));',
  'try { seen.push(await shop.fails(seen)) } catch (error) { seen.push(error.code ?? error.message) }',
  'void shop.forgotten(performance.now()).catch(() => seen.push("late"));',
  'for await (const value of [shop.i(), shop.j()].map((each) => each.catch(() => 0))) seen.push(value);',
  'if (Math.random() < 0.5) seen.push(await shop.heads()); else seen.push(await shop.tails());',
  'await new Promise((resolve) => { shop.nested().then(resolve, resolve) }).then((value) => seen.push(String(value)));',
  'seen.sort((one, other) => String(one).localeCompare(String(other)) || Math.random() - 0.5);',
];

interface Way {
  readonly calls: readonly ScriptCall[];
  readonly end: ScriptEnd | undefined;
}

const outcomes = fc.array(fc.record({ pick: fc.nat(50), fails: fc.boolean(), wait: fc.nat(1_000) }), {
  minLength: 60,
  maxLength: 60,
});

test('a script that is repeated takes the same way, whatever the order of its deliveries', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(...STATEMENTS), { minLength: 1, maxLength: 8 }),
      outcomes,
      fc.nat(2 ** 31),
      async (statements, choices, seed) => {
        const code = `const seen = [];\n${statements.join('\n')}\nreturn [seen, Date.now(), Math.random()];`;
        const script = { code, seed, startedAt: 1_000, groups: ['shop', 'mail'] };
        const deliveries: Delivery[] = [];
        const live = await SandboxedScript.create(engine, BOUNDS, () => false);
        let slice = live.begin(script, []);
        const way = { calls: [...slice.calls], end: slice.end };
        const waiting = slice.calls.map(({ number }) => number);
        for (let at = 1_000; !way.end; ) {
          const { pick, fails, wait } = choices[deliveries.length % choices.length] ?? {
            pick: 0,
            fails: false,
            wait: 0,
          };
          const [number = 0] = waiting.splice(pick % waiting.length, 1);
          at += wait;
          const delivery: Delivery = fails
            ? { number, at, error: { message: `call ${number}`, code: number } }
            : { number, at, value: JSON.stringify({ number, at }) };
          deliveries.push(delivery);
          slice = live.proceed([delivery]);
          way.calls.push(...slice.calls);
          way.end = slice.end;
          waiting.push(...slice.calls.map((call) => call.number));
        }
        live.dispose();
        const again = await SandboxedScript.create(engine, BOUNDS, () => false);
        const whole = again.begin(script, deliveries);
        again.dispose();
        const repeated: Way = { calls: whole.calls, end: whole.end };
        assert.equal(repeated, way, code);
      },
    ),
    { numRuns: atScale({ quick: 10, full: 300, proof: 3_000 }) },
  );
});
