/** The store of tokens in a file: sealed, private, compared before it is replaced, and refreshed by one process at a time. */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileTokens, oauth, signOut } from 'troupe/client';
import * as assert from 'uvu/assert';
import { SimulatedClock } from '../../src/testing/simulated-clock.ts';
import { suite } from '../harness/door.ts';
import { assertRejects } from '../harness/results.ts';
import { atScale } from '../harness/scale.ts';
import { until } from '../harness/wait.ts';
import { protectedServer } from './protected-server.ts';

const all = suite('client: tokens in a file');
const root = mkdtempSync(join(tmpdir(), 'tokens-'));
all.after(() => rmSync(root, { recursive: true, force: true }));
const posix = process.platform !== 'win32';
let serial = 0;
const place = (): string => {
  serial += 1;
  return join(root, String(serial), 'tokens.db');
};
const never = new AbortController().signal;

all('entries survive, are replaced only if they are the expected ones, and are deleted', async () => {
  const path = place();
  const tokens = fileTokens(path);
  assert.is(await tokens.get('a'), undefined);
  assert.not(existsSync(path), 'a look creates no file');
  assert.is(await tokens.replace('a', 'other', 'one'), false);
  assert.is(await tokens.replace('a', undefined, 'one'), true);
  assert.is(await tokens.replace('a', undefined, 'two'), false);
  assert.is(await fileTokens(path).get('a'), 'one');
  assert.is(await fileTokens(path).replace('a', 'one', 'two'), true);
  assert.is(await tokens.get('a'), 'two');
  assert.is(await tokens.replace('a', 'two', undefined), true);
  assert.is(await tokens.get('a'), undefined);
});

all('S-50 the files have mode 0600 in a directory of 0700, and contain no token as text', async () => {
  const path = place();
  const tokens = fileTokens(path);
  await tokens.replace('https://mcp.example.com/mcp', undefined, 'a secret token, in full');
  for (const file of [path, `${path}.key`]) {
    assert.not(readFileSync(file).includes('a secret token'), file);
    if (posix) assert.is(statSync(file).mode & 0o777, 0o600, file);
  }
  if (!posix) return;
  assert.is(statSync(join(path, '..')).mode & 0o777, 0o700);
  chmodSync(path, 0o644);
  assert.is(await tokens.get('https://mcp.example.com/mcp'), 'a secret token, in full');
  assert.is(statSync(path).mode & 0o777, 0o600, 'a mode that another program has widened is narrowed');
});

all('S-50 a directory that other users may write to is rejected', async () => {
  if (!posix) return;
  const path = place();
  mkdirSync(join(path, '..'));
  chmodSync(join(path, '..'), 0o777);
  await assertRejects(
    fileTokens(path).replace('a', undefined, 'one'),
    'expected a directory that only you may write to',
  );
});

all('an entry opens only with its key, and under its own name', async () => {
  const path = place();
  const tokens = fileTokens(path);
  await tokens.replace('a', undefined, 'one');
  const { default: Database } = await import('libsql');
  const db = new Database(path);
  db.exec("UPDATE entry SET key = CAST('b' AS BLOB)");
  db.close();
  await assertRejects(tokens.get('b'), 'cannot be opened');
  writeFileSync(`${path}.key`, 'another secret of more than 32 characters\n');
  await assertRejects(tokens.get('b'), 'cannot be opened with');
  rmSync(`${path}.key`);
  await assertRejects(tokens.get('b'), 'is missing, so');
});

all('a file of another program is left alone', async () => {
  const path = place();
  mkdirSync(join(path, '..'), { mode: 0o700 });
  writeFileSync(`${path}.key`, 'a secret of more than 32 characters ok\n');
  const { default: Database } = await import('libsql');
  const db = new Database(path);
  db.exec('CREATE TABLE theirs(a); PRAGMA user_version = 7');
  db.close();
  await assertRejects(fileTokens(path).get('a'), 'is no token file of this version');
});

all('U-14 one process at a time works under the lease of a key, and a failure frees it', async () => {
  const path = place();
  const events: string[] = [];
  const one = deferred();
  const first = fileTokens(path).exclusive('a', async () => {
    events.push('first begins');
    await one.promise;
    events.push('first ends');
    throw new Error('failed');
  });
  await until(() => events.length === 1);
  // Two stores of one file are as two processes.
  const second = fileTokens(path).exclusive('a', async () => events.push('second'));
  await fileTokens(path).exclusive('another key', async () => events.push('another key'));
  one.resolve();
  await assertRejects(first, 'failed');
  await second;
  assert.equal(events, ['first begins', 'another key', 'first ends', 'second']);
});

all('U-14 the lease of a process that died expires, also if the wall clock was set back', async () => {
  for (const behind of [0, 3_600_000]) {
    const path = place();
    // A clock whose timers never fire renews no lease, as a process that was killed.
    const stopped = new SimulatedClock(behind);
    const killed = deferred();
    const dead = fileTokens(path, { clock: stopped, leaseMs: 1_000 }).exclusive('a', () => killed.promise);
    await until(() => existsSync(path) && statSync(path).size > 0);
    const clock = new SimulatedClock();
    let entered = false;
    const waiting = fileTokens(path, { clock, leaseMs: 1_000 }).exclusive('a', async () => {
      entered = true;
    });
    await ticks(clock, 900, 1, () => entered);
    assert.not(entered);
    await ticks(clock, 300, 1, () => entered);
    assert.ok(entered);
    await waiting;
    killed.resolve();
    await dead;
  }
});

all('a holder that works for long keeps its lease, and the others wait a bounded time', async () => {
  const path = place();
  const clock = new SimulatedClock();
  const work = deferred();
  const holder = fileTokens(path, { clock, leaseMs: 1_000 }).exclusive('a', () => work.promise);
  await until(() => existsSync(path) && statSync(path).size > 0);
  const waiting = fileTokens(path, { clock, leaseMs: 1_000, waitMs: 5_000 }).exclusive('a', async () => {});
  let ended = false;
  const outcome = waiting
    .then(
      () => 'entered',
      (error: unknown) => String(error),
    )
    .finally(() => {
      ended = true;
    });
  // The renewal of the holder, and the next look of the other.
  await ticks(clock, 6_000, 2, () => ended);
  assert.match(await outcome, 'did not finish within 5 s');
  work.resolve();
  await holder;
});

all(
  'U-14 a refresh belongs to the client that signed in, also after another sign-in has registered again',
  async () => {
    const server = await protectedServer({ expiresIn: 1 });
    const path = place();
    const signIn = async (address: URL, redirectUrl: string): Promise<void> => {
      const auth = oauth({ tokens: fileTokens(path), authorize: server.authorize, redirectUrl });
      await auth.authorize({ status: 401, header: undefined, resource: address }, never);
    };
    await signIn(new URL(server.url), 'http://127.0.0.1:1111/callback');
    await signIn(new URL(`${server.url}?second`), 'http://127.0.0.1:1111/callback');
    // The other port registers a second client at the same issuer, for another server.
    await signIn(new URL(`${server.issuer}/other`), 'http://127.0.0.1:2222/callback').catch(() => {});
    const later = oauth({ tokens: fileTokens(path), interactive: false });
    const headers = await later.headers('POST', new URL(server.url));
    assert.match(String(headers?.authorization), /^Bearer access-/);
    assert.is(server.counts.reused, 0);
    assert.ok(server.counts.refreshes >= 1);
    await server.close();
  },
);

all('signing out removes the grant and revokes it', async () => {
  const server = await protectedServer();
  const path = place();
  const options = {
    tokens: fileTokens(path),
    authorize: server.authorize,
    redirectUrl: 'http://127.0.0.1:1111/callback',
  };
  const resource = new URL(server.url);
  assert.equal(await signOut(server.url, options), { signedIn: false, revoked: false });
  await oauth(options).authorize({ status: 401, header: undefined, resource }, never);
  assert.equal(await signOut(server.url, options), { signedIn: true, revoked: true });
  assert.equal(server.revoked, ['refresh-2']);
  assert.equal(await oauth(options).headers('POST', resource), {});
  await server.close();
});

all('U-14 many processes refresh one rotating token: no refresh token is used twice', async () => {
  const { processes, times } = atScale({
    quick: { processes: 2, times: 3 },
    full: { processes: 6, times: 10 },
    proof: { processes: 8, times: 100 },
  });
  const server = await protectedServer({ expiresIn: 1 });
  const path = place();
  const auth = oauth({
    tokens: fileTokens(path),
    authorize: server.authorize,
    redirectUrl: 'http://127.0.0.1:1111/cb',
  });
  await auth.authorize({ status: 401, header: undefined, resource: new URL(server.url) }, never);
  const program = fileURLToPath(new URL('../fixtures/client/refresher.mjs', import.meta.url));
  const children = Array.from({ length: processes }, () =>
    spawn(process.execPath, [program, path, server.url, String(times)], { stdio: ['pipe', 'pipe', 'inherit'] }),
  );
  const exits = children.map((child) => once(child, 'close'));
  await Promise.all(children.map((child) => once(child.stdout, 'data')));
  for (const child of children) child.stdin.write('begin\n');
  const codes = (await Promise.all(exits)).map(([code]) => code);
  assert.equal(
    codes,
    children.map(() => 0),
  );
  assert.is(server.counts.reused, 0);
  assert.is(server.atOnce(), 1);
  // A process that waited uses the token of the other, so there are fewer refreshes than turns.
  assert.ok(server.counts.refreshes >= times, `${server.counts.refreshes} refreshes`);
  await server.close();
});

function deferred(): { readonly promise: Promise<void>; readonly resolve: () => void } {
  let resolve = (): void => {};
  const promise = new Promise<void>((done) => {
    resolve = done;
  });
  return { promise, resolve: () => resolve() };
}

/**
 * Advances the clock in steps. Before each of them, every process has read the file, and its next timer runs.
 *
 * @param timers the number of timers that run while nobody reads the file
 * @param ended true if no more timers follow
 */
async function ticks(clock: SimulatedClock, ms: number, timers: number, ended: () => boolean): Promise<void> {
  const ready = (): boolean => clock.timers >= timers || ended();
  for (let passed = 0; passed < ms; passed += 25) {
    await until(ready);
    await clock.advance(25);
  }
  await until(ready);
}
