/** Builds that are broken on purpose: what `troupe run` promises. */
import type { BrokenBuild } from './broken-build.ts';

export const PROCESS: readonly BrokenBuild[] = [
  {
    id: 'R-01',
    test: 'test/cli/supervised.test.ts',
    file: 'src/cli/supervisor.ts',
    find: '    await this.#restarts.crashed(',
    replace: '    if (code === null) throw new Ended(why, 1);\n    await this.#restarts.crashed(',
    why: 'a worker that was killed is not started again',
    built: true,
  },
  {
    id: 'R-01',
    test: 'test/cli/supervised.test.ts',
    file: 'src/cli/conversation.ts',
    find: 'if (line !== undefined && (this.#repeatable.isHarmless(asked) || (known && namesItself(asked)))) {',
    replace: 'if (line !== undefined) {',
    why: 'what may have had effects is sent again',
    built: true,
  },
  {
    id: 'R-25',
    test: 'test/cli/supervised.test.ts',
    file: 'src/cli/supervisor.ts',
    find: "      this.#shim.stop('the server is shutting down');",
    replace: "      this.#worker?.kill();\n      this.#shim.stop('the server is shutting down');",
    why: 'SIGTERM ends the worker before it has answered',
    built: true,
  },
  {
    id: 'R-01',
    test: 'test/cli/long-lived.test.ts',
    file: 'src/cli/worker-process.ts',
    find: 'TROUPE_SESSION: SESSION }',
    replace: 'TROUPE_SESSION: String(process.hrtime()) }',
    why: 'a new worker does not know the session of the old one',
    built: true,
  },
];
