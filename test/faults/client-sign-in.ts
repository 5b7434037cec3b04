/** Broken builds of the sign-in of a client. */
import type { BrokenBuild } from './broken-build.ts';

export const CLIENT_SIGN_IN: readonly BrokenBuild[] = [
  {
    id: 'U-15',
    test: 'test/client/oauth.test.ts',
    file: 'src/client/oauth/oauth.ts',
    find: 'if (errorCode(error) === undefined || isOutage(error)) throw',
    replace: 'if (errorCode(error) === undefined) throw',
    why: 'an authorization server that is overloaded ends the grant, and a person must sign in',
    built: true,
  },
  {
    id: 'U-15',
    test: 'test/client/oauth.test.ts',
    file: 'src/client/oauth/oauth.ts',
    find: 'const own = new URL(grant.issuer).origin === this.#server.origin && !resource?.issuers.length;',
    replace: 'const own = !resource?.issuers.length;',
    why: 'a resource whose metadata is gone is taken for its own authorization server, and asked for its metadata',
    built: true,
  },
  {
    id: 'U-19',
    test: 'test/client/guarded-fetch.test.ts',
    file: 'src/issuers/guarded-fetch.ts',
    find: 'for (const { address, family } of addresses) checkIp(address, family, local);',
    replace: '',
    why: 'a name that resolves to a private address is connected to',
  },
  {
    id: 'U-19',
    test: 'test/client/guarded-fetch.test.ts',
    file: 'src/issuers/guarded-fetch.ts',
    find: "  ['::', 96],\n",
    replace: '',
    why: 'an IPv4 address inside of an IPv6 one is not seen',
  },
  {
    id: 'S-51',
    test: 'test/client/oauth.test.ts',
    file: 'src/client/channels/http-channel.ts',
    find: ' && target?.origin === url.origin && ',
    replace: ' && target && ',
    why: 'a redirect to another origin gets the headers and the token',
    built: true,
  },
  {
    id: 'S-51',
    test: 'test/client/oauth.test.ts',
    file: 'src/client/oauth/oauth.ts',
    find: "    if (errorCode(error) === 'invalid_client') await this.#forgetRegistration(server);\n    return new Error(explained(error));",
    replace: '    return new Error(explained(error), { cause: error });',
    why: 'the cause of an error contains the response with its tokens',
    built: true,
  },
];
