/** Broken builds: several processes on one port. */
import type { BrokenBuild } from './broken-build.ts';

const test = 'test/cli/fleet.test.ts';

export const FLEET: readonly BrokenBuild[] = [
  {
    id: 'R-53',
    test,
    in: 'NodeProcess.constructor',
    find: 'for (const { socket } of this.#sent.values()) returned(socket);',
    replace: '',
    why: 'a process that is killed takes the connections on their way to it with it',
  },
  {
    id: 'R-53',
    test,
    in: 'FleetMember.#moveAway',
    find: 'this.#receiver?.moveAway();',
    replace: '',
    why: 'a deployment rejects requests of clients whose connections stay open',
  },
  {
    id: 'R-53',
    test,
    in: 'FleetMember.constructor',
    find: "process.once('disconnect', () => end('the parent process has exited'));",
    replace: '',
    why: 'nodes outlive their parent, which was killed',
  },
  {
    id: 'D-10',
    test: 'test/system/cluster/rolling.test.ts',
    in: 'ForwardedRequest.#ofConnection',
    find: "return this.#host.leaving() ? { ...headers, connection: 'close' } : headers;",
    replace: 'return headers;',
    why: 'a node that is replaced closes the connections of clients whose requests other nodes serve',
  },
];
