/** Callbacks over TLS: the certificate decides, by its name, its time and its authority. The authorities are made here. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import * as assert from 'uvu/assert';
import { CertificateAuthority } from '../../../harness/certificates.ts';
import { startable } from '../../../harness/compiled.ts';
import { suite } from '../../../harness/door.ts';
import { inTime, until } from '../../../harness/wait.ts';

const test = suite('callbacks over TLS');
const folder = mkdtempSync(join(tmpdir(), 'troupe-tls-'));
const opened: Server[] = [];
test.after(() => {
  for (const server of opened) server.closeAllConnections();
  for (const server of opened) server.close();
  rmSync(folder, { recursive: true, force: true });
});

interface Posted {
  readonly type: unknown;
  readonly host: string | undefined;
}

test('S-134: a callback whose certificate has another name, is too old or too new, or of an unknown authority, is tls_error and gets nothing', async () => {
  const [trusted, unknown] = [new CertificateAuthority('trusted'), new CertificateAuthority('unknown')];
  const day = 86_400_000;
  const cases = {
    right: trusted.issue({ name: 'localhost' }),
    'of another name': trusted.issue({ name: 'other.example' }),
    expired: trusted.issue({ name: 'localhost', from: new Date(Date.now() - 2 * day), to: new Date(Date.now() - day) }),
    'not valid yet': trusted.issue({
      name: 'localhost',
      from: new Date(Date.now() + day),
      to: new Date(Date.now() + 2 * day),
    }),
    'of an unknown authority': unknown.issue({ name: 'localhost' }),
  };
  const posted: Record<string, Posted[]> = {};
  const urls: string[] = [];
  for (const [title, certificate] of Object.entries(cases)) {
    const posts: Posted[] = [];
    posted[title] = posts;
    const server = createServer(certificate, async (request, response) => {
      let text = '';
      for await (const part of request) text += String(part);
      const { type, challenge } = JSON.parse(text);
      posts.push({ type, host: request.headers.host });
      response.end(JSON.stringify({ challenge }));
    });
    opened.push(server);
    server.listen(0, 'localhost');
    await once(server, 'listening');
    urls.push(`https://localhost:${(server.address() as AddressInfo).port}/hook`);
  }
  const authority = join(folder, 'ca.pem');
  writeFileSync(authority, trusted.cert);
  const child = spawn(process.execPath, [startable('test/fixtures/events/subscribing.ts'), ...urls], {
    env: { ...process.env, NODE_EXTRA_CA_CERTS: authority },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const reasons: string[] = [];
  createInterface({ input: child.stdout }).on('line', (line) => reasons.push(line));
  await until(
    () => reasons.length === urls.length,
    () => `five answers, got ${reasons.join()}`,
  );
  assert.equal(reasons, ['ok', ...Array(4).fill('tls_error')]);
  await until(() => posted.right?.length === 2, 'the event');
  assert.equal(
    posted.right?.map(({ type, host }) => [type, `https://${host}/hook`]),
    [
      ['verification', urls[0]],
      [undefined, urls[0]],
    ],
  );
  assert.equal(Object.values(posted).flat().length, 2);
  const gone = once(child, 'exit');
  child.stdin.end();
  await inTime(gone, 'the server to end');
});
