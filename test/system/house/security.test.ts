/** docs/security.md holds: each id of its table is in the tests that it names, every id that was promised is there, and a server calls nobody. */
import { readdirSync } from 'node:fs';
import { dirname, join, posix, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { broken, promisesOf, read, withoutQuickTest } from './promises.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
const test = suite('the table of security');

/** What the work on HTTP promised to hold; R-07 is two. */
const PROMISED = [
  'R-05 R-06 R-07a R-07b R-08 R-09 R-10 R-23 R-24 R-25 R-31',
  'S-03 S-05 S-06 S-07 S-08 S-09 S-10 S-11 S-20 S-21 S-22 S-23 S-28',
  'CVE-2026-25536 CVE-2026-0621 CVE-2025-66414 CVE-2025-66416 CVE-2026-34742 CVE-2026-35568 GHSA-89vp-x53w-74fx CVE-2026-35577',
  'CVE-2026-33252 CVE-2026-27896 CVE-2026-33946 GHSA-jpw9-pfvf-9f58 CVE-2025-6515 GHSA-9pj6-vhgr-3mwh CVE-2025-53366 CVE-2025-53365',
  'CVE-2026-39313 GHSA-33f5-2c5q-wgwj GHSA-9g45-5xwm-f3wc CVE-2025-6514 CVE-2025-49596 CVE-2025-58444 CVE-2026-23744',
  'GHSA-c2jp-c369-7pvx CVE-2025-62800 CVE-2025-62801 CVE-2026-32871 CVE-2026-26118 GHSA-g53w-w6mj-hrpp',
].flatMap((line) => line.split(' '));

const rows = promisesOf('docs/security.md');

test('every id that was promised has one row', () => {
  const ids = rows.flatMap((row) => row.ids);
  assert.equal(
    PROMISED.filter((id) => !ids.includes(id)),
    [],
  );
  assert.equal(
    ids.filter((id, index) => ids.indexOf(id) !== index),
    [],
  );
});

test('each id is in a test that its row names, and each of these tests has one of its ids', () => {
  assert.equal(broken(rows), []);
});

test('each id has a test in a quick run', () => {
  assert.equal(withoutQuickTest(rows), []);
});

test('a row without a test says why it needs none', () => {
  for (const { ids, what, files } of rows)
    assert.is(files.length === 0, /^not (ours|yet): ./.test(what), ids.join(', '));
});

test('CVE-2025-6514, CVE-2026-26118, CVE-2026-30615, GHSA-9g45-5xwm-f3wc: only the command line and the client start processes or connect, and no server asks another than an issuer or a callback', () => {
  const files = readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })
    .map((file) => posix.join('src', file.split(sep).join('/')))
    .filter((file) => file.endsWith('.ts'));
  // A node connects to the nodes of its own cluster, whose addresses are in its store (S-53).
  const LINK = /^src\/features\/cluster\/link\//;
  const told = /^src\/(cli\/|client\/(channels\/|browser\.ts$)|core\/transports\/socket-path\.ts$)/;
  // A client connects to the servers that its program names.
  const CLIENT = /^src\/client\/(channels|oauth)\//;
  // What the issuers of `troupe/oauth` name passes the guard of this file (G-09).
  const GUARDED = 'src/features/oauth/issuers/guarded-fetch.ts';
  // The callbacks of clients pass the guard of this one (S-134).
  const CALLBACKS = 'src/features/events/delivery/callback-sender.ts';
  // `troupe top` asks the inspector that its user names, on 127.0.0.1 and nowhere else.
  const TOP = 'src/cli/serving/inspector-requests.ts';
  // The database whose URL the operator gives to `postgres()`.
  const DATABASE = 'src/features/postgres/postgres-connection.ts';
  const wrong: string[] = [];
  for (const file of files) {
    const text = read(file).replace(/\/\*[\s\S]*?\*\//g, '');
    const imported = [...text.matchAll(/^import (?!type)([^;]*?) from '(node:[^']+)'/gm)];
    for (const [, names = '', from = ''] of imported) {
      if (CLIENT.test(file) || LINK.test(file) || file === GUARDED || file === CALLBACKS) continue;
      if (/^node:(https|http2|dgram|tls|dns)/.test(from)) wrong.push(`${file} imports ${from}`);
      if (from === 'node:http' && file !== TOP && /\b(request|get|Agent)\b/.test(names))
        wrong.push(`${file} imports ${names}`);
      if (told.test(file) || file === DATABASE) continue;
      if (from === 'node:child_process') wrong.push(`${file} starts processes`);
      if (from === 'node:net' && /\b(connect|createConnection|Socket)\b/.test(names.replace(/type \w+/g, '')))
        wrong.push(`${file} connects`);
    }
    // The health check of a container asks its own server, in a text that the command writes.
    if (file === 'src/cli/setup/container-files.ts') continue;
    // `troupe check --online` asks npm and the domain that its user names.
    if (file === 'src/cli/check/online-facts.ts') continue;
    // `fetch(request: Request)` is what a mounted server has; calling one is another matter.
    if (/(?<![.\w])fetch\((?!request: Request)|globalThis\.fetch/.test(text)) wrong.push(`${file} calls fetch`);
  }
  assert.equal(wrong, []);
});
