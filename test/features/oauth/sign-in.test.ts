/**
 * Clients of others and ours sign in at a real authorization server (`oidc-provider`), call, and step up: G-16. The
 * authorization server of the official suite cannot take its place: except for DPoP, its tokens are texts without
 * contents, and it has no introspection, so that only the suite's own MCP server can verify them.
 */
import { once } from 'node:events';
import { createServer as createHttpServer } from 'node:http';
import * as assert from 'uvu/assert';
import { oauth } from '../../../src/features/oauth/oauth.ts';
import { createServer } from '../../../src/index.ts';
import { havePeers } from '../../client/peers.ts';
import { suite } from '../../harness/door.ts';
import { atScale, SCALE } from '../../harness/scale.ts';
import { type OidcProvider, oidcProvider } from './oidc-provider.ts';
import { Person } from './person.ts';
import { CLIENTS, signInRemote } from './signed-in.ts';

const test = suite('sign-in at oidc-provider');
const SCOPES = ['orders:read', 'orders:refund'];

interface Scene {
  readonly url: string;
  readonly provider: OidcProvider;
}

/** Opens an MCP server whose tokens come from a provider of its own. */
async function scene(format: 'jwt' | 'opaque', work: (scene: Scene) => Promise<void>): Promise<void> {
  const provider = await oidcProvider(format, SCOPES);
  const http = createHttpServer((request, response) => server.node(request, response));
  await once(http.listen(0, '127.0.0.1'), 'listening');
  const address = http.address();
  const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}/mcp`;
  const { issuer, introspection } = provider;
  const auth = oauth({
    resource: url,
    issuer: format === 'jwt' ? issuer : { issuer, introspection },
    scopes: ['orders:read'],
  });
  const server = createServer({ name: 'orders', version: '1.0.0', http: { auth }, log() {} });
  server.tool('whoami', {}, (_, ctx) => `${ctx.auth?.subject} ${ctx.auth?.issuer === issuer}`);
  server.tool('refund', { scopes: ['orders:refund'] }, () => 'refunded');
  try {
    await work({ url, provider });
  } finally {
    await server.close();
    http.closeAllConnections();
    await new Promise<void>((closed) => void http.close(() => closed()));
    await provider.close();
  }
}

if (!havePeers)
  test.skip('G-16: each client signs in at oidc-provider', 'npm ci --ignore-scripts --prefix bench/peers installs it');
else {
  const clients = SCALE === 'quick' ? CLIENTS : { ...CLIENTS, 'mcp-remote': signInRemote };
  // Quick: each client once, version 2 of the official one in the modern era only, and both kinds of token.
  const isQuick = (format: string, who: string): boolean =>
    format === 'jwt' ? !who.includes('version 2, in a session') : who === Object.keys(CLIENTS)[0];
  for (const format of ['jwt', 'opaque'] as const)
    for (const [who, signIn] of Object.entries(clients))
      (isQuick(format, who) ? test : test.full)(
        `G-16: ${who} signs in at oidc-provider, calls, steps up and is served, with ${format} tokens`,
        () =>
          scene(format, async ({ url, provider }) => {
            const ada = new Person('ada');
            const client = await signIn(url, ada);
            assert.equal(await client.tools(), ['whoami', 'refund']);
            assert.is(await client.call('whoami'), 'ada true');
            assert.is(await client.call('refund'), 'refunded');
            assert.is(await client.call('whoami'), 'ada true');
            const asked = ada.asked.map((scopes) => scopes.replace(' offline_access', ''));
            assert.equal(asked, ['orders:read', 'orders:read orders:refund']);
            const count = (path: string): number => provider.requests.filter((each) => each === path).length;
            // Each of the two tokens is asked about once; a JWT never.
            assert.equal([count('/jwks'), count('/token/introspection')], format === 'jwt' ? [1, 0] : [0, 2]);
            assert.is(count('/reg'), 1);
            await client.close();
          }),
      );

  const rotating = Object.entries(CLIENTS).slice(0, atScale({ quick: 1, full: 5, proof: 5 }));
  for (const [who, signIn] of rotating)
    test(`G-16: when the provider rotates its keys, ${who} is served with its token, and the next client with the new key`, () =>
      scene('jwt', async ({ url, provider }) => {
        const before = await signIn(url, new Person('ada'));
        await provider.rotate();
        assert.is(await before.call('whoami'), 'ada true');
        const after = await signIn(url, new Person('eve'));
        assert.is(await after.call('whoami'), 'eve true');
        assert.is(await before.call('whoami'), 'ada true');
        await before.close();
        await after.close();
      }));
}
