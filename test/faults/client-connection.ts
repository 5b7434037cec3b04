/** Broken builds of a client's connection and its channels. */
import type { BrokenBuild } from './broken-build.ts';

const CHILD = 'test/client/child-faults.test.ts';
const HTTP = 'test/client/http-faults.test.ts';

export const CLIENT_FAULTS: readonly BrokenBuild[] = [
  {
    id: 'U-04',
    test: CHILD,
    file: 'src/client/channels/process-guardian.ts',
    find: 'kill -s 0 -- ',
    replace: 'kill -0 -- ',
    why: 'dash does not find the groups that the guardian ends',
    built: true,
  },
  {
    id: 'U-06',
    test: HTTP,
    file: 'src/client/client-connection.ts',
    find: 'if (request.id > this.#sessionStart && this',
    replace: 'if (this',
    why: 'a late 404 of the old session ends the new one',
    built: true,
  },
  {
    id: 'U-23',
    test: 'test/client/interleavings.test.ts',
    file: 'src/client/client-connection.ts',
    find: 'const lost = this.#requests.drain();\n    this.#options.client.send(',
    replace: 'const lost = this.#requests.drain().slice(0, 0);\n    this.#options.client.send(',
    why: 'the calls of a session whose renewal fails have no outcome',
  },
];
