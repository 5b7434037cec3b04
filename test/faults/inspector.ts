/** Broken builds: the inspector, which may call the server. */
import type { BrokenBuild } from './broken-build.ts';

export const INSPECTOR: readonly BrokenBuild[] = [
  {
    id: 'S-92',
    test: 'test/connection-limit.test.ts',
    file: 'src/connection-limit.ts',
    find: 'const [idlest] = idle;',
    replace: 'const [idlest] = new Set<Socket>();',
    why: 'idle connections of another program lock a viewer out',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    file: 'src/inspector/open-inspector.ts',
    find: '= control\n    ?',
    replace: '= true\n    ?',
    why: 'an inspector without control acts on the server',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    file: 'src/inspector/http/listener.ts',
    find: 'const stranger = guard.checkToken(request);',
    replace: "const stranger = request.method === 'POST' ? undefined : guard.checkToken(request);",
    why: 'commands need no token',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    file: 'src/inspector/calls/server-calls.ts',
    find: 'inspection.withCause(this.#current.getStore()?.record ?? 0, () => peer.send(text))',
    replace: 'peer.send(text)',
    why: 'the messages of a call have no cause',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    file: 'src/inspector/calls/call-result.ts',
    find: 'const most = Math.max(0, Math.min(MAX_TEXT, this.#texts));',
    replace: 'const most = text.length;',
    why: 'a result of any length is sent to the page',
  },
];
