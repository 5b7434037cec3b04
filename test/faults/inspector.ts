/** Broken builds: the inspector, which may call the server. */
import type { BrokenBuild } from './broken-build.ts';

export const INSPECTOR: readonly BrokenBuild[] = [
  {
    id: 'S-92',
    test: 'test/core/http/connection-limit.test.ts',
    in: 'connection-limit.ts: limitConnections',
    find: 'const [idlest] = idle;',
    replace: 'const [idlest] = new Set<Socket>();',
    why: 'idle connections of another program lock a viewer out',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    in: 'openInspector',
    find: '= control ?',
    replace: '= true ?',
    why: 'an inspector without control acts on the server',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    in: 'answer',
    find: 'const stranger = guard.checkToken(request);',
    replace: "const stranger = request.method === 'POST' ? undefined : guard.checkToken(request);",
    why: 'commands need no token',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    in: 'ServerCalls.#recorded',
    find: 'this.#caused(() => peer.send(text))',
    replace: 'peer.send(text)',
    why: 'the messages of a call have no cause',
  },
  {
    id: 'S-52',
    test: 'test/inspector/calls.test.ts',
    in: 'ResultReader.#text',
    find: 'const most = Math.max(0, Math.min(MAX_TEXT, this.#texts));',
    replace: 'const most = text.length;',
    why: 'a result of any length is sent to the page',
  },
];
