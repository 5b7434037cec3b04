/** Broken builds of the resource server. */
import type { BrokenBuild } from './broken-build.ts';

const BAD = 'test/oauth/bad-tokens.test.ts';
const ISSUERS = 'test/oauth/issuers.test.ts';

export const OAUTH: readonly BrokenBuild[] = [
  {
    id: 'G-01',
    test: BAD,
    file: 'src/oauth/access-token.ts',
    find: 'if (!all.includes(issuer.audience)) return',
    replace: 'if (all.length < 0) return',
    why: 'no_audience: a token for another server is accepted',
  },
  {
    id: 'G-01',
    test: BAD,
    file: 'src/oauth/access-token.ts',
    find: 'return all.every(fine) ?',
    replace: 'return all.some(fine) ?',
    why: 'a token that is also for others is accepted',
  },
  {
    id: 'G-01',
    test: BAD,
    file: 'src/oauth/resource-server.ts',
    find: "if ('rejected' in verdict) return reject(this.#rejections.invalid(verdict.rejected));",
    replace:
      "if ('rejected' in verdict) return { rejection: { ...this.#rejections.invalid(verdict.rejected), cause: token } };",
    why: 'token_in_log: the operator reads rejected tokens',
  },
  {
    id: 'G-01',
    test: BAD,
    file: 'src/oauth/resource-server.ts',
    find: 'clock.now() + Math.min(leftMs, rememberMs));',
    replace: 'clock.now() + rememberMs);',
    why: 'cache_after_expiry: a remembered token is accepted after its end',
  },
  {
    id: 'G-01',
    test: BAD,
    file: 'src/oauth/token-issuer.ts',
    find: "if (!(await this.#signed(token, keys))) return { rejected: 'the signature of the token is not valid' };",
    replace: 'await this.#signed(token, keys);',
    why: 'nobody looks at the signature',
  },
  {
    id: 'G-01',
    test: 'test/oauth/resource-server.test.ts',
    file: 'src/oauth/resource-server.ts',
    find: "method === 'POST' && query === '' && isModernRevision",
    replace: 'isModernRevision',
    why: 'a header that no body must equal lets a stream of 2024-11-05 in without a token',
  },
  {
    id: 'G-01',
    test: 'test/oauth/resource-server.test.ts',
    file: 'src/oauth/resource-server.ts',
    find: 'if (last?.header === header) return last;',
    replace: 'if (last) return last;',
    why: 'a connection keeps the caller of its first token',
  },
  {
    id: 'G-02',
    test: ISSUERS,
    file: 'src/oauth/rejections.ts',
    find: 'status: 503,',
    replace: 'status: 401,',
    why: 'a client discards a good token while the issuer is down',
  },
  {
    id: 'G-02',
    test: ISSUERS,
    file: 'src/oauth/issuer-keys.ts',
    find: 'if (waitMs > 0 && !this.#loading)',
    replace: 'if (waitMs > cooldownMs)',
    why: 'each invented key id is a request to the issuer',
  },
  {
    id: 'G-08',
    test: 'test/oauth/dpop.test.ts',
    file: 'src/oauth/dpop-proofs.ts',
    find: 'if (this.#seen.has(id)) return false;',
    replace: '',
    why: 'a proof is accepted twice',
  },
  {
    id: 'G-08',
    test: 'test/oauth/dpop.test.ts',
    file: 'src/oauth/resource-server.ts',
    find: "if (scheme === 'bearer' || dpop === 'off')",
    replace: "if (scheme === 'bearer' && dpop === 'off')",
    why: 'a bound token is served without the right scheme',
  },
  {
    id: 'G-09',
    test: 'test/oauth/addresses.test.ts',
    file: 'src/issuers/guarded-fetch.ts',
    find: 'if (family !== 0) checkIp(host, family, local);',
    replace: '',
    why: 'an issuer leads the server to a private address',
  },
  {
    id: 'G-16',
    test: 'test/examples/guarded.test.ts',
    file: 'src/oauth/rejections.ts',
    find: 'const all = [...new Set([...this.#scopes, ...scopes])];',
    replace: 'const all = scopes;',
    why: 'a client that steps up loses the scopes that every request needs',
  },
];
