/** Broken builds: command-line options, and starts that fail. */
import type { BrokenBuild } from './broken-build.ts';

export const COMMAND: readonly BrokenBuild[] = [
  {
    id: 'S-35',
    test: 'test/cli/http-address.test.ts',
    file: 'src/cli/serving/http-address.ts',
    find: 'restricted(shared ?? {}, address)',
    replace: 'restricted({}, address)',
    why: 'serve --http ignores createServer({ http })',
  },
  {
    id: 'S-35',
    test: 'test/cli/options.test.ts',
    file: 'src/runtime/runtime.ts',
    find: '          http: options.http,\n',
    replace: '',
    why: 'http() ignores the options of its server',
    built: true,
  },
  {
    id: 'S-36',
    test: 'test/cli/http-address.test.ts',
    file: 'src/cli/serving/http-address.ts',
    find: 'if (allowed.some((each) => covers(each, entry))) continue;',
    replace: 'if (allowed.length > 0) continue;',
    why: '--allow-host adds to the names of the program',
  },
  {
    id: 'S-37',
    test: 'test/cli/attach.test.ts',
    file: 'src/cli/commands/attach.ts',
    find: '    return socketLink(await connected(checkSocket(path)));\n  } catch',
    replace: '    return socketLink(await connected(path));\n  } catch',
    why: 'attach connects to any socket of any owner',
    built: true,
  },
  {
    id: 'S-37',
    test: 'test/cli/attach.test.ts',
    file: 'src/transports/socket-path.ts',
    find: '  if (found && !found.isSocket()) throw noSocket(path);\n  const user',
    replace: '  const user',
    why: 'attach waits for a server behind a file that is no socket',
    built: true,
  },
  {
    id: 'R-33',
    test: 'test/cli/serve-http.test.ts',
    file: 'src/cli/serving/serving.ts',
    find: '    await closed([...servers.keys()]);\n',
    replace: '',
    why: 'a start that fails leaves the database open',
    built: true,
  },
];
