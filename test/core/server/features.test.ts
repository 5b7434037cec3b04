/** Features that the core has never seen: their gates, services, facts, metrics, readiness, and the order in which they open and stop. */
import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type RequestGate, STAGES, Stages } from '../../../src/core/execution/stages.ts';
import type { Feature } from '../../../src/core/server/feature.ts';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import { createServer, ProtocolError } from '../../../src/index.ts';
import { connect, ErrorAnswer } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';

const test = suite('features');

const INFO = { name: 'x', version: '1', log: () => {} };

/** A feature that tells what happens to it. */
function told(name: string, heard: string[], more: Partial<Feature> = {}): Feature {
  const hear = (what: string) => () => void heard.push(`${name} ${what}`);
  return {
    name,
    open() {
      hear('opens')();
      return {
        service: name,
        begin: hear('begins'),
        started: hear('has started'),
        drain: hear('drains'),
        handOver: hear('hands over'),
        finish: async () => hear('finishes')(),
        stop: hear('stops'),
        end: hear('ends'),
      };
    },
    ...more,
  };
}

test('features open in the order of the list, and stop in the reverse order', async () => {
  const heard: string[] = [];
  const server = createServer({ ...INFO, features: [told('a', heard), told('b', heard)] });
  const client = await connect(server);
  await client.close();
  await server.close();
  assert.equal(heard, [
    ...['a opens', 'b opens', 'a begins', 'b begins', 'a has started', 'b has started', 'a drains', 'b drains'],
    ...['b hands over', 'a hands over', 'b finishes', 'a finishes', 'b stops', 'a stops', 'b ends', 'a ends'],
  ]);
});

test('a feature adds a gate, a service for other features, a metric, a fact and a reason for which the server is not ready', async () => {
  const seen: string[] = [];
  const words: Feature<{ readonly limit: number }> = {
    name: 'words',
    open({ stages, system }) {
      let rejected = 0;
      stages.fill('limit', ({ call }, next) => {
        if (String(call.arguments.text).split(' ').length <= 2) return next();
        rejected += 1;
        throw new ProtocolError(-31001, 'at most 2 words');
      });
      system.metrics.gauge('words.rejected', '{call}', 'Rejected calls.', () => rejected);
      return {
        service: { limit: 2 },
        facts: () => ({ words: rejected }),
        unready: () => (rejected > 0 ? 'no catalogue' : undefined),
      };
    },
  };
  const reader: Feature = {
    name: 'reader',
    open(core) {
      seen.push(`limit ${core.service(words).limit}`);
      return { service: undefined };
    },
  };
  const server = createServer({ ...INFO, features: [words, reader] });
  server.tool('say', { input: { type: 'object', properties: { text: { type: 'string' } } } }, ({ text }) =>
    String(text),
  );
  const client = await connect(server);
  assert.match(JSON.stringify(await client.callTool('say', { text: 'two words' })), 'two words');
  assert.ok(server.readiness().ready);
  const rejected = await client.callTool('say', { text: 'these are four words' }).catch((error: unknown) => error);
  assert.ok(rejected instanceof ErrorAnswer);
  assert.is(rejected.code, -31001);
  assert.equal(seen, ['limit 2']);
  assert.match(server.metrics(), /^words_rejected 1$/m);
  assert.equal(server.readiness(), { ready: false, reasons: ['no catalogue'] });
  const stop = server.inspect(() => {});
  assert.is(server[INTERNALS].inspection.live('server')?.facts?.()?.words, 1);
  stop();
  await client.close();
});

test('a feature adds an option, which is checked with those of the core', () => {
  const given: unknown[] = [];
  const feature: Feature = {
    name: 'words',
    options: { maxWords: (value) => (Number(value) > 0 ? undefined : `expected a number above 0, got ${value}`) },
    open: ({ options }) => ({ service: given.push(Reflect.get(options, 'maxWords')) }),
  };
  createServer(Object.assign({ ...INFO, features: [feature] }, { maxWords: 3 }));
  assert.equal(given, [3]);
  assert.throws(
    () => createServer(Object.assign({ ...INFO, features: [feature] }, { maxWords: 0 })),
    /createServer: maxWords: expected a number above 0, got 0/,
  );
  assert.throws(() => createServer(Object.assign({ ...INFO }, { maxWords: 3 })), /maxWords: no such option/);
});

test('a feature that needs one that does not stand above it says which', () => {
  const needy: Feature = {
    name: 'needy',
    open: (core) => ({ service: core.service({ name: 'absent', open: () => ({ service: 1 }) }) }),
  };
  assert.throws(
    () => createServer({ ...INFO, features: [needy] }),
    (error: Error) => error.message === 'the feature "absent" is not open: list it above those that use it',
  );
  for (const features of [1, [1], [{ name: 'x' }]])
    assert.throws(
      () => Reflect.apply(createServer, undefined, [{ ...INFO, features }]),
      /features: expected a list of features/,
    );
});

test('the pages print the stages in their order, with their sentences', () => {
  const page = (name: string): string => readFileSync(new URL(`../../../docs/${name}.md`, import.meta.url), 'utf8');
  assert.match(
    page('architecture'),
    Object.keys(STAGES)
      .map((stage) => `\`${stage}\``)
      .join(' → '),
  );
  const rows = [...page('features').matchAll(/^\| `(\w+)` \| (?:`\w+Gate`)? ?\| (.+) \|$/gm)].map(([, stage, what]) => [
    stage,
    what,
  ]);
  assert.equal(rows, Object.entries(STAGES));
});

test('a request passes the gates of its stages in the order of the list, and those of one stage in the order of their filling', () => {
  const passed: string[] = [];
  const stages = new Stages(
    () => passed.push('serve'),
    (_, error) => passed.push(String(error)),
  );
  const gate =
    (name: string): RequestGate =>
    (mail, next) => {
      passed.push(name);
      next(mail);
    };
  const [late, first, second] = [gate('middleware'), gate('admit 1'), gate('admit 2')];
  stages.fill('middleware', late);
  stages.fill('admit', first);
  stages.fill('admit', second);
  stages.fill('admit', first);
  Reflect.apply(stages.route, stages, [{}]);
  assert.equal(passed.splice(0), ['admit 1', 'admit 2', 'middleware', 'serve']);
  stages.empty('admit', first);
  stages.empty('admit', first);
  Reflect.apply(stages.route, stages, [{}]);
  assert.equal(passed, ['admit 2', 'middleware', 'serve']);
  passed.length = 0;
  stages.fill('find', () => {
    throw new Error('broken');
  });
  Reflect.apply(stages.route, stages, [{}]);
  assert.equal(passed, ['Error: broken']);
  assert.equal(Object.keys(STAGES).slice(0, 3), ['find', 'admit', 'found']);
});
