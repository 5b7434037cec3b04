/** R-31, CVE-2025-53366: the HTTP transport under hostile requests. Each is answered, nothing is a fault of the server's, nothing is left behind. */
import { fileURLToPath } from 'node:url';
import * as fc from 'fast-check';
import * as assert from 'uvu/assert';
import { LEGACY_REVISIONS } from '../../../src/core/protocol/revisions.ts';
import { http } from '../../../src/index.ts';
import { answered, call } from '../../core/http/modern.ts';
import { Raw, type RawResponse } from '../../core/http/raw.ts';
import { openSession, textIn } from '../../core/http/support.ts';
import { suite } from '../../harness/door.ts';
import { atScale } from '../../harness/scale.ts';
import { busy } from './conversation.ts';
import { bytesOf, type HttpInput, httpInput, type Known } from './http-requests.ts';
import { openTarget, type Target } from './target.ts';

const INPUTS = atScale({ quick: 500, full: 8_000, proof: 20_000 });
const CHUNK = Math.min(INPUTS, 1_000);
const LANES = 8;
const seed = Number(process.env.TROUPE_FUZZ_SEED ?? 20_261_121);
process.stdout.write(`fuzz seed ${seed} (TROUPE_FUZZ_SEED chooses another)\n`);

const test = suite('hostile HTTP');

const uncaught: unknown[] = [];
const keep = (error: unknown): void => void uncaught.push(error);
test.before(() => {
  process.on('unhandledRejection', keep);
  process.on('uncaughtException', keep);
});
test.after(() => {
  process.off('unhandledRejection', keep);
  process.off('uncaughtException', keep);
});

const SECRETS = [fileURLToPath(new URL('../../../', import.meta.url)).slice(0, -1), process.execPath];
const STACK = /\n\s+at |\\n\s+at |node:internal|node_modules|\.[cm]?[jt]s:\d+/;

class Fuzzer implements Known {
  readonly sessions: string[] = [];
  readonly events: string[] = [];
  readonly statuses = new Map<number, number>();
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  knows(session: string): void {
    if (!this.sessions.includes(session) && this.sessions.unshift(session) > 50) this.sessions.pop();
  }

  /** Sends each in turn, on one connection for as long as the server keeps it. */
  async lane(inputs: readonly HttpInput[]): Promise<void> {
    let raw = await Raw.open(this.#url);
    for (const input of inputs) {
      if (raw.over) raw = await Raw.open(this.#url);
      const bytes = bytesOf(input, this);
      raw.socket.write(bytes, 'latin1');
      if (input.leaves) {
        raw.cut();
        raw = await Raw.open(this.#url);
        continue;
      }
      try {
        if (!(await this.#one(raw, input, bytes))) {
          raw.cut();
          raw = await Raw.open(this.#url);
        }
      } catch (error) {
        throw new Error(`${String(error)}\n  to ${JSON.stringify(bytes.slice(0, 2_000))}`);
      }
    }
    raw.cut();
  }

  /** @returns whether the connection may carry the next request */
  async #one(raw: Raw, { method }: HttpInput, bytes: string): Promise<boolean> {
    // A GET that opens a stream has no end, and an answer to HEAD no body.
    const headAlone = method === 'GET' || method === 'HEAD';
    if (headAlone) await raw.until('a response', (text) => text.includes('\r\n\r\n'));
    const head = headAlone ? raw.text : '';
    if (headAlone && (method === 'HEAD' || (head.startsWith('HTTP/1.1 200 ') && head.includes('text/event-stream')))) {
      this.#judge({ status: Number(head.slice(9, 12)), headers: {}, body: '' }, head, bytes);
      return false;
    }
    const response = await raw.response();
    this.#judge(response, JSON.stringify(response.headers) + response.body, bytes);
    return response.headers.connection !== 'close';
  }

  #judge({ status, headers, body }: RawResponse, said: string, bytes: string): void {
    this.statuses.set(status, (this.statuses.get(status) ?? 0) + 1);
    assert.ok(status >= 200 && status < 500, `status ${status}: ${body}`);
    const type = headers['content-type'] ?? '';
    if (type.startsWith('application/json')) {
      for (const message of [JSON.parse(body)].flat()) assert.is(message.jsonrpc, '2.0', body);
      if (status >= 400) assert.ok([JSON.parse(body)].flat()[0]?.error, body);
    } else if (type.startsWith('text/event-stream')) {
      for (const [, data = ''] of body.matchAll(/^data: ?(\S.*)$/gm))
        assert.is([JSON.parse(data)].flat()[0].jsonrpc, '2.0');
      for (const [, id = ''] of body.matchAll(/^id: ?(\S.*)$/gm)) this.events.unshift(id);
      this.events.length = Math.min(this.events.length, 50);
    } else if (status === 200 && bytes.startsWith('POST /mcp')) throw new Error(`200 with content type "${type}"`);
    // Most of what comes for a session that has ended is the same.
    const ended =
      bytes.startsWith('DELETE') && status === 204 ? /^Mcp-Session-Id: (\S+)/im.exec(bytes)?.[1] : undefined;
    if (ended !== undefined) this.sessions.splice(this.sessions.indexOf(ended) >>> 0, 1);
    const session = headers['mcp-session-id'];
    if (session !== undefined) this.knows(session);
    const secret = SECRETS.find((each) => said.includes(each) && !bytes.includes(each));
    assert.is(secret, undefined, said);
    assert.ok(!STACK.test(said) || STACK.test(bytes), said);
  }
}

async function worksStill(target: Target, url: string): Promise<void> {
  const result = await answered(await call(url, 'echo', { text: 'still here' }));
  assert.equal(result.content, [{ type: 'text', text: 'still here' }]);
  const session = await openSession(url);
  assert.is(textIn(await (await session.call(1, 'echo', { text: 'here, too' })).json()), 'here, too');
  assert.is((await session.delete()).status, 204);
  assert.equal(busy(target.server), []);
}

test(`${INPUTS} hostile requests: each is answered, none with a fault of the server's, and a good one works after them`, async () => {
  const target = await openTarget();
  const transport = http({ port: 0, allowedOrigins: ['https://app.example.com'] });
  await target.server.listen(transport);
  const fuzzer = new Fuzzer(transport.url);
  // Calls that wait end soon.
  const releasing = setInterval(() => target.release(), 5);
  try {
    for (let done = 0; done < INPUTS; done += CHUNK) {
      const inputs = fc.sample(httpInput, { seed: seed + done, numRuns: CHUNK });
      for (const revision of LEGACY_REVISIONS) fuzzer.knows((await openSession(transport.url, revision)).id);
      const lanes = Array.from({ length: LANES }, (_, lane) => inputs.filter((_, index) => index % LANES === lane));
      await Promise.all(lanes.map((lane) => fuzzer.lane(lane)));
    }
    process.stdout.write(`statuses: ${JSON.stringify(Object.fromEntries(fuzzer.statuses))}\n`);
    // Those that left have been noticed once somebody who came later is answered.
    await answered(await call(transport.url, 'echo', { text: 'x' }));
  } finally {
    clearInterval(releasing);
  }
  target.release();
  await worksStill(target, transport.url);
  assert.equal(target.told, []);
  assert.equal(uncaught, []);
  assert.is(({} as { polluted?: unknown }).polluted, undefined);
  for (const status of [200, 202, 400, 403, 404, 405, 406, 415])
    assert.ok(fuzzer.statuses.has(status), `never ${status}`);
  await target.server.close();
});
