/** The conversations with servers of other projects: everything that each of them offers. */
import type { Client, ConnectOptions } from 'troupe/client';
import { ErrorResponse } from 'troupe/client';
import * as assert from 'uvu/assert';
import { clientError } from './fixture.ts';

/** Slow machines start a process slowly: these are limits of the tests, not of the client. */
export const PATIENT = { connectMs: 60_000, probeMs: 60_000 } as const;

export const ROOT = 'file:///home/ada/tea';

export function textOf({ content }: { readonly content: readonly object[] }): string {
  const [first] = content;
  if (!first || !('text' in first) || typeof first.text !== 'string')
    throw new Error(`expected a text, got ${JSON.stringify(content)}`);
  return first.text;
}

/** The properties of a peer that are not those of all. */
export interface Peer {
  readonly file: string;
  readonly era: 'legacy' | 'modern';
  /** Tools of the script that do not work over HTTP and behind a gateway, for a reason of the peer's library. */
  readonly notOverHttp?: readonly string[];
  /** FastMCP has no structured content. */
  readonly structured?: false;
}

export const PEERS: readonly Peer[] = [
  { file: 'v1.mjs', era: 'legacy' },
  { file: 'v2.mjs', era: 'modern' },
  // Over HTTP it waits for the client's capabilities before it reads `initialize`, and then lists no roots.
  { file: 'fastmcp.mjs', era: 'legacy', notOverHttp: ['roots'], structured: false },
  { file: 'tmcp.mjs', era: 'modern' },
];

/** The script: one conversation with everything that the peer has. */
/** What differs for a client behind a gateway. */
export interface Behind {
  /** Reports of progress may be left out, but not the last one. */
  readonly gathers: boolean;
  /** The session that is listed is that of the calls. */
  readonly listsIt: boolean;
}

const DIRECT: Behind = { gathers: false, listsIt: true };

export async function converse(client: Client, peer: Peer, way: 'stdio' | 'http', behind = DIRECT): Promise<void> {
  const { gathers } = behind;
  const names = (await client.tools()).map(({ name }) => name);
  const missing = way === 'http' || gathers ? (peer.notOverHttp ?? []) : [];
  const has = (name: string): boolean => names.includes(name) && !missing.includes(name);
  const sum = await client.call('add', { a: 2, b: 3 });
  if (peer.structured === false) assert.is(textOf(sum), '5');
  else assert.equal(sum.structuredContent, { sum: 5 });

  const seen: number[] = [];
  const counted = await client.call('count', { n: 3 }, { onProgress: ({ progress }) => seen.push(progress) });
  assert.is(textOf(counted), 'counted');
  assert.equal(gathers ? [seen[0], seen.at(-1)] : seen, gathers ? [1, 3] : [1, 2, 3]);

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
    const waiting = clientError(client.call('wait', {}, { signal: controller.signal }));
    // The peer reads in order, so that it runs `wait` before it answers this.
    await client.call('cancelled');
    controller.abort(new Error('no tea'));
    assert.is((await waiting).reason, 'cancelled');
    // Over HTTP, the end of the stream reaches the peer at a time of its own.
    while (textOf(await client.call('cancelled')) === '0');
  }

  const error = await clientError(client.request('no/such/method'));
  assert.ok(error instanceof ErrorResponse && error.code === -32601, String(error));
  if (!behind.listsIt) return;

  const changes = client.changes({ tools: true });
  await client.call('grow');
  assert.equal((await changes.next()).value, { type: 'tools' });
  await changes.return();
  assert.is(textOf(await client.call('grown')), 'grown');
  assert.ok((await client.tools()).some(({ name }) => name === 'grown'));
}

export const ANSWERS: ConnectOptions = {
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
export async function converseWithEverything(client: Client, gathers = false): Promise<void> {
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
  assert.equal(steps.slice(gathers ? -1 : 0), gathers ? [2] : [1, 2]);
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
  const long = clientError(
    client.call('trigger-long-running-operation', { duration: 60, steps: 2 }, { signal: controller.signal }),
  );
  await client.call('echo', { message: 'tea' });
  controller.abort(new Error('no tea'));
  assert.is((await long).reason, 'cancelled');
}

export const EVERYTHING_ANSWERS: ConnectOptions = {
  ...ANSWERS,
  elicit: ({ message }) => (message.includes('research') ? { interpretation: 'programming' } : { name: 'Ada' }),
  elicitUrl: () => 'accept',
};
