/** Broken builds of the store of tokens. */
import type { BrokenBuild } from './broken-build.ts';

export const CLIENT_TOKENS: readonly BrokenBuild[] = [
  {
    id: 'U-14',
    test: 'test/client/file-tokens.test.ts',
    in: 'FileTokens.#take',
    find: 'if (lease && lease.expires > now && !gone) return lease;',
    replace: '',
    why: 'every process takes the lease, and two refresh one token',
    built: true,
  },
  {
    id: 'U-14',
    test: 'test/client/file-tokens.test.ts',
    in: 'FileTokens.#take',
    find: 'if (lease && lease.expires > now && !gone) return lease;',
    replace: 'if (lease && lease.expires > now) return lease;',
    why: 'the lease of a process that died lasts until the wall clock, which was set back, is there again',
    built: true,
  },
  {
    id: 'U-14',
    test: 'test/client/file-tokens.test.ts',
    in: 'ResourceGrant.#refresh',
    find: 'const registration = grant.client ?? (await this.#registrationFor(server));',
    replace: 'const registration = await this.#registrationFor(server);',
    why: 'a token is refreshed with the registration of a later sign-in',
    built: true,
  },
];
