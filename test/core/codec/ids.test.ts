/** A request that is rejected before it is served gets its error by its id, on every transport and in every revision (R-40). */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import * as assert from 'uvu/assert';
import { META } from '../../../src/core/protocol/meta.ts';
import { LATEST_MODERN, LEGACY_REVISIONS, type Revision } from '../../../src/core/protocol/revisions.ts';
import { createServer, http, type Server, socket, stdio } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';
import { ask, type Headers, initialize } from '../http/support.ts';

const test = suite('ids of rejected requests');

const MAX_BYTES = 100_000;
const limits = { maxMessageBytes: MAX_BYTES, maxDepth: 16 };
const REVISIONS: readonly Revision[] = [...LEGACY_REVISIONS, LATEST_MODERN];

function serve(): Server {
  return createServer({ name: 'ids', version: '1.0.0', log: () => {}, limits });
}

const META_TEXT = JSON.stringify({ [META.protocolVersion]: LATEST_MODERN, [META.clientCapabilities]: {} });
const DEEP = `${'['.repeat(40)}1${']'.repeat(40)}`;
const LONG = `"${'x'.repeat(MAX_BYTES)}"`;

/** A request with these members of params, its id at the start or at the end. */
function request(revision: Revision, id: string, params: string, where: 'first' | 'last' = 'first'): string {
  const meta = revision === LATEST_MODERN ? `"_meta":${META_TEXT},` : '';
  const body = `"method":"tools/list","params":{${meta}${params}}`;
  return where === 'first' ? `{"jsonrpc":"2.0","id":${id},${body}}` : `{${body},"jsonrpc":"2.0","id":${id}}`;
}

/** What is rejected before anything is served of it. */
const REJECTED: readonly (readonly [what: string, params: string])[] = [
  ['too deep', `"a":${DEEP}`],
  ['too long', `"a":${LONG}`],
  ['too long and too deep', `"a":${DEEP},"b":${LONG}`],
  ['a key twice', '"a":1,"a":2'],
  ['__proto__', '"a":{"__proto__":1}'],
  ['constructor.prototype', '"constructor":{"prototype":{}}'],
  ['half of a surrogate pair', '"a":"\\ud800"'],
];

/** Lines in and out of one connection. */
class Lines {
  readonly #to: Writable;
  readonly #lines: AsyncIterator<string>;

  constructor(to: Writable, from: Readable) {
    this.#to = to;
    this.#lines = Lines.#read(from);
  }

  static async *#read(from: Readable): AsyncGenerator<string> {
    let rest = '';
    for await (const chunk of from) {
      rest += String(chunk);
      for (let end = rest.indexOf('\n'); end !== -1; end = rest.indexOf('\n')) {
        yield rest.slice(0, end);
        rest = rest.slice(end + 1);
      }
    }
  }

  say(text: string): void {
    this.#to.write(`${text}\n`);
  }

  async hear(): Promise<{ id?: unknown; result?: unknown; error?: { code: number } }> {
    const { value } = await this.#lines.next();
    return JSON.parse(value);
  }
}

async function talk(lines: Lines, revision: Revision): Promise<void> {
  if (revision !== LATEST_MODERN) {
    lines.say(JSON.stringify(initialize(revision, 'open')));
    assert.is((await lines.hear()).id, 'open');
    lines.say('{"jsonrpc":"2.0","method":"notifications/initialized"}');
  }
  let nth = 1;
  for (const [what, params] of REJECTED)
    for (const where of ['first', 'last'] as const)
      for (const id of [String(nth), `"id ${nth}"`]) {
        nth += 1;
        lines.say(request(revision, id, params, where));
        const { id: heard, error } = await lines.hear();
        assert.equal([heard, error?.code], [JSON.parse(id), -32600], `${what}, ${where}`);
      }
  // Each request of a batch that is rejected whole, and a response that belongs to nobody.
  const items = [1_001, 1_002].map((id) => request(revision, String(id), `"a":${DEEP}`));
  lines.say(`[${[...items, '{"jsonrpc":"2.0","id":9,"result":{}}', '7', '"x"'].join(',')}]`);
  const first: unknown = await lines.hear();
  const answers: unknown[] = Array.isArray(first) ? first : [first, await lines.hear()];
  assert.equal(
    answers.map((answer) => (answer as { id: unknown }).id),
    [1_001, 1_002],
  );
  assert.is(Array.isArray(first), revision === '2025-03-26');
  // Nobody is answered who asked for nothing.
  lines.say(`{"jsonrpc":"2.0","method":"notifications/x","params":{"a":${DEEP}}}`);
  lines.say(`{"jsonrpc":"2.0","method":"notifications/x","params":{"a":${LONG}}}`);
  lines.say(`{"jsonrpc":"2.0","id":5,"result":{"a":${LONG}}}`);
  lines.say(request(revision, '"last"', '"a":1'));
  assert.is((await lines.hear()).id, 'last');
}

for (const revision of REVISIONS) {
  test(`R-40: on stdio, in ${revision}`, async () => {
    const [input, output] = [new PassThrough(), new PassThrough()];
    const server = serve();
    await server.listen(stdio({ input, output }));
    await talk(new Lines(input, output), revision);
    await server.close();
  });

  test(`R-40: on a socket, in ${revision}`, async () => {
    const folder = mkdtempSync(join(tmpdir(), 'troupe-ids-'));
    const path = process.platform === 'win32' ? `\\\\.\\pipe\\troupe-ids-${process.pid}` : join(folder, 's.sock');
    const server = serve();
    await server.listen(socket(path));
    const client = connect(path);
    await talk(new Lines(client, client), revision);
    client.destroy();
    await server.close();
    rmSync(folder, { recursive: true });
  });

  test(`R-40: over HTTP, in ${revision}, and an error that has no id has no such member`, async () => {
    const server = serve();
    const transport = http({ port: 0 });
    await server.listen(transport);
    const { url } = transport;
    let headers: Headers = { 'mcp-protocol-version': revision, 'mcp-method': 'tools/list' };
    if (revision !== LATEST_MODERN) {
      const opened = await ask(url, { body: initialize(revision) });
      await opened.text();
      headers = { 'mcp-protocol-version': revision, 'mcp-session-id': String(opened.headers['mcp-session-id']) };
    }
    const reject = async (body: string, more: Headers = {}): Promise<Record<string, unknown>> => {
      const answer = await ask(url, { body, headers: { ...headers, ...more } });
      const text = await answer.text();
      assert.ok(answer.status === 400 || answer.status === 413, text);
      return JSON.parse(text);
    };
    const chunked = { 'content-length': undefined, 'transfer-encoding': 'chunked' };
    // The first that a session hears must not matter: nothing is known of its client before.
    const texts = ['{', '', 'tea', '{"jsonrpc":"2.0","id":1,', '7', '[]', '{"jsonrpc":"2.0","id":{},"method":"x"}'];
    for (const text of [...texts, '{"jsonrpc":"2.0","id":null,"method":"x"}', Buffer.from([0xff]).toString('latin1')])
      for (const more of [{}, { 'mcp-session-id': undefined }, { 'mcp-protocol-version': undefined }])
        assert.not.ok('id' in (await reject(text, more)), text);
    for (const [what, params] of REJECTED) {
      const long = what.startsWith('too long');
      assert.is((await reject(request(revision, '"a b"', params), long ? chunked : {})).id, 'a b', what);
      // It was not read, or not to its end.
      if (long) assert.not.ok('id' in (await reject(request(revision, '1', params))), what);
      else assert.is((await reject(request(revision, '7', params, 'last'))).id, 7, what);
    }
    assert.is((await reject(`[${request(revision, '3', `"a":${DEEP}`)}]`)).id, 3);
    const two = [3, 4].map((id) => request(revision, String(id), `"a":${DEEP}`));
    assert.not.ok('id' in (await reject(`[${two.join(',')}]`)));
    await server.close();
  });
}
