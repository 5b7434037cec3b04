/** The address and the options of a store in PostgreSQL: no text contains the password. */
import { inspect } from 'node:util';
import * as assert from 'uvu/assert';
import { ArrayParameter, type ColumnType } from '../../../src/features/postgres/array-parameter.ts';
import { fromColumnText, toColumnText } from '../../../src/features/postgres/column-text.ts';
import { PostgresAddress } from '../../../src/features/postgres/postgres-address.ts';
import { postgresError } from '../../../src/features/postgres/postgres-faults.ts';
import { suite } from '../../harness/door.ts';

const test = suite('the address of a PostgreSQL database');

test('the label is host and database, and no text of an address contains its password', () => {
  const labels: readonly (readonly [string, string])[] = [
    ['postgres://ann:s3cret@db.example.com/shop', 'db.example.com/shop'],
    ['postgresql://ann:s3cret@db.example.com:5432/shop?sslmode=verify-full', 'db.example.com/shop'],
    ['postgres://ann:s3cret@127.0.0.1:5433/shop', '127.0.0.1:5433/shop'],
    ['postgres:///shop?host=/run/postgresql&user=ann&password=s3cret', '/run/postgresql/shop'],
    ['postgres://ann:s3cret@db.example.com', 'db.example.com'],
  ];
  for (const [url, label] of labels) {
    const address = new PostgresAddress(url);
    assert.is(address.label, label);
    assert.is(address.url, url);
    for (const text of [inspect(address, { showHidden: true }), JSON.stringify(address), String(address)])
      assert.not.ok(text.includes('s3cret'), text);
  }
});

test('a text that is no address is rejected without quoting it', () => {
  const unencoded = ['1/s3cret', '1?s3cret', '1#s3cret'].map((password) => `postgres://ann:${password}@db/shop`);
  const unfinished = ['postgres:ann:s3cret@db/shop', 'postgres:/ann:s3cret@db/shop'];
  const others = ['', 'db/shop:s3cret', 'mysql://ann:s3cret@db/shop', 'postgres://ann:s3cret@db:port/shop'];
  const twoHosts = ['postgres://ann:s3cret@db1,db2/shop', 'postgres://ann:s3cret@db1:5432,db2:5432/shop'];
  for (const url of [...others, ...unencoded, ...unfinished, ...twoHosts]) {
    try {
      new PostgresAddress(url, 'session');
      assert.unreachable(url);
    } catch (error) {
      assert.instance(error, TypeError);
      assert.match(String(error), /postgres: session: expected the URL of a database/);
      assert.not.ok(inspect(error).includes('s3cret'), inspect(error));
    }
  }
});

test('the states of PostgreSQL map to faults of the store, and the detail of an error is left out', () => {
  const failing = (code: string): Error => Object.assign(new Error('it failed'), { code, detail: 'Key (a)=(s3cret)' });
  const faults = ['53100', '53300', '40P01', '57P01', '23505', 'ECONNREFUSED'].map((code) => {
    const error = postgresError(failing(code), 'db/shop');
    assert.not.ok(inspect(error).includes('s3cret'));
    return `${code} ${error.fault}`;
  });
  assert.equal(faults, [
    '53100 full',
    '53300 busy',
    '40P01 busy',
    '57P01 failed',
    '23505 failed',
    'ECONNREFUSED failed',
  ]);
});

test('an error of a transaction pooler names the option that is missing', () => {
  for (const code of ['42P05', '26000'])
    assert.match(
      postgresError(Object.assign(new Error('prepared statement "load" already exists'), { code }), 'db').message,
      'session: directUrl',
    );
});

test('a text without meaning to PostgreSQL is stored and read as it was', () => {
  for (const text of ['', 'plain', 'a\0b', '\u0001z', '\0\u0001o\u0001', 'NULL', '{"a":"\\"}'])
    assert.is(fromColumnText(toColumnText(text)), text);
});

test('an array is sent as the bytes that PostgreSQL reads, without an escape', () => {
  const head = (size: number, id: number, hasNull = 0): string =>
    [1, hasNull, id, size, 1].map((number) => number.toString(16).padStart(8, '0')).join('');
  const cases: readonly (readonly [ColumnType, readonly (string | number | undefined)[], string])[] = [
    ['text', [], '000000000000000000000019'],
    ['text', ['', 'a"\\'], `${head(2, 25)}0000000000000003${Buffer.from('a"\\').toString('hex')}`],
    ['text', ['é\0', undefined], `${head(2, 25, 1)}00000004c3a9017affffffff`],
    ['smallint', [1_023], `${head(1, 21)}0000000203ff`],
    ['int', [-2], `${head(1, 23)}00000004fffffffe`],
    ['bigint', [Number.MAX_SAFE_INTEGER], `${head(1, 20)}00000008001fffffffffffff`],
    ['float8', [1.5, undefined], `${head(2, 701, 1)}000000083ff8000000000000ffffffff`],
  ];
  for (const [type, values, expected] of cases) {
    const array = new ArrayParameter(type);
    for (const value of values) array.add(value);
    assert.is(array.toBuffer().toString('hex'), expected);
  }
  const long = new ArrayParameter('text');
  for (let n = 0; n < 1_000; n += 1) long.add('€'.repeat(10));
  assert.is(long.toBuffer().length, 20 + 1_000 * (4 + 30));
  assert.throws(() => new ArrayParameter('bigint').add(1.5), /1\.5/);
});
