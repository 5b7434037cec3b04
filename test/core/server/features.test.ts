/** Features that the core has never seen: their gates, services, facts, metrics, readiness, and the order in which they open and stop. */
import { readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { type RequestGate, STAGES, Stages } from '../../../src/core/execution/stages.ts';
import type { Feature } from '../../../src/core/server/feature.ts';
import { INTERNALS } from '../../../src/features/server/internals.ts';
import { createServer, defineMethod, type FeatureMethod, type LimitRows, ProtocolError } from '../../../src/index.ts';
import { connect, ErrorResponse } from '../../../src/testing/testing.ts';
import { suite } from '../../harness/door.ts';
import { inSession } from '../../harness/memory.ts';

declare module '../../../src/core/kernel/limits.ts' {
  interface Limits {
    readonly maxWords?: number;
  }
}

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
  assert.match(JSON.stringify(await client.call('say', { text: 'two words' })), 'two words');
  assert.ok(server.readiness().ready);
  const rejected = await client.call('say', { text: 'these are four words' }).catch((error: unknown) => error);
  assert.ok(rejected instanceof ErrorResponse);
  assert.is(rejected.code, -31001);
  assert.equal(seen, ['limit 2']);
  assert.match(server.metrics(), /^words_rejected 1$/m);
  assert.equal(server.readiness(), { ready: false, reasons: ['no catalogue'] });
  const stop = server.inspect(() => {});
  assert.is(server[INTERNALS].inspection.live('server')?.facts?.()?.words, 1);
  stop();
  await client.close();
});

const COUNT = 'com.example.words/count';

/** A feature with a method, which counts the words of a text. */
function counting(more: Partial<FeatureMethod> = {}): Feature {
  const count = defineMethod({
    extension: 'com.example/words',
    named: 'text',
    read(params) {
      if (typeof params?.text === 'string') return { text: params.text };
      throw new ProtocolError(-32602, 'params.text: expected a string');
    },
    async answer({ text }, { client, log, progress }) {
      if (text === 'broken') throw new Error('a secret');
      progress(1, 2, 'half');
      log.info('counting');
      return { count: text.split(' ').length, revision: client.revision };
    },
  });
  return {
    name: 'counting',
    open({ capabilities }) {
      capabilities.extend('com.example/words', { languages: ['en'] });
      return { service: undefined, methods: { [COUNT]: { ...count, ...more } } };
    },
  };
}

test('a feature adds a method: read where it enters, behind every gate, answered in both eras, with progress and log', async () => {
  const passed: string[] = [];
  const gates: Feature = {
    name: 'gates',
    open({ stages }) {
      stages.fill('admit', ({ request }, next) => {
        passed.push(request.operation.method);
        next({ type: 'request', request });
      });
      return { service: undefined };
    },
  };
  const server = createServer({ ...INFO, features: [gates, counting()] });
  server.use((call, _, next) => {
    passed.push(`middleware of all: ${call.method} ${JSON.stringify(call.params)}`);
    return next();
  });
  server.use(COUNT, (call, _, next) => {
    passed.push(`middleware of ${call.method}`);
    return next();
  });
  const client = await connect(server);
  const opened = JSON.stringify(await client.initialize('2025-11-25'));
  assert.match(opened, '"extensions":{"com.example/words":{"languages":["en"]}}');
  passed.length = 0;
  const params = { text: 'one two three', _meta: { progressToken: 1 } };
  assert.equal(await client.send(COUNT, params), { count: 3, revision: '2025-11-25' });
  assert.equal(passed, [COUNT, `middleware of all: ${COUNT} {}`, `middleware of ${COUNT}`]);
  assert.equal(
    client.notifications.map(({ method }) => method),
    ['notifications/progress', 'notifications/message'],
  );
  const modern = await client.modern(COUNT, { text: 'one' });
  assert.equal([modern.count, modern.revision, modern.resultType], [1, '2026-07-28', 'complete']);
  for (const [text, code, message] of [
    [undefined, -32602, /params\.text: expected a string/],
    ['broken', -32603, /^(?!.*secret)/],
  ] as const) {
    const error = await client.send(COUNT, { text: text ?? null }).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof ErrorResponse);
    assert.is(error.code, code);
    assert.match(error.message, message);
  }
  assert.match(server.metrics(), /mcp_method_name="com\.example\.words\/count"/);
  await client.close();
  await server.close();
});

test('a modern client repeats the parameter of a method that the row names, as the header Mcp-Name', async () => {
  const server = createServer({ ...INFO, features: [counting()] });
  const ask = async (name: string): Promise<string> => {
    const _meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'x', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const answer = await server.fetch(
      new Request('http://localhost/mcp', {
        method: 'POST',
        headers: {
          'content-type': 'application/json',
          accept: 'application/json, text/event-stream',
          'mcp-protocol-version': '2026-07-28',
          'mcp-method': COUNT,
          'mcp-name': name,
        },
        body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: COUNT, params: { text: 'one two', _meta } }),
      }),
    );
    return answer.text();
  };
  assert.match(await ask('one two'), '"count":2');
  assert.match(await ask('one'), 'Mcp-Name');
  await server.close();
});

test('a method of a feature belongs to its eras, its extension and its server, and its name is its own', async () => {
  const unknown = async (feature: Feature, message: RegExp): Promise<void> => {
    const server = createServer({ ...INFO, features: [feature] });
    const client = await inSession(server, '2025-11-25');
    const error = await client.send(COUNT, { text: 'x' }).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof ErrorResponse);
    assert.is(error.code, -32601);
    assert.match(error.message, message);
    await server.close();
  };
  await unknown(counting({ eras: ['modern'] }), /it belongs to the modern era/);
  await unknown(counting({ extension: 'com.example/other' }), /does not use the extension com\.example\/other/);
  await unknown({ name: 'none', open: () => ({ service: undefined }) }, /has no method "com\.example\.words\/count"/);
  const named = (...names: string[]): (() => void) => {
    const answer = defineMethod({ read: () => ({}), answer: () => ({}) });
    const features = names.map((name, place) => ({
      name: `feature ${place}`,
      open: () => ({ service: undefined, methods: { [name]: answer } }),
    }));
    return () => createServer({ ...INFO, features });
  };
  assert.throws(
    named('words/count'),
    /expected the name of a method that begins with a domain, .* got string "words\/count"/,
  );
  assert.throws(named(`a.${'b'.repeat(100)}`), /expected the name of a method/);
  assert.throws(named('a.b', 'a.b'), /there are two methods "a\.b"/);
  for (const result of ['null', '[]', '{"resultType":"task"}']) {
    const feature = counting({ answer: () => JSON.parse(result) });
    const server = createServer({ ...INFO, features: [feature] });
    const client = await connect(server);
    const error = await client.modern(COUNT, { text: 'x' }).catch((thrown: unknown) => thrown);
    assert.ok(error instanceof ErrorResponse);
    assert.is(error.code, -32603);
    await server.close();
  }
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

test('a feature adds a limit, which is checked with those of the core', () => {
  const limited = (limits: LimitRows, given: Readonly<Record<string, unknown>>): number | undefined => {
    let value: number | undefined;
    const feature: Feature = {
      name: 'limited',
      limits,
      open(core) {
        value = core.limits.maxWords;
        return { service: undefined };
      },
    };
    createServer({ ...INFO, features: [feature], limits: given });
    return value;
  };
  const rows = {
    maxWords: { default: 10, unit: 'words', max: 100 },
    waitMs: { default: 1, unit: 'milliseconds', min: 0 },
  };
  assert.is(limited(rows, {}), 10);
  assert.is(limited(rows, { maxWords: 100, waitMs: 0 }), 100);
  for (const [given, message] of [
    [{ maxWords: 0 }, 'limits.maxWords: expected a whole number of words, from 1 to 100, got number 0'],
    [{ maxWords: 101 }, 'limits.maxWords: expected a whole number of words, from 1 to 100, got number 101'],
    [{ maxWords: 1.5 }, 'limits.maxWords: expected a whole number of words, from 1 to 100, got number 1.5'],
    [
      { waitMs: 2 ** 31 },
      'limits.waitMs: expected a whole number of milliseconds, from 0 to 2147483647, got number 2147483648',
    ],
    [{ maxInFlight: 0 }, 'limits.maxInFlight: expected a whole number of at least 1, got number 0'],
  ] as const)
    assert.throws(
      () => limited(rows, given),
      (error: Error) => error instanceof RangeError && error.message === message,
    );
  assert.throws(() => limited({}, { maxWords: 1 }), /limits\.maxWords: no such option/);
  assert.throws(
    () => limited({ maxInFlight: { default: 1, unit: 'requests' } }, {}),
    /there are two limits "maxInFlight"/,
  );
  assert.throws(
    () => limited({ maxWords: { default: 0, unit: 'words' } }, {}),
    /limits: the default of maxWords: expected a whole number of words, at least 1, got number 0/,
  );
});

test('one feature of which the core knows nothing adds a method, a stage, an option with bounds, a limit, a metric and a line in the inspector', async () => {
  const words: Feature = {
    name: 'words',
    options: {
      language: (value) => (value === 'en' || value === 'fr' ? undefined : `expected en or fr, got ${String(value)}`),
    },
    limits: { maxWords: { default: 2, unit: 'words', max: 100 } },
    open({ options, limits, stages, system }) {
      const { maxWords: most = 0 } = limits;
      let rejected = 0;
      stages.fill('limit', ({ call }, next) => {
        if (String(call.arguments.text).split(' ').length <= most) return next();
        rejected += 1;
        throw new ProtocolError(-31001, `at most ${most} words`);
      });
      system.metrics.gauge('words.rejected', '{call}', 'Rejected calls.', () => rejected);
      const about = { language: String(Reflect.get(options, 'language')), most };
      return {
        service: undefined,
        methods: { 'com.example.words/about': defineMethod({ read: () => ({}), answer: () => about }) },
        facts: () => ({ 'rejected calls': rejected }),
      };
    },
  };
  const create = (language: string) =>
    createServer(Object.assign({ ...INFO, features: [words], limits: { maxWords: 3 } }, { language }));
  assert.throws(() => create('de'), /createServer: language: expected en or fr, got de/);
  const server = create('fr');
  server.tool('say', { input: { type: 'object', properties: { text: { type: 'string' } } } }, ({ text }) => `${text}`);
  const client = await inSession(server);
  assert.equal(await client.send('com.example.words/about'), { language: 'fr', most: 3 });
  assert.match(JSON.stringify(await client.call('say', { text: 'these are three' })), 'these are three');
  const rejected = await client.call('say', { text: 'these are four words' }).catch((error: unknown) => error);
  assert.match(String(rejected), 'at most 3 words');
  assert.match(server.metrics(), /^words_rejected 1$/m);
  const stop = server.inspect(() => {});
  assert.is(server[INTERNALS].inspection.live('server')?.facts?.()?.['rejected calls'], 1);
  stop();
  await server.close();
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
  assert.equal(Object.keys(STAGES).slice(0, 4), ['hold', 'find', 'admit', 'found']);
});
