/** The client with servers of other projects, over stdio and HTTP: everything that each of them offers. */
import { mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { type Client, type ConnectOptions, connect, ErrorResponse } from 'troupe/client';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { failure } from './fixture.ts';
import { havePeers, peerCommand, processesOf, serveEverything, servePeer } from './peers.ts';

const test = suite('the client with other servers');

/** Slow machines start a process slowly: these are limits of the tests, not of the client. */
const PATIENT = { connectMs: 60_000, probeMs: 60_000 } as const;

const ROOT = 'file:///home/ada/tea';

function textOf({ content }: { readonly content: readonly object[] }): string {
  const [first] = content;
  if (!first || !('text' in first) || typeof first.text !== 'string')
    throw new Error(`expected a text, got ${JSON.stringify(content)}`);
  return first.text;
}

/** The properties of a peer that are not those of all. */
interface Peer {
  readonly file: string;
  readonly era: 'legacy' | 'modern';
  /** Tools of the script that do not work over HTTP, for a reason of the peer's library. */
  readonly notOverHttp?: readonly string[];
  /** FastMCP has no structured content. */
  readonly structured?: false;
}

const PEERS: readonly Peer[] = [
  { file: 'v1.mjs', era: 'legacy' },
  { file: 'v2.mjs', era: 'modern' },
  // Over HTTP it waits for the client's capabilities before it reads `initialize`, and then lists no roots.
  { file: 'fastmcp.mjs', era: 'legacy', notOverHttp: ['roots'], structured: false },
  { file: 'tmcp.mjs', era: 'modern' },
];

/** Runs the body against a peer, and checks that nothing of the peer is left. */
async function withPeer(
  { file }: Peer,
  way: 'stdio' | 'http',
  options: ConnectOptions,
  body: (client: Client) => Promise<void>,
): Promise<void> {
  if (way === 'http') {
    const served = await servePeer(file);
    try {
      const client = await connect(served.url, { ...PATIENT, ...options });
      await body(client);
      await client.close();
      assert.is(client.state, 'closed');
    } finally {
      await served.close();
    }
    return;
  }
  const command = peerCommand(file, ['stdio']);
  const client = await connect(command, { ...PATIENT, ...options });
  try {
    await body(client);
  } finally {
    await client.close();
  }
  assert.is(client.state, 'closed');
  assert.equal(processesOf(command.mark), []);
}

/** The script: one conversation with everything that the peer has. */
async function converse(client: Client, peer: Peer, way: 'stdio' | 'http'): Promise<void> {
  assert.is(client.server.era, peer.era);
  assert.is(client.server.name, peer.file.replace('.mjs', ''));
  const names = (await client.tools()).map(({ name }) => name);
  const missing = way === 'http' ? (peer.notOverHttp ?? []) : [];
  const has = (name: string): boolean => names.includes(name) && !missing.includes(name);
  const sum = await client.call('add', { a: 2, b: 3 });
  if (peer.structured === false) assert.is(textOf(sum), '5');
  else assert.equal(sum.structuredContent, { sum: 5 });

  const seen: number[] = [];
  const counted = await client.call('count', { n: 3 }, { onProgress: ({ progress }) => seen.push(progress) });
  assert.is(textOf(counted), 'counted');
  assert.equal(seen, [1, 2, 3]);

  if (has('ask')) assert.is(textOf(await client.call('ask')), 'accept large');
  if (has('sample')) assert.is(textOf(await client.call('sample')), 'oolong');
  if (has('roots')) assert.is(textOf(await client.call('roots')), ROOT);
  if (has('fail')) assert.is((await client.call('fail')).isError, true);

  assert.equal(
    (await client.resources()).map(({ uri }) => uri),
    ['note://greeting'],
  );
  assert.equal(
    (await client.templates()).map(({ uriTemplate }) => uriTemplate),
    ['note://notes/{id}'],
  );
  assert.is(textOf({ content: (await client.read('note://greeting')).contents }), 'good day');
  assert.is(textOf({ content: (await client.read('note://notes/12')).contents }), 'note 12');
  assert.equal(
    (await client.prompts()).map(({ name }) => name),
    ['review'],
  );
  const { messages } = await client.prompt('review', { language: 'php' });
  assert.equal(
    messages.map(({ content }) => content),
    [{ type: 'text', text: 'Review php' }],
  );
  const language = { name: 'language', value: 'ph' };
  assert.equal((await client.complete({ prompt: 'review' }, language)).values, ['php']);
  const id = { name: 'id', value: '1' };
  assert.equal((await client.complete({ resource: 'note://notes/{id}' }, id)).values, ['12', '13']);

  if (has('wait')) {
    const controller = new AbortController();
    const waiting = failure(client.call('wait', {}, { signal: controller.signal }));
    // The peer reads in order, so that it runs `wait` before it answers this.
    await client.call('cancelled');
    controller.abort(new Error('no tea'));
    assert.is((await waiting).reason, 'cancelled');
    // Over HTTP, the end of the stream reaches the peer at a time of its own.
    while (textOf(await client.call('cancelled')) === '0');
  }

  const changes = client.changes({ tools: true });
  await client.call('grow');
  assert.equal((await changes.next()).value, { type: 'tools' });
  await changes.return();
  assert.is(textOf(await client.call('grown')), 'grown');
  assert.ok((await client.tools()).some(({ name }) => name === 'grown'));

  const error = await failure(client.request('no/such/method'));
  assert.ok(error instanceof ErrorResponse && error.code === -32601, String(error));
}

const ANSWERS: ConnectOptions = {
  elicit: () => ({}),
  sample: () => ({
    role: 'assistant',
    content: { type: 'text', text: 'oolong' },
    model: 'tea-1',
    stopReason: 'endTurn',
  }),
  roots: () => [{ uri: ROOT, name: 'tea' }],
};

/** The conversation with the reference server `everything`. */
async function converseWithEverything(client: Client): Promise<void> {
  assert.is(client.server.name, 'mcp-servers/everything');
  assert.match(String(client.server.instructions), 'Everything Server');
  assert.ok((await client.tools()).length > 10);
  assert.match(textOf(await client.call('get-sum', { a: 2, b: 3 })), '5');
  const { structuredContent } = await client.call('get-structured-content', { location: 'Chicago' });
  assert.is(typeof Object(structuredContent).temperature, 'number');
  const steps: number[] = [];
  await client.call(
    'trigger-long-running-operation',
    { duration: 0.02, steps: 2 },
    { onProgress: ({ progress }) => steps.push(progress) },
  );
  assert.equal(steps, [1, 2]);
  assert.match(JSON.stringify(await client.call('trigger-elicitation-request')), 'dark and stormy');
  const page = { url: 'https://tea.example/pay' };
  assert.is((await client.call('trigger-url-elicitation', page)).isError, undefined);
  // The same after the error -32042: the client opens the page that the error names, and calls again.
  assert.is((await client.call('trigger-url-elicitation', { ...page, errorPath: true })).isError, undefined);
  assert.match(textOf(await client.call('trigger-sampling-request', { prompt: 'tea' })), 'oolong');
  assert.match(textOf(await client.call('get-roots-list')), ROOT);
  // Its tool only runs as a task of 2025-11-25, which asks for input in between.
  const report = await client.call('simulate-research-query', { topic: 'python', ambiguous: true });
  assert.match(textOf(report), 'python (programming)');
  assert.is((await client.resources()).length, 7);
  assert.is((await client.templates()).length, 2);
  const { contents } = await client.read('demo://resource/dynamic/text/1');
  assert.match(textOf({ content: contents }), 'Resource 1');
  assert.ok((await client.prompts()).length >= 4);
  assert.is((await client.prompt('args-prompt', { city: 'Kyoto' })).messages.length, 1);
  const completed = await client.complete(
    { prompt: 'completable-prompt' },
    { name: 'name', value: 'A' },
    { department: 'Engineering' },
  );
  assert.equal(completed.values, ['Alice']);
  const controller = new AbortController();
  const long = failure(
    client.call('trigger-long-running-operation', { duration: 60, steps: 2 }, { signal: controller.signal }),
  );
  await client.call('echo', { message: 'tea' });
  controller.abort(new Error('no tea'));
  assert.is((await long).reason, 'cancelled');
}

const EVERYTHING_ANSWERS: ConnectOptions = {
  ...ANSWERS,
  elicit: ({ message }) => (message.includes('research') ? { interpretation: 'programming' } : { name: 'Ada' }),
  elicitUrl: () => 'accept',
};

async function withCommand(
  name: string,
  args: readonly string[],
  options: ConnectOptions & { readonly env?: Record<string, string> },
  body: (client: Client) => Promise<void>,
): Promise<void> {
  const command = peerCommand(`@modelcontextprotocol/${name}/dist/index.js`, args, options.env);
  const client = await connect(command, { ...PATIENT, ...options });
  try {
    await body(client);
  } finally {
    await client.close();
  }
  assert.equal(processesOf(command.mark), []);
}

if (!havePeers) test.skip('all of them', 'npm ci --prefix bench/peers installs them');
else {
  for (const peer of PEERS)
    for (const way of ['stdio', 'http'] as const)
      test(`speaks with ${peer.file} over ${way}`, () =>
        withPeer(peer, way, ANSWERS, (client) => converse(client, peer, way)));

  test('speaks with the reference server "everything" over stdio', () =>
    withCommand('server-everything', ['stdio'], EVERYTHING_ANSWERS, converseWithEverything));

  test('speaks with the reference server "everything" over HTTP', async () => {
    const served = await serveEverything();
    try {
      const client = await connect(served.url, { ...PATIENT, ...EVERYTHING_ANSWERS });
      await converseWithEverything(client);
      await client.close();
    } finally {
      await served.close();
    }
  });

  test('speaks with the reference server "filesystem", which takes its directories from the roots', async () => {
    const folder = realpathSync(mkdtempSync(join(tmpdir(), 'peers-')));
    try {
      const roots = (): { uri: string }[] => [{ uri: pathToFileURL(folder).href }];
      // A directory has to be named at the start; the roots replace it.
      await withCommand('server-filesystem', [tmpdir()], { ...ANSWERS, roots }, async (client) => {
        const path = join(folder, 'tea.txt');
        await client.call('write_file', { path, content: 'oolong' });
        assert.is(textOf(await client.call('read_text_file', { path })), 'oolong');
        assert.is(readFileSync(path, 'utf8'), 'oolong');
        assert.match(textOf(await client.call('list_allowed_directories')), folder);
        assert.is((await client.call('read_text_file', { path: join(folder, 'none') })).isError, true);
        assert.equal(await client.resources(), []);
        assert.equal(await client.prompts(), []);
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  test('speaks with the reference server "memory", and watches its resource', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'peers-'));
    try {
      const env = { MEMORY_FILE_PATH: join(folder, 'memory.json') };
      await withCommand('server-memory', [], { ...ANSWERS, env }, async (client) => {
        const [graph] = await client.resources();
        const uri = String(graph?.uri);
        const changes = client.changes({ resources: [uri] });
        const entities = [{ name: 'Ada', entityType: 'person', observations: ['drinks tea'] }];
        await client.call('create_entities', { entities });
        assert.equal((await changes.next()).value, { type: 'resource', uri });
        await changes.return();
        assert.match(textOf({ content: (await client.read(uri)).contents }), 'drinks tea');
        assert.match(JSON.stringify((await client.call('read_graph')).structuredContent), 'Ada');
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
}
