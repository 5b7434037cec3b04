/** S-28: a line of 100 MB, on stdio and on a socket, is told to be too long, skipped, and costs next to no memory. */
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, type Readable, type Writable } from 'node:stream';
import * as assert from 'uvu/assert';
import { createServer, type Server, socket, stdio } from '../../../src/index.ts';
import { suite } from '../../harness/door.ts';

const test = suite('long lines');

const CHUNK = Buffer.alloc(65_536, 'x');
const BYTES = 1_600 * CHUNK.length;

function server(): Server {
  return createServer({ name: 'lines', version: '1.0.0', log: () => {} });
}

/** Sends the line, then a request. @returns the first two lines that come back, and the most memory that it took meanwhile */
async function send(to: Writable, from: Readable): Promise<{ lines: readonly string[]; peak: number }> {
  const heard = (async () => {
    const lines: string[] = [];
    let rest = '';
    for await (const chunk of from) {
      rest += String(chunk);
      lines.push(...rest.split('\n').slice(0, -1));
      rest = rest.slice(rest.lastIndexOf('\n') + 1);
      if (lines.length >= 2) break;
    }
    return lines;
  })();
  const before = process.memoryUsage().rss;
  let peak = 0;
  for (let sent = 0; sent < BYTES; sent += CHUNK.length) {
    if (!to.write(CHUNK)) await new Promise((resolve) => to.once('drain', resolve));
    peak = Math.max(peak, process.memoryUsage().rss - before);
  }
  to.write('\n{"jsonrpc":"2.0","id":1,"method":"ping"}\n');
  return { lines: await heard, peak };
}

function judge({ lines, peak }: Awaited<ReturnType<typeof send>>): void {
  const [refusal, answer] = lines.map((line) => JSON.parse(line));
  assert.is(refusal.error.code, -32600);
  assert.match(refusal.error.message, `a message of ${BYTES} bytes`);
  assert.match(refusal.error.message, 'maxMessageBytes');
  assert.is(answer.id, 1);
  assert.equal(answer.result, {});
  // The limit is 4 MiB; the rest is chunks that were read and not yet collected.
  assert.ok(peak < 48 * 2 ** 20, `${peak} bytes`);
}

test('S-28: on stdio', async () => {
  const [input, output] = [new PassThrough(), new PassThrough()];
  const served = server();
  await served.listen(stdio({ input, output }));
  judge(await send(input, output));
  await served.close();
});

test('S-28: on a socket', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-long-'));
  const path = process.platform === 'win32' ? `\\\\.\\pipe\\troupe-long-${process.pid}` : join(folder, 's.sock');
  const served = server();
  await served.listen(socket(path));
  const client = connect(path);
  judge(await send(client, client));
  client.destroy();
  await served.close();
  rmSync(folder, { recursive: true });
});
