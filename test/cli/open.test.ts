/** `troupe open`: a recording in the inspector, without a server, behind the same guard. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';
import { Running, troupe } from './in-process.ts';

const test = suite('troupe open');
const folder = mkdtempSync(join(tmpdir(), 'troupe-open-'));
test.after(() => rmSync(folder, { recursive: true, force: true }));

const HEAD = '{"format":"troupe-recording","version":1,"frames":[';
const HELLO =
  '{"type":"hello","format":1,"server":{"name":"shop","version":"1"},"troupe":"0.1.0","pid":1,"epoch":0,"now":0,"control":false,"live":false}';
const CREATED =
  '{"type":"records","records":[{"seq":1,"at":1,"cause":0,"type":"created","actor":"server","kind":"server"}]}';

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

async function shown(path: string): Promise<string> {
  const cli = new Running(['open', path, '--no-open'], { raw: true });
  await cli.said('/#');
  const [, base = '', token = ''] = /(http:\/\/127\.0\.0\.1:\d+)\/#([\w-]{43})\n/.exec(cli.err) ?? [];
  assert.is((await fetch(`${base}/`)).status, 200);
  const stream = `${base}/api/stream?viewer=x&since=0`;
  assert.is((await fetch(stream)).status, 401);
  const authorization = `Bearer ${token}`;
  assert.is((await fetch(stream, { headers: { authorization, origin: 'http://evil.example' } })).status, 403);
  assert.is((await fetch(`${base}/api/look?actor=server`, { headers: { authorization } })).status, 404);
  const response = await fetch(stream, { headers: { authorization } });
  assert.is(response.headers.get('content-type'), 'application/json');
  const text = await response.text();
  cli.signal('SIGTERM');
  assert.is(await cli.exit, 0);
  return text;
}

const refused = (...args: readonly string[]) => troupe(['open', ...args, '--no-open']);

test('a recording is served with the page, behind the token', async () => {
  const whole = `${HEAD}\n${HELLO},\n${CREATED}\n]}\n`;
  assert.is(await shown(file('run.json', whole)), whole);
});

test('a recording whose process was killed opens, and so does a compressed one', async () => {
  const cut = `${HEAD}\n${HELLO},\n${CREATED},\n{"type":"rec`;
  assert.is(await shown(file('cut.json.gz', gzipSync(cut))), cut);
});

test('a file that cannot be shown gets one line with the reason', async () => {
  const cases: readonly (readonly [string, string | Uint8Array, RegExp])[] = [
    ['page.html', '<!doctype html>', /expected a recording of version 1, got other text/],
    ['other.json', '{"a":1}', /expected a recording of troupe, got other JSON/],
    [
      'new.json',
      '{"format":"troupe-recording","version":9,"frames":[]}',
      /expected a recording of version 1, got version 9/,
    ],
    ['empty.json', `${HEAD}\n`, /damaged: expected frames, got none/],
    ['torn.json', `${HEAD}\n${CREATED}\n]}`, /damaged: expected the hello frame first, got records/],
    ['bad.json', `${HEAD}\n${HELLO},\n{"type":"records","records":7}\n]}`, /damaged: frame 2 \(records\) is invalid/],
    ['short.gz', gzipSync('x'.repeat(1_000)).subarray(0, 20), /compressed, and cannot be decompressed/],
  ];
  for (const [name, content, why] of cases) {
    const { code, err } = await refused(file(name, content));
    assert.is(code, 1, name);
    assert.match(err, why, name);
    assert.match(err, /^troupe open: [^\n]+\n$/, `${name}: one line`);
  }
  const missing = await refused(join(folder, 'none.json'));
  assert.equal([missing.code, /no such file/.test(missing.err)], [2, true]);
});

test('wrong arguments are rejected with what is right', async () => {
  for (const [args, why] of [
    [[], /expected one RECORDING, got none/],
    [['a.json', '--port', 'x'], /--port: expected a whole number from 0 to 65535, got x/],
    [['a.json', '--prot', '1'], /did you mean --port\?/],
  ] as const) {
    const { code, err } = await refused(...args);
    assert.is(code, 2);
    assert.match(err, why);
  }
  assert.match((await troupe(['opn', 'a.json'])).err, /did you mean open\?/);
});
