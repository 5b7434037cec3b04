/** The servers that the transcripts are played against. What a test needs to happen on the server's side, a tool does. */
import { assign, setup } from 'xstate';
import { declaredExtension } from '../../../src/core/protocol/extensions.ts';
import {
  audio,
  createServer,
  ErrorCode,
  embedded,
  image,
  type Limits,
  link,
  ProtocolError,
  type Server,
  ToolError,
  text,
} from '../../../src/index.ts';
import type { SimulatedClock } from '../../../src/testing/testing.ts';

const INFO = {
  name: 'cast',
  title: 'The cast',
  version: '1.2.3',
  description: 'Plays in transcripts',
  websiteUrl: 'https://example.com/cast',
  icons: [{ src: 'https://example.com/cast.png', mimeType: 'image/png', sizes: ['48x48'] }],
  instructions: 'Ask nicely.',
};

const ICONS = [{ src: 'https://example.com/icon.png', mimeType: 'image/png' }];

const CUPS = {
  type: 'object',
  properties: { cups: { type: 'integer', minimum: 1 } },
  required: ['cups'],
} as const;

function bare(clock: SimulatedClock, limits: Partial<Limits>): Server {
  return createServer({ ...INFO, clock, limits, log: () => {} });
}

/** Offers nothing. */
export function nothing(clock: SimulatedClock, limits: Partial<Limits>): Server {
  return bare(clock, limits);
}

/** One or two of each, with everything that a definition can say. */
export function catalogue(clock: SimulatedClock, limits: Partial<Limits>): Server {
  const server = bare(clock, limits);
  const shown = { title: 'A title', description: 'A description', icons: ICONS, meta: { 'example.com/shelf': 3 } };
  server.tool(
    'weigh',
    {
      ...shown,
      annotations: { title: 'Weigh', readOnlyHint: true },
      input: { type: 'object', properties: { item: { type: 'string' }, note: true, no: false }, required: ['item'] },
      output: { type: 'object', properties: { grams: { type: 'number' }, note: true }, required: ['grams'] },
    },
    () => ({ grams: 12 }),
  );
  server.tool('primes', { output: { type: 'array', items: { type: 'integer' } } as const }, () => [2, 3, 5]);
  server.resource(
    'shop://prices',
    { ...shown, name: 'prices', mimeType: 'text/plain', size: 11, annotations: { audience: ['user'], priority: 0.5 } },
    () => 'tea 3, milk 1',
  );
  server.resource('shop://hours', { name: 'hours' }, () => 'nine to five');
  server.resource(
    'shop://items/{item}',
    { ...shown, name: 'item', mimeType: 'text/plain', complete: { item: () => ['tea'] } },
    () => 'an item',
  );
  server.prompt(
    'advise',
    { ...shown, arguments: [{ name: 'need', title: 'Need', description: 'What for', required: true }] },
    ({ need }) => `What helps with ${need}?`,
  );
  return server;
}

/** Its calls outlive their requests. */
export function workshop(clock: SimulatedClock, limits: Partial<Limits>): Server {
  const server = bare(clock, limits);
  const pass = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  server.tool('build', { task: 'required' }, async (_, ctx) => {
    ctx.progress(1, 2, 'the frame stands');
    await pass(5_000);
    return 'built';
  });
  server.tool('paint', { task: 'allowed' }, async (_, ctx) => {
    const { colour } = await ctx.ask({
      colour: {
        elicit: {
          message: 'Which colour?',
          schema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const,
        },
      },
    });
    await pass(5_000);
    return colour.status === 'accepted' ? `painted ${colour.content.name}` : `not painted: ${colour.status}`;
  });
  return server;
}

/** Has one skill, in a folder of its own. */
export function librarian(clock: SimulatedClock, limits: Partial<Limits>): Server {
  const server = bare(clock, limits);
  void server.skills(new URL('../../fixtures/skills', import.meta.url), { watch: false });
  return server;
}

/** Announces an extension of its own, has a call that can be a task, and a tool that returns what its client declares. */
export function extended(clock: SimulatedClock, limits: Partial<Limits>): Server {
  const server = createServer({
    ...INFO,
    clock,
    limits,
    log: () => {},
    extensions: { 'com.example/shelf': { rows: 3 } },
  });
  server.tool('build', { task: 'allowed' }, () => 'built');
  server.tool('declared', {}, (_, ctx) => {
    const { extensions, experimental } = ctx.client.capabilities;
    const found = (identifier: string) => declaredExtension(ctx.client.capabilities, identifier) ?? 'nothing';
    return JSON.stringify([
      extensions,
      experimental,
      found('com.example/a'),
      found('com.example/b'),
      found('constructor'),
    ]);
  });
  return server;
}

/** A door that opens for who knock often enough, and shuts by itself. */
const door = setup({
  types: {
    input: {} as { wants: number },
    context: {} as { wants: number; knocks: number },
    events: {} as { type: 'knock'; times: number } | { type: 'enter' },
    output: {} as { knocks: number },
  },
  guards: { enough: ({ context }) => context.knocks >= context.wants },
}).createMachine({
  context: ({ input }) => ({ wants: input.wants, knocks: 0 }),
  initial: 'shut',
  states: {
    shut: {
      on: {
        knock: { actions: assign({ knocks: ({ context, event }) => context.knocks + event.times }) },
        enter: { guard: 'enough', target: 'passed' },
      },
      after: { 600000: 'bolted' },
    },
    bolted: { on: { enter: { guard: 'enough', target: 'passed' } } },
    passed: { type: 'final' },
  },
  output: ({ context }) => ({ knocks: context.knocks }),
});

/** Has a machine whose instances live behind handles, for an hour. */
export function doorkeeper(clock: SimulatedClock, limits: Partial<Limits>): Server {
  const server = bare(clock, limits);
  server.machine('door', door, {
    description: 'A door',
    input: { type: 'object', properties: { wants: { type: 'integer' } }, required: ['wants'] },
    events: { knock: { type: 'object', properties: { times: { type: 'integer' } }, required: ['times'] }, enter: true },
    view: ({ context }) => ({ knocks: context.knocks }),
    ttlMs: 3_600_000,
  });
  return server;
}

/** Has middleware: a door that some calls do not pass, and a footnote on all that pass. */
export function guarded(clock: SimulatedClock, limits: Partial<Limits>): Server {
  const server = bare(clock, limits);
  offerTools(server);
  server.use(async (call, ctx, next) => {
    if (call.method !== 'tools/call') return next();
    if (call.params.name === 'fail') throw new ToolError(`Not for ${ctx.principal}.`);
    if (call.params.name === 'lie') return { content: [text('The truth.')] };
    if (call.params.name === 'deny') throw new ProtocolError(ErrorCode.InvalidRequest, 'Closed.');
    const result = await next({ ...call, params: { ...call.params, arguments: { ...call.params.arguments, b: 2 } } });
    return 'content' in result ? { ...result, content: [...result.content, text('Seen.')] } : result;
  });
  server.use('tools/list', async (_call, _ctx, next) => {
    const { tools } = await next();
    return { tools: tools.filter(({ name }) => name === 'greet') };
  });
  return server;
}

/** Does what the transcripts want to see done. */
export function stage(clock: SimulatedClock, limits: Partial<Limits>): Server {
  const server = bare(clock, limits);
  offerTools(server);
  offerStagehands(server, clock);
  offerTexts(server);
  return server;
}

function offerTools(server: Server): void {
  server.tool(
    'greet',
    { input: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const },
    ({ name }) => `Hello, ${name}!`,
  );
  server.tool(
    'add',
    {
      input: {
        type: 'object',
        properties: { a: { type: 'number' }, b: { type: 'number' } },
        required: ['a', 'b'],
      } as const,
      output: { type: 'object', properties: { sum: { type: 'number' } }, required: ['sum'] } as const,
    },
    ({ a, b }) => ({ sum: a + b }),
  );
  server.tool('primes', { output: { type: 'array', items: { type: 'integer' } } as const }, () => [2, 3, 5]);
  server.tool('lie', { output: { type: 'object', required: ['truth'] } as const }, () => ({ lie: 1 }));
  server.tool('fail', {}, () => {
    throw new Error('The kettle is empty');
  });
  server.tool('deny', {}, () => {
    throw new ProtocolError(ErrorCode.InvalidParams, 'That kettle is not yours', { kettle: 7 });
  });
  server.tool('show', {}, () => [
    text('words'),
    image('aW1hZ2U=', 'image/png', { audience: ['user'], priority: 0.9 }),
    audio('c291bmQ=', 'audio/wav'),
    link('notes://1', 'one', { title: 'Note one', description: 'The first note' }),
    embedded('notes://2', 'two', 'text/plain'),
  ]);
  server.tool('pour', { input: { type: 'object' } }, async (_, ctx) => {
    const { cups, where } = await ctx.ask({
      cups: { elicit: { message: 'How many cups?', schema: CUPS } },
      where: { roots: true },
    });
    return cups.status === 'accepted' ? `${cups.content.cups} cups in ${where[0]?.uri}` : cups.status;
  });
  server.tool('chatter', {}, (_, { log }) => {
    log.debug('d');
    log.info({ i: 1 }, 'kitchen');
    log.warning('w');
    log.error('e');
    return 'said';
  });
  server.tool('uneven', {}, (_, ctx) => {
    for (const done of [0.5, 0.25, 0.5, 1]) ctx.progress(done, 1, `${done} done`);
    return 'even';
  });
}

/** Tools that wait, and tools that move the scenery. */
function offerStagehands(server: Server, clock: SimulatedClock): void {
  const waiting = new Set<() => void>();
  const pass = (ms: number): Promise<void> => new Promise((resolve) => void clock.after(ms, resolve));
  server.tool('wait', {}, async (_, ctx) => {
    await new Promise<void>((resolve) => {
      waiting.add(resolve);
      ctx.signal.addEventListener('abort', () => resolve());
    });
    // Too late where the request was cancelled: none of it may leave.
    ctx.progress(1);
    ctx.log.error('waited');
    return 'waited';
  });
  server.tool('release', {}, () => {
    for (const resume of waiting) resume();
    waiting.clear();
    return 'released';
  });
  server.tool(
    'work',
    {
      input: {
        type: 'object',
        properties: { steps: { type: 'integer' }, everyMs: { type: 'integer' } },
        required: ['steps', 'everyMs'],
      } as const,
    },
    async ({ steps, everyMs }, ctx) => {
      for (let step = 1; step <= steps; step += 1) {
        await pass(everyMs);
        ctx.progress(step, steps, `step ${step}`);
      }
      return 'worked';
    },
  );
  server.tool('linger', {}, (_, ctx) => {
    clock.after(10, () => {
      ctx.progress(99);
      ctx.log.error('still here');
    });
    return 'gone';
  });
  server.tool('restock', {}, () => {
    for (const name of ['one', 'two', 'three']) server.tool(name, {}, () => name);
    server.tools.remove('three');
    server.prompt('new_prompt', {}, () => 'new');
    server.resource('notes://new', {}, () => 'new');
    server.tools.disable('two');
    return 'restocked';
  });
  server.tool(
    'touch',
    { input: { type: 'object', properties: { uri: { type: 'string' } }, required: ['uri'] } as const },
    ({ uri }) => {
      for (let times = 0; times < 3; times += 1) server.resourceUpdated(uri);
      return 'touched';
    },
  );
  server.tool('shut_down', {}, () => {
    void server.close('the play is over');
    return 'closing';
  });
}

const NOTES: Readonly<Record<string, string>> = { 1: 'one', 2: 'two', 10: 'ten' };

function offerTexts(server: Server): void {
  server.resource('notes://today', { name: 'today', mimeType: 'text/plain' }, () => 'Nothing yet.');
  server.resource('notes://stamp', { name: 'stamp', mimeType: 'image/png', ttlMs: 60_000, cacheScope: 'public' }, () =>
    Uint8Array.of(1, 2, 3),
  );
  server.resource('notes://careless', { name: 'careless' }, () =>
    JSON.parse('{"contents":[{"uri":"notes://careless","text":"any"}],"ttlMs":1.5,"cacheScope":"world"}'),
  );
  server.resource('notes://broken', { name: 'broken' }, () => {
    throw new Error('the drawer with the key to it');
  });
  server.resource(
    'notes://{id}',
    {
      name: 'note',
      mimeType: 'text/plain',
      complete: { id: (typed) => Object.keys(NOTES).filter((id) => id.startsWith(typed)) },
    },
    ({ uri, variables }) => {
      const note = NOTES[String(variables.id)];
      if (note === undefined) throw new ProtocolError(ErrorCode.ResourceNotFound, 'Resource not found', { uri });
      return note;
    },
  );
  server.prompt(
    'review',
    {
      description: 'Reviews code',
      arguments: [{ name: 'code', required: true }, { name: 'language' }, { name: 'framework' }],
      complete: {
        language: (typed) => ['go', 'python', 'pascal'].filter((language) => language.startsWith(typed)),
        framework: (_, { language }) => (language === 'python' ? ['flask', 'django'] : []),
        code: () => Array.from({ length: 150 }, (_, index) => `line ${index}`),
      },
    },
    ({ code, language = 'any' }) => `Review this ${language}: ${code}`,
  );
  server.prompt('pictures', {}, () => [
    { role: 'user', content: image('aW1hZ2U=', 'image/png') },
    { role: 'assistant', content: audio('c291bmQ=', 'audio/wav') },
    { role: 'user', content: embedded('notes://2', 'two', 'text/plain') },
  ]);
}
