/** Broken builds: links between nodes. */
import type { BrokenBuild } from './broken-build.ts';

const ROUTING = 'test/features/cluster/link/routing.test.ts';
const CHANGES = 'test/features/cluster/link/changes.test.ts';
const CONTINUITY = 'test/features/cluster/continuity.test.ts';
const RATE = 'test/features/cluster/link/rate.test.ts';
const TEST = 'test/features/cluster/link/link.test.ts';

export const LINK: readonly BrokenBuild[] = [
  {
    id: 'D-09',
    test: TEST,
    in: 'LinkChannel.add',
    find: 'process.nextTick(this.#flush);',
    replace: 'this.#flush();',
    why: 'each record is a signed text of its own',
  },
  {
    id: 'D-20',
    test: TEST,
    in: 'LinkSignature.sign',
    find: 'this.#number += 1;',
    replace: '',
    why: 'a text that is sent twice runs twice',
  },
  {
    id: 'D-20',
    test: TEST,
    in: 'LinkChannel.#read',
    find: 'if (receives && !receives.matches(bytes.subarray(first, end), bytes.subarray(end, next)))',
    replace: 'if (receives && bytes.length < first)',
    why: 'an exchange, or an event of a stream, may be changed on its way',
  },
  {
    id: 'D-20',
    test: TEST,
    in: 'AcceptedLink.#serve',
    find: 'if (this.channel.full) this.channel.pause();',
    replace: '',
    why: 'responses to a peer that reads nothing fill the memory',
  },
  {
    id: 'D-20',
    test: TEST,
    in: 'UnprovenConnections.#makeRoom',
    find: 'of crowd.slice(0, 1)',
    replace: 'of crowd.slice(0, 0)',
    why: 'connections without a proof fill the port',
  },
  {
    id: 'D-20',
    test: TEST,
    in: 'AcceptedLinks.#link',
    find: 'if (!known || session.destroyed',
    replace: 'if (session.destroyed',
    why: 'a node that is fenced, or that never was, gets a link',
  },
  {
    id: 'S-53',
    test: TEST,
    in: 'AcceptedLinks.#link',
    find: "if (!terms || !isLinkProof(headers['link-proof'], secret, 'dialer', terms)) return session.destroy();",
    replace: 'if (!terms) return session.destroy();',
    why: 'a peer without the secret gets a link',
  },
  {
    id: 'S-53',
    test: TEST,
    in: 'DialedLink.#greet',
    find: "if (!isLinkProof(headers['link-proof'], secret, 'listener', terms))",
    replace: "if (secret === '')",
    why: 'a listener without the secret receives exchanges',
  },
  {
    id: 'GHSA-g53w-w6mj-hrpp',
    test: ROUTING,
    in: 'isRead',
    find: "return READ.has(name) || name.startsWith('mcp-');",
    replace: "return name !== '';",
    why: 'the credentials of a client reach other nodes',
  },
  {
    id: 'GHSA-mvgg-jvj2-4frq',
    test: ROUTING,
    in: 'HttpConnections.session',
    find: 'return session?.principal === principal ? session : undefined;',
    replace: 'return session;',
    why: 'the owner of a session does not compare its principal',
  },
  {
    id: 'D-08',
    test: CHANGES,
    in: 'DialedLink.tell',
    find: 'this.#news.add(news);',
    replace: 'if (this.#open) this.#news.add(news);',
    why: 'changes during a cut are lost',
  },
  {
    id: 'D-08',
    test: CHANGES,
    in: 'RemoteChanges.#publish',
    find: 'for (const node of this.#watchers.get(uri) ?? []) this.#collect(node, change);',
    replace: '',
    why: 'the listeners of other nodes hear of no handle',
  },
  {
    id: 'D-19',
    test: RATE,
    in: 'SharedRate.#lower',
    find: 'own.of(key, now).lower(now, left > 0 ? left / shares : left);',
    replace: 'own.of(key, now).lower(now, shares * 1_000);',
    why: 'each of three nodes admits the whole rate',
  },
  {
    id: 'D-07',
    test: CONTINUITY,
    in: 'McpRoutes.#atOwner',
    find: 'if (!this.#connections.isElsewhere(cell)) return serve();',
    replace: 'if (cell !== -1) return serve();',
    why: 'a stream is resumed at its entry only',
  },
  {
    id: 'D-17',
    test: CONTINUITY,
    in: 'PlacedRequests.cellOf',
    find: 'if (continued !== undefined) return cellIn(continued);',
    replace: '',
    why: 'an answer stays at its entry, and runs the call there',
  },
  {
    id: 'D-18',
    test: CONTINUITY,
    in: 'PlacedRequests.cellOf',
    find: 'if (continued !== undefined) return cellIn(continued);',
    replace: 'if (continued !== undefined) return undefined;',
    why: 'one state runs at each node that it reaches',
  },
];
