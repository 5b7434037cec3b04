/** `troupe top` and an untrusted program on the port: its error is shown as plain text. */
import { createServer } from 'node:http';
import * as assert from 'uvu/assert';
import { FrameStream } from '../../src/cli/top/frame-stream.ts';
import { suite } from '../harness/door.ts';

const test = suite('troupe top, the stream');

test('an error is truncated and contains no control characters', async () => {
  const error = `\u001b]0;owned\u0007\u001b[31mred\u202e${'x'.repeat(100_000)}`;
  const server = createServer((_, response) => {
    response.writeHead(401, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error }));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  const address = server.address();
  const port = typeof address === 'object' ? address?.port : undefined;
  const stream = new FrameStream({
    url: new URL(`http://127.0.0.1:${port}/#token`),
    since: () => 0,
    onFrame: () => {},
    onStatus: () => {},
  });
  const told = await stream.once().then(
    () => 'it was not refused',
    (refused: Error) => refused.message,
  );
  assert.match(told, /rejected the request: ·\]0;owned··\[31mred·xxx/);
  assert.ok(told.length < 1_000, String(told.length));
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});
