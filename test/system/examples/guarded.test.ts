/** The guarded example, run as a process: every client signs in at its authorization server, steps up, and is limited. */
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { isJsonObject, type JsonObject } from '../../../src/core/protocol/json.ts';
import { Person, REDIRECT } from '../../features/oauth/person.ts';
import { CLIENTS, signInOurs } from '../../features/oauth/signed-in.ts';
import { suite } from '../../harness/door.ts';
import { type Served, serve } from '../clients/http-wire.ts';

const test = suite('examples/guarded');
const root = new URL('../../../', import.meta.url);
const read = (file: string): string => readFileSync(fileURLToPath(new URL(file, root)), 'utf8');

/** `npm test` has ours. */
const QUICK = /troupe\/client in the modern era/;

let served: Served;
let said = '';
test.before(async () => {
  served = await serve('examples/guarded/http.ts');
  served.child.stderr?.on('data', (part: Buffer) => {
    said += part.toString('utf8');
  });
});

for (const [who, signIn] of Object.entries(CLIENTS))
  (QUICK.test(who) ? test : test.full)(
    `G-16: ${who} signs in, steps up for a refund and once more for a large one, and keeps what it had`,
    async () => {
      const ada = new Person('ada');
      const client = await signIn(served.url, ada);
      assert.equal(await client.tools(), ['list_orders', 'refund', 'export']);
      assert.is(await client.call('list_orders'), 'the orders of ada');
      assert.is(await client.call('refund', { amount: 20 }), 'refunded');
      assert.is(await client.call('refund', { amount: 200 }), 'refunded');
      assert.is(await client.call('list_orders'), 'the orders of ada');
      assert.equal(ada.asked, [
        'orders:read',
        'orders:read orders:refund',
        'orders:read orders:refund orders:refund:large',
      ]);
      await client.close();
    },
  );

test('a tool of the staff exists for the staff only; a limit holds for each person', async () => {
  const grace = await signInOurs('modern')(served.url, new Person('grace'));
  const ada = await signInOurs('modern')(served.url, new Person('ada'));
  assert.ok((await grace.tools()).includes('close_shop'));
  assert.is(await grace.call('close_shop'), 'closed');
  await ada.call('close_shop').then(
    () => assert.unreachable(),
    (error: Error) => assert.match(error.message, 'Unknown tool: close_shop'),
  );
  for (let calls = 0; calls < 2; calls += 1) assert.match(await ada.call('export'), 'id,amount');
  assert.match(await ada.call('export'), 'at most 2 a minute');
  assert.match(await grace.call('export'), 'id,amount');
  await ada.close();
  await grace.close();
});

/** The address of its authorization server, as clients find it. */
async function issuerOf(url: string): Promise<string> {
  const { headers } = await fetch(url, { method: 'POST' });
  const [, metadata = ''] = /resource_metadata="([^"]*)"/.exec(headers.get('www-authenticate') ?? '') ?? [];
  const { authorization_servers: issuers }: { authorization_servers: string[] } = JSON.parse(
    await (await fetch(metadata)).text(),
  );
  return issuers[0] ?? '';
}

test('the line of its comment gets a token without a browser', async () => {
  const [, grant = ''] = /`curl ISSUER\/token ([^`]*)`/.exec(read('examples/guarded/http.ts')) ?? [];
  const form = new URLSearchParams(grant.replaceAll('-d ', '').split(' ').join('&'));
  const response = await fetch(`${await issuerOf(served.url)}/token`, { method: 'POST', body: form });
  const { access_token: token }: { access_token: string } = JSON.parse(await response.text());
  const headers = { authorization: `Bearer ${token}` };
  assert.is((await fetch(served.url, { method: 'DELETE', headers })).status, 400, 'accepted, and without a session');
});

test('its authorization server accepts a code once, with its verifier; no other address, resource or person', async () => {
  const issuer = await issuerOf(served.url);
  const registered = await fetch(`${issuer}/register`, {
    method: 'POST',
    body: JSON.stringify({ redirect_uris: [REDIRECT] }),
  });
  const { client_id: client }: { client_id: string } = JSON.parse(await registered.text());
  const verifier = 'a verifier of this test, which is long enough';
  const request = {
    ...{ client_id: client, redirect_uri: REDIRECT, response_type: 'code', resource: served.url },
    ...{ code_challenge_method: 'S256', code_challenge: createHash('sha256').update(verifier).digest('base64url') },
  };
  const page = (changed: Record<string, string> = {}): URL =>
    new URL(`${issuer}/authorize?${new URLSearchParams({ ...request, ...changed })}`);
  for (const changed of [
    { client_id: 'other' },
    { redirect_uri: 'https://evil.example/' },
    { resource: 'https://mcp.example.com/mcp' },
    { code_challenge_method: 'plain' },
  ])
    assert.is((await fetch(page(changed))).status, 400, JSON.stringify(changed));
  const eve = new URLSearchParams({ request: page().searchParams.toString(), person: 'eve' });
  assert.is((await fetch(`${issuer}/authorize`, { method: 'POST', body: eve })).status, 400);
  const exchange = async (code: string, given: string): Promise<number> => {
    const { client_id, redirect_uri, resource } = request;
    const form = { grant_type: 'authorization_code', code, code_verifier: given, client_id, redirect_uri, resource };
    return (await fetch(`${issuer}/token`, { method: 'POST', body: new URLSearchParams(form) })).status;
  };
  const code = async (): Promise<string> => (await new Person('ada').consent(page())).searchParams.get('code') ?? '';
  const first = await code();
  assert.equal([await exchange(first, verifier), await exchange(first, verifier)], [200, 400]);
  const second = await code();
  assert.equal([await exchange(second, 'another'), await exchange(second, verifier)], [400, 400]);
});

test('it ends when it is asked to, and has recorded calls and denials without arguments and tokens', async () => {
  const ended = once(served.child, 'close');
  assert.is(await served.end(), 0);
  await ended;
  const records = said
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line): JsonObject => {
      const record: unknown = JSON.parse(line);
      return isJsonObject(record) ? record : {};
    });
  const has = (event: string, element: string, rule?: string): boolean =>
    records.some((record) => record.event === event && record.element === element && record.rule === rule);
  assert.ok(has('call', 'tool refund'), 'a call');
  assert.ok(has('denied', 'tool refund', 'scope'), 'a denial');
  assert.ok(has('limited', 'tool export', 'limits.perMinute'), said);
  assert.not.ok(/eyJ|amount/.test(said));
});
