/** `troupe audit`: the records of a file or of a store, as text and as JSON, and its usage errors. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import * as assert from 'uvu/assert';
import { createServer, sqlite } from '../../src/index.ts';
import { connect } from '../../src/testing/testing.ts';
import { Tree } from '../features/discovery/tree.ts';
import { suite } from '../harness/door.ts';
import { until } from '../harness/wait.ts';
import { troupe } from './in-process.ts';

const test = suite('troupe audit');
const record = (at: string, principal: string, element: string, more = {}): string =>
  `${JSON.stringify({ at, node: 'pod-1', event: 'call', principal, element, outcome: 'ok', ms: 4, ...more })}\n`;
const EVE = '\x9b2J\u202eeve\x7f';
const tree = new Tree({
  'audit.jsonl': `${record('2026-02-01T00:00:00.000Z', 'ada', 'tool refund')}${record('2026-02-02T00:00:00.000Z', 'bob', 'tool \u001b[31mrefund')}${record('2026-02-02T00:00:01.000Z', 'eve', 'tool look', { event: 'denied', client: EVE })}{"cut`,
  'notes.txt': 'hello\n',
  'audit.jsonl.2026-01-31T00-00-00.000Z': record('2026-01-30T00:00:00.000Z', 'ada', 'tool look', { event: 'read' }),
});

const run = (...args: readonly string[]) => troupe(['audit', ...args], { cwd: tree.path });

test('prints the records of a file and of its predecessors, without control characters', async () => {
  const { code, out, err } = await run('audit.jsonl');
  assert.is(code, 0, err);
  assert.equal(out.split('\n'), [
    '2026-01-30T00:00:00.000Z  read  ada  tool look  ok  4 ms',
    '2026-02-01T00:00:00.000Z  call  ada  tool refund  ok  4 ms',
    '2026-02-02T00:00:00.000Z  call  bob  tool ·[31mrefund  ok  4 ms',
    '2026-02-02T00:00:01.000Z  denied  eve  tool look  ok  4 ms  by ·2J·eve·',
    '',
  ]);
  assert.match(err, /audit\.jsonl: skipped 1 line without an audit record/);
});

test('selects by principal, element and time, and prints JSON', async () => {
  const { out } = await run(
    'audit.jsonl',
    '--principal',
    'ada',
    '--element',
    'refund',
    '--since',
    '2026-01-31',
    '--json',
  );
  assert.is(out, record('2026-02-01T00:00:00.000Z', 'ada', 'tool refund'));
  assert.is((await run('audit.jsonl', '--since', '1d')).out, '');
  // Clients choose their names. Escapes are the same value for a program, and harmless to a terminal.
  const named = (await run('audit.jsonl', '--principal', 'eve', '--json')).out;
  assert.match(named, /^[\x20-\x7e]+\n$/);
  assert.is(JSON.parse(named).client, EVE);
  assert.match((await run('audit.jsonl', '--event', 'read')).out, /^\S+ {2}read {2}ada[^\n]+\n$/);
});

test('prints the records of a directory of --data, while its server runs and after it has stopped', async () => {
  const store = sqlite(join(tree.path, 'data', 'troupe.db'));
  const server = createServer({ name: 's', version: '1', store, audit: { to: 'store' }, log: () => {} });
  server.tool('pay', () => 'paid');
  const client = await connect(server);
  await client.modern('tools/call', { name: 'pay', arguments: {} });
  const events = async (...more: readonly string[]): Promise<readonly unknown[]> => {
    const { code, out, err } = await run('--data', 'data', '--json', ...more);
    assert.equal([code, err], [0, '']);
    return out.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line).event));
  };
  let seen: readonly unknown[] = [];
  // The answer to a call does not wait for its record.
  await until(async () => {
    seen = await events();
    return seen.length === 2;
  });
  assert.equal(seen, ['started', 'call']);
  // The server still owns its store.
  await client.modern('tools/call', { name: 'pay', arguments: {} });
  await until(async () => {
    seen = await events('--element', 'tool pay');
    return seen.length === 2;
  });
  assert.equal(seen, ['call', 'call']);
  await server.close();
  const files = () => ['troupe.db', 'troupe.db-mark'].map((name) => readFileSync(join(tree.path, 'data', name), 'hex'));
  const before = files();
  assert.equal(await events(), ['started', 'call', 'call', 'stopped']);
  assert.equal(files(), before);
});

test('names what is wrong with its arguments', async () => {
  for (const [args, expected] of [
    [[], 'expected FILE, --data DIR or --store URL, got none'],
    [['audit.jsonl', '--data', '.'], 'expected FILE, --data DIR or --store URL, got FILE and another'],
    [['audit.jsonl', '--store', 'postgres://a@b/c'], 'expected FILE, --data DIR or --store URL, got FILE and another'],
    [['--data', '.', '--store', 'postgres://a@b/c'], 'expected --data or --store, got both'],
    [['gone.jsonl'], 'expected FILE, got gone.jsonl: no such file'],
    [['audit.jsonl', '--since', 'soon'], '--since: expected a date, or a time such as 30m, 12h or 7d, got soon'],
    [['.'], 'expected FILE, got the directory .. For durable state, use --data'],
    [['audit.jsonl', '--event', 'calls'], '--event: expected one of denied, limited, call'],
    [['--data', '.'], '--data: there is no durable state in .'],
  ] as const) {
    const { code, err } = await run(...args);
    assert.is(code, 2);
    assert.match(err, `troupe audit: ${expected}`);
  }
});

test('a file without a record is an error, and options that no record matches are none', async () => {
  const other = await run('notes.txt');
  assert.equal([other.code, other.out], [1, '']);
  assert.match(
    other.err,
    'notes.txt has no audit record: expected a file that createServer({ audit: { to: path } }) writes',
  );
  const none = await run('audit.jsonl', '--principal', 'nobody');
  assert.equal([none.code, none.out], [0, '']);
  assert.match(none.err, 'no record matches the options');
});
