/** The house rules that a test can hold: which way imports point, what machines may name, who may parse, who may touch a timer. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { moduleUrl } from '../harness/compiled.ts';
import { suite } from '../harness/door.ts';
import { commentsOf, wrongTitles, wrongWords, wrongWordsInPage } from './words.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const test = suite('house rules');

function files(folder: string, ending = /\.ts$/): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => ending.test(file) && !file.endsWith('.d.ts'))
    .map((file) => posix.join(folder, file.split(sep).join('/')));
}

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The text without comments and strings, so that prose may name what code may not. */
function code(file: string): string {
  return read(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|[^:])\/\/.*$/gm, '$1')
    .replace(/`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''");
}

function imports(file: string): { readonly from: string; readonly typeOnly: boolean }[] {
  return [...read(file).matchAll(/^(?:import|export)\s+(type\s)?[^;]*?from\s+'([^']+)'/gms)].map(
    ([, type, from = '']) => ({
      typeOnly: type !== undefined,
      from: from.startsWith('.') ? posix.normalize(posix.join(posix.dirname(file), from)) : from,
    }),
  );
}

/**
 * What each room may import besides itself: other rooms, and packages. A room is a folder of `src`, or a file beside them. A row
 * names only rooms of rows above it, so the graph of rooms has no circle. The inspector's model has a row of its own, because a
 * page and an exported file contain it: it knows neither Node nor the server.
 */
const ROOMS: readonly {
  readonly room: string;
  readonly may: readonly string[];
  readonly packages: readonly string[];
}[] = [
  { room: 'clock', may: [], packages: [] },
  { room: 'global-registry', may: [], packages: [] },
  { room: 'connection-limit', may: [], packages: ['node:'] },
  { room: 'html-page', may: [], packages: ['node:'] },
  { room: 'machines', may: [], packages: ['xstate'] },
  { room: 'near-miss', may: [], packages: [] },
  { room: 'outgoing-http', may: [], packages: ['node:'] },
  { room: 'make-directory', may: [], packages: ['node:'] },
  { room: 'replace-file', may: [], packages: ['node:'] },
  { room: 'package-files', may: [], packages: ['node:'] },
  { room: 'poison-registry', may: [], packages: [] },
  { room: 'protocol', may: [], packages: [] },
  { room: 'frontmatter', may: [], packages: ['yaml'] },
  { room: 'file-watch', may: ['clock', 'protocol'], packages: ['node:'] },
  { room: 'authored-stack', may: ['package-files', 'protocol'], packages: ['node:'] },
  { room: 'tool-signature', may: ['protocol'], packages: [] },
  { room: 'quota', may: [], packages: [] },
  { room: 'xstate-internals', may: ['protocol'], packages: ['xstate'] },
  { room: 'charts', may: ['clock', 'package-files', 'protocol', 'xstate-internals'], packages: ['node:', 'xstate'] },
  { room: 'limits', may: ['clock'], packages: ['node:'] },
  { room: 'messages', may: ['protocol'], packages: [] },
  { room: 'node-name', may: ['global-registry'], packages: ['node:'] },
  { room: 'operator-log', may: ['node-name', 'protocol', 'messages'], packages: ['node:'] },
  { room: 'json-log', may: ['clock', 'protocol', 'operator-log'], packages: ['node:'] },
  { room: 'schema', may: ['protocol'], packages: ['ajv', 'node:'] },
  { room: 'store', may: ['clock', 'make-directory', 'package-files', 'protocol'], packages: ['libsql', 'node:', 'pg'] },
  { room: 'token-bucket', may: [], packages: [] },
  { room: 'throttled-log', may: ['clock', 'operator-log', 'token-bucket'], packages: [] },
  { room: 'ids', may: ['protocol'], packages: ['nanoid', 'node:'] },
  { room: 'telemetry', may: ['clock', 'protocol', 'token-bucket', 'messages', 'store'], packages: ['node:'] },
  { room: 'timer-queue', may: ['clock'], packages: [] },
  { room: 'in-flight-table', may: ['protocol'], packages: [] },
  { room: 'watchdog-option', may: ['clock', 'protocol'], packages: [] },
  { room: 'inspection', may: ['clock', 'protocol', 'xstate-internals', 'charts', 'messages'], packages: ['xstate'] },
  { room: 'results', may: ['protocol', 'schema'], packages: [] },
  { room: 'server-quotas', may: ['quota', 'limits'], packages: [] },
  {
    room: 'transports',
    may: [
      ...['clock', 'global-registry', 'in-flight-table', 'protocol', 'quota', 'token-bucket', 'messages'],
      ...['connection-limit', 'operator-log', 'telemetry'],
    ],
    packages: ['eventemitter3', 'nanoid', 'node:'],
  },
  { room: 'issuers', may: ['clock', 'outgoing-http', 'protocol', 'transports'], packages: ['node:', 'oauth4webapi'] },
  {
    room: 'oauth',
    may: ['clock', 'protocol', 'quota', 'token-bucket', 'messages', 'transports', 'issuers'],
    packages: ['jose', 'node:', 'oauth4webapi'],
  },
  {
    room: 'actor',
    may: [
      'clock',
      'ids',
      'authored-stack',
      'machines',
      'protocol',
      'messages',
      'operator-log',
      'telemetry',
      'inspection',
    ],
    packages: ['nanoid', 'xstate'],
  },
  { room: 'inspector/model', may: ['charts', 'inspection'], packages: [] },
  { room: 'launcher', may: ['global-registry', 'operator-log', 'store', 'transports'], packages: [] },
  {
    room: 'requests',
    may: [
      'clock',
      'in-flight-table',
      'machines',
      'protocol',
      'quota',
      'charts',
      'messages',
      'telemetry',
      'inspection',
      'actor',
    ],
    packages: ['node:'],
  },
  { room: 'codec', may: ['protocol', 'messages', 'inspection', 'actor', 'requests'], packages: [] },
  {
    room: 'input',
    may: [
      'clock',
      'global-registry',
      'ids',
      'machines',
      'protocol',
      'quota',
      'limits',
      'messages',
      'telemetry',
      'operator-log',
      'schema',
      'store',
      'inspection',
      'results',
      'server-quotas',
      'actor',
      'requests',
    ],
    packages: ['nanoid', 'node:', 'xstate'],
  },
  {
    room: 'audit',
    may: [
      'clock',
      'make-directory',
      'node-name',
      'protocol',
      'messages',
      'operator-log',
      'store',
      'inspection',
      'results',
      'actor',
      'input',
    ],
    packages: ['nanoid', 'node:', 'parse5'],
  },
  {
    room: 'emitters',
    may: ['clock', 'machines', 'protocol', 'quota', 'messages', 'inspection', 'actor', 'requests', 'codec'],
    packages: ['xstate'],
  },
  {
    room: 'tasks',
    may: [
      'clock',
      'machines',
      'protocol',
      'quota',
      'limits',
      'messages',
      'operator-log',
      'store',
      'timer-queue',
      'inspection',
      'server-quotas',
      'actor',
      'requests',
      'input',
    ],
    packages: ['nanoid', 'xstate'],
  },
  {
    room: 'tool-limits',
    may: ['clock', 'protocol', 'quota', 'token-bucket', 'messages', 'operator-log', 'schema', 'store', 'telemetry'],
    packages: ['node:'],
  },
  {
    room: 'executors',
    may: [
      'clock',
      'protocol',
      'messages',
      'schema',
      'inspection',
      'results',
      'actor',
      'requests',
      'input',
      'audit',
      'tasks',
      'tool-limits',
    ],
    packages: ['xstate'],
  },
  {
    room: 'middleware',
    may: ['protocol', 'messages', 'results', 'requests', 'input', 'executors'],
    packages: ['node:'],
  },
  {
    room: 'nodes',
    may: ['charts', 'clock', 'limits', 'machines', 'messages', 'operator-log', 'protocol', 'store'],
    packages: ['node:'],
  },
  {
    room: 'options',
    may: [
      'nodes',
      'clock',
      'protocol',
      'limits',
      'operator-log',
      'store',
      'telemetry',
      'watchdog-option',
      'transports',
      'audit',
      'executors',
    ],
    packages: [],
  },
  {
    room: 'registry',
    may: [
      'clock',
      'protocol',
      'xstate-internals',
      'messages',
      'operator-log',
      'schema',
      'inspection',
      'results',
      'actor',
      'requests',
      'input',
      'tasks',
      'tool-limits',
      'executors',
    ],
    packages: ['node:', 'xstate'],
  },
  {
    room: 'apps',
    may: [
      'clock',
      'package-files',
      'protocol',
      'quota',
      'messages',
      'launcher',
      'results',
      'input',
      'executors',
      'registry',
    ],
    packages: ['nanoid', 'node:', 'parse5'],
  },
  {
    room: 'authorization',
    may: ['clock', 'protocol', 'messages', 'operator-log', 'telemetry', 'actor', 'requests', 'registry'],
    packages: ['node:'],
  },
  {
    room: 'sessions',
    may: [
      'clock',
      'machines',
      'protocol',
      'quota',
      'limits',
      'messages',
      'telemetry',
      'operator-log',
      'store',
      'inspection',
      'server-quotas',
      'transports',
      'actor',
      'audit',
      'requests',
      'codec',
      'emitters',
    ],
    packages: ['nanoid', 'node:', 'xstate'],
  },
  {
    room: 'handles',
    may: [
      'clock',
      'global-registry',
      'machines',
      'poison-registry',
      'protocol',
      'quota',
      'xstate-internals',
      'charts',
      'limits',
      'messages',
      'operator-log',
      'schema',
      'store',
      'timer-queue',
      'inspection',
      'results',
      'actor',
      'requests',
      'input',
      'tool-limits',
      'executors',
      'registry',
      'apps',
    ],
    packages: ['nanoid', 'node:', 'xstate'],
  },
  {
    room: 'skills',
    may: [
      'clock',
      'file-watch',
      'frontmatter',
      'protocol',
      'charts',
      'messages',
      'operator-log',
      'actor',
      'requests',
      'input',
      'registry',
      'handles',
    ],
    packages: ['node:', 'xstate'],
  },
  {
    room: 'client',
    may: [
      'make-directory',
      'outgoing-http',
      'throttled-log',
      'clock',
      'frontmatter',
      'package-files',
      'charts',
      'in-flight-table',
      'machines',
      'protocol',
      'messages',
      'operator-log',
      'schema',
      'store',
      'inspection',
      'transports',
      'issuers',
      'actor',
      'codec',
      'results',
      'input',
    ],
    packages: ['cross-spawn', 'node:', 'oauth4webapi', 'xstate'],
  },
  {
    room: 'mounts',
    may: [
      'replace-file',
      'clock',
      'machines',
      'protocol',
      'quota',
      'throttled-log',
      'token-bucket',
      'charts',
      'messages',
      'operator-log',
      'schema',
      'store',
      'transports',
      'inspection',
      'results',
      'actor',
      'requests',
      'codec',
      'input',
      'tool-limits',
      'tool-signature',
      'executors',
      'registry',
      'client',
    ],
    packages: ['minisearch', 'node:', 'xstate'],
  },
  {
    room: 'discovery',
    may: [
      'clock',
      'global-registry',
      'package-files',
      'protocol',
      'operator-log',
      'schema',
      'launcher',
      'registry',
      'handles',
      'mounts',
    ],
    packages: ['node:'],
  },
  {
    room: 'workers',
    may: [
      'replace-file',
      'clock',
      'global-registry',
      'machines',
      'package-files',
      'poison-registry',
      'protocol',
      'charts',
      'operator-log',
      'store',
      'watchdog-option',
      'results',
      'actor',
      'input',
      'registry',
      'discovery',
    ],
    packages: ['nanoid', 'node:', 'xstate'],
  },
  {
    room: 'runtime',
    may: [
      'nodes',
      'clock',
      'ids',
      'machines',
      'protocol',
      'quota',
      'limits',
      'messages',
      'telemetry',
      'operator-log',
      'schema',
      'store',
      'watchdog-option',
      'inspection',
      'server-quotas',
      'transports',
      'actor',
      'audit',
      'launcher',
      'requests',
      'codec',
      'input',
      'emitters',
      'tool-limits',
      'executors',
      'middleware',
      'options',
      'registry',
      'authorization',
      'sessions',
      'tasks',
      'handles',
      'workers',
      'apps',
      'skills',
      'client',
      'mounts',
    ],
    packages: ['nanoid', 'node:', 'xstate'],
  },
  {
    room: 'server',
    may: [
      'nodes',
      'clock',
      'audit',
      'protocol',
      'operator-log',
      'schema',
      'store',
      'telemetry',
      'inspection',
      'messages',
      'transports',
      'launcher',
      'middleware',
      'options',
      'registry',
      'handles',
      'discovery',
      'runtime',
      'apps',
      'skills',
      'mounts',
    ],
    packages: ['node:', 'xstate'],
  },
  {
    room: 'index',
    may: [
      'nodes',
      'clock',
      'protocol',
      'limits',
      'messages',
      'operator-log',
      'json-log',
      'schema',
      'store',
      'telemetry',
      'watchdog-option',
      'inspection',
      'results',
      'transports',
      'actor',
      'audit',
      'input',
      'tasks',
      'tool-limits',
      'executors',
      'middleware',
      'options',
      'registry',
      'handles',
      'discovery',
      'workers',
      'runtime',
      'server',
      'apps',
      'skills',
      'mounts',
    ],
    packages: [],
  },
  {
    room: 'inspector',
    may: [
      'authored-stack',
      'clock',
      'connection-limit',
      'node-name',
      'package-files',
      'protocol',
      'operator-log',
      'charts',
      'inspection',
      'transports',
      'inspector/model',
      'runtime',
      'server',
      'client',
    ],
    packages: ['node:', 'xstate'],
  },
  {
    room: 'gateway',
    may: [
      'near-miss',
      'clock',
      'file-watch',
      'protocol',
      'operator-log',
      'tool-limits',
      'codec',
      'client',
      'input',
      'mounts',
    ],
    packages: ['node:'],
  },
  {
    room: 'cli',
    may: [
      'schema',
      'replace-file',
      'nodes',
      'near-miss',
      'codec',
      'tool-signature',
      'gateway',
      'global-registry',
      'machines',
      'make-directory',
      'node-name',
      'clock',
      'file-watch',
      'package-files',
      'audit',
      'protocol',
      'limits',
      'operator-log',
      'json-log',
      'store',
      'inspection',
      'transports',
      'inspector/model',
      'launcher',
      'options',
      'registry',
      'discovery',
      'workers',
      'server',
      'inspector',
      'client',
      'apps',
      'html-page',
    ],
    packages: ['node:', 'xstate'],
  },
  {
    room: 'testing',
    may: ['clock', 'protocol', 'results', 'transports', 'inspector/model', 'server', 'inspector', 'client'],
    packages: ['node:'],
  },
  { room: 'otel', may: ['protocol', 'messages', 'store', 'telemetry'], packages: ['@opentelemetry/api', 'node:'] },
  { room: 'worker-main', may: ['cli'], packages: [] },
];

function roomOf(file: string): string {
  const [top = '', first = '', second = ''] = file.split('/');
  if (top === 'machines') return top;
  if (first === 'inspector' && (second === 'model' || second === 'frames.ts')) return 'inspector/model';
  return first.replace(/\.ts$/, '');
}

test('every room has a row, and a row names only rooms above it', () => {
  const rows = ROOMS.map(({ room }) => room);
  const rooms = new Set([...files('src'), ...files('machines')].map(roomOf));
  assert.equal([...rows].sort(), [...rooms].sort());
  const wrong = ROOMS.flatMap(({ room, may }, place) =>
    may.filter((other) => !rows.slice(0, place).includes(other)).map((other) => `${room} names ${other}`),
  );
  assert.equal(wrong, []);
});

test('imports point one way', () => {
  const wrong: string[] = [];
  for (const file of [...files('src'), ...files('machines')]) {
    const row = ROOMS.find(({ room }) => room === roomOf(file));
    for (const { from } of imports(file)) {
      const own = from.startsWith('src/') || from.startsWith('machines/');
      const fine = own
        ? roomOf(from) === row?.room || row?.may.includes(roomOf(from))
        : row?.packages.some(
            (name) => from === name || from.startsWith(`${name}/`) || (name.endsWith(':') && from.startsWith(name)),
          );
      if (!fine) wrong.push(`${file} imports ${from}`);
    }
  }
  assert.equal(wrong, []);
});

/** The files of each circle in a graph: its strongly connected components of more than one file (Tarjan). */
function circles(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const found: string[][] = [];
  const index = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const visit = (file: string): number => {
    const own = index.size;
    index.set(file, own);
    open.push(file);
    let low = own;
    for (const next of graph.get(file) ?? []) {
      if (!index.has(next)) low = Math.min(low, visit(next));
      else if (open.includes(next)) low = Math.min(low, lowest.get(next) ?? index.get(next) ?? own);
      lowest.set(file, low);
    }
    if (low === own) {
      const component = open.splice(open.indexOf(file));
      if (component.length > 1) found.push(component.sort());
    }
    return low;
  };
  for (const file of graph.keys()) if (!index.has(file)) visit(file);
  return found;
}

test('no circle of imports between files, types included, except that mail and requests name each other', () => {
  const graph = (counts: (file: string, from: string, typeOnly: boolean) => boolean): Map<string, string[]> =>
    new Map(
      [...files('src'), ...files('machines')].map((file) => [
        file,
        [
          ...imports(file).flatMap(({ from, typeOnly }) => (counts(file, from, typeOnly) ? [from] : [])),
          // Loaded later, but needed all the same.
          ...[...read(file).matchAll(/\bimport\('(\.[^']+)'\)/g)].map(([, from = '']) =>
            posix.join(posix.dirname(file), from),
          ),
        ],
      ]),
    );
  // A request carries the mailboxes of the actors that respond to it, and their mail carries requests (docs/adr/0024-rooms.md).
  const mail = (file: string): boolean => file.startsWith('src/messages/');
  assert.equal(circles(graph((file, from, typeOnly) => !(typeOnly && mail(file) && mail(from)))), []);
  assert.equal(
    circles(graph(() => true)).map((component) => component.every(mail)),
    [true],
  );
  assert.equal(
    circles(
      new Map([
        ['a', ['b']],
        ['b', ['c', 'd']],
        ['c', ['a']],
        ['d', []],
      ]),
    ),
    [['a', 'b', 'c']],
  );
});

test('no file name occurs twice in src, except index.ts and oauth.ts', () => {
  const names = files('src').map((file) => posix.basename(file));
  assert.equal(
    names.filter((name, place) => !['index.ts', 'oauth.ts'].includes(name) && names.indexOf(name) !== place),
    [],
  );
});

test('no exported name is declared twice in src, except the main of each command', () => {
  const declared = new Map<string, Set<string>>();
  for (const file of files('src'))
    for (const [, name = ''] of read(file).matchAll(
      /^export (?:abstract |async )*(?:class|interface|type|function\*?|const|enum) (\w+)/gm,
    ))
      declared.set(name, (declared.get(name) ?? new Set()).add(file));
  // `connect` of `troupe/client` returns a client, and that of `troupe/testing` a client that records; both are public.
  // `oauth` of `troupe/client` signs in, and that of `troupe/oauth` checks who did; both are public.
  const shared = ['main', 'connect', 'oauth'];
  const twice = [...declared].filter(([name, places]) => places.size > 1 && !shared.includes(name));
  assert.equal(
    twice.map(([name, places]) => `${name}: ${[...places].join(', ')}`),
    [],
  );
});

test('only the doors turn text into values and values into text', () => {
  const doors = /^src\/(codec\/(inbound\/parse|outbound\/outbound)|client\/client-codec)\.ts$/;
  // What is sealed is read by nobody else; a schema is told to a model in the middle of a text; a handle is read as a JSON file.
  const inside = [
    'src/input/seal.ts',
    'src/input/model-fallback.ts',
    'src/store/serialize.ts',
    'src/handles/tools/handle-resources.ts',
  ];
  // The inspector has a door of its own: to its viewers, and to the texts that it shows them.
  inside.push('src/inspector/inspector-json.ts');
  // Stored grants and proofs are no messages of MCP.
  inside.push('src/client/oauth/resource-grant.ts', 'src/client/oauth/proof.ts');
  // A source map lies beside the author's code.
  inside.push('src/authored-stack.ts');
  // A model reads a schema in the middle of a text.
  inside.push('src/tool-signature.ts');
  // Heads and news between nodes are no messages.
  inside.push('src/transports/link/link-text.ts');
  // A resource that a view watches is a JSON file, and the definition of a page is a part of its text.
  inside.push('src/apps/resource-reads.ts', 'src/apps/generated-page.ts');
  // A configuration that people edit is no message.
  inside.push('src/codec/commented-json.ts');
  // An answer of a token endpoint is no message.
  inside.push('src/client/oauth/token-answer.ts');
  // The doors write with it.
  inside.push('src/protocol/json-text.ts');
  // A line of the log is no message.
  inside.push('src/json-log.ts');
  // The command line and discovery read package.json, which is no message.
  const others = /^src\/(cli|discovery|testing)(\/|\.ts)/;
  const wrong = files('src').filter(
    (file) =>
      !doors.test(file) &&
      !inside.includes(file) &&
      !others.test(file) &&
      /\bJSON\.(parse|stringify)\b|\bjsonText\(/.test(code(file)),
  );
  assert.equal(wrong, []);
});

test('only the clock touches timers, dates and randomness', () => {
  const allowed = /^src\/(clock\.ts|cli\/|testing)/;
  const pattern = /\b(setTimeout|setInterval|setImmediate|Date\.now|new Date|performance\.now|Math\.random)\b/;
  const wrong = files('src').filter((file) => !allowed.test(file) && pattern.test(code(file)));
  assert.equal(wrong, []);
});

test('no code below the dialects asks which revision it is', () => {
  const pattern = /['"]20\d\d-\d\d-\d\d['"]/;
  const allowed = /^src\/(protocol\/(revisions|dialects\/.*)|testing(\/.*)?)\.ts$/;
  const wrong = files('src').filter(
    (file) => !allowed.test(file) && pattern.test(read(file).replace(/\/\*[\s\S]*?\*\//g, '')),
  );
  assert.equal(wrong, []);
});

test('actors are made in one place', () => {
  // A statechart of an author's is no actor of ours: it has no mailbox that another could reach, and lives as long as its call,
  // or as the instance behind its handle; restoring makes what a new version invokes, to persist it, and starts nothing.
  // What traces the steps of a chart needs one that is never started, and so does the check of XState's members.
  const authors = [
    'src/xstate-internals.ts',
    'src/inspection/stepping.ts',
    'src/handles/hosted-machine.ts',
    'src/handles/restore.ts',
  ];
  const places = ['src/actor/actor.ts', ...authors];
  const wrong = files('src').filter((file) => !places.includes(file) && /\bcreateActor\b/.test(code(file)));
  assert.equal(wrong, []);
});

test('one file touches the members of XState that its documentation does not promise', () => {
  const members =
    /\b(_actorScope|_actorSystem|_children|_initialTransition|_nodes|_parent|_process|_processingStatus|_relay|_scheduledEvents|_send|_sendInspectionEvent|_snapshot|_transitions|_unregister|actionExecutor)\b|\bsystem\.scheduler\b/;
  const places = ['src/xstate-internals.ts'];
  const wrong = [...files('src'), ...files('machines')].filter(
    (file) => !places.includes(file) && members.test(code(file)),
  );
  assert.equal(wrong, []);
});

/** The code without the methods that only show an actor to the inspector. */
function deciding(file: string): string {
  return code(file).replace(/^ {2}(?:get )?(?:state|chart|facts|waits)\(\)[^\n]*\{\n[\s\S]*?^ {2}\}$/gm, '');
}

test('every machine decides: its owner reads its state, and not only for the inspector', () => {
  const reads =
    /(#snapshot|#supervisor|#state|\bstate|\bnow|\bnext|\bsupervisor)(\.value [!=]==|\.status [!=]==|\.(hasTag|matches|can|has|after)\()/;
  const idle = files('machines').filter((machine) => {
    const owners = files('src').filter((file) =>
      imports(file).some(({ from, typeOnly }) => from === machine && !typeOnly),
    );
    return !owners.some((file) => reads.test(deciding(file)));
  });
  assert.equal(idle, []);
});

test('only the room of the in-flight table names a request that can be written to', () => {
  const wrong = files('src').filter(
    (file) => !file.startsWith('src/requests/') && /\b(ActiveRequest|activeRequestOf)\b/.test(code(file)),
  );
  assert.equal(wrong, []);
});

test('machines name no effect: no functions in context, no timers, no process', () => {
  for (const file of files('machines')) {
    assert.not.match(
      code(file),
      /\b(process|console|fetch|setTimeout|setInterval|Promise|await|async|globalThis)\b/,
      file,
    );
    assert.equal(
      imports(file).filter(({ from }) => from !== 'xstate' && !from.startsWith('machines/')),
      [],
      file,
    );
  }
  const config: unknown = JSON.parse(read('machines/tsconfig.json'));
  assert.match(JSON.stringify(config), /"types":\[\]/);
  assert.not.match(read('tsconfig.base.json'), /dom/i);
});

test('every file of src and machines opens with one sentence that says what it is', () => {
  const wrong = [...files('src'), ...files('machines')].filter(
    (file) => !/^(#!.*\n)?\/\*\* [^\n]*[.:?]/.test(read(file)) && !/^(#!.*\n)?\/\*\*\n \* [A-Z]/.test(read(file)),
  );
  assert.equal(wrong, []);
});

test('pages and the titles of tests use the words of the glossary, and a title begins with no wh-clause', () => {
  const pages = [...files('docs', /\.md$/), 'README.md', 'CHANGELOG.md'];
  const words = pages.flatMap((page) => wrongWordsInPage(read(page)).map((word) => `${page}: ${word}`));
  assert.equal(words, []);
  const titles = files('test').flatMap((file) => wrongTitles(read(file)).map((title) => `${file}: ${title}`));
  assert.equal(titles, []);
  // Apart from `test`, so that the search does not find them in this file.
  for (const title of ['what a step gave', 'R-01: whichever batch it is', 'S-29 S-30 how a page reads'])
    assert.equal(wrongTitles(`test${`('${title}')`}`), [title]);
});

test('comments begin with a subject or a verb, and comments and names use the words of the glossary', () => {
  const sources = [...files('src'), ...files('machines'), ...files('inspector', /\.tsx?$/), ...files('apps')];
  const wrong = sources.map((file) => wrongWords(file, read(file)));
  assert.equal(
    wrong.flatMap(({ clauses }) => clauses),
    [],
  );
  assert.equal(
    wrong.flatMap(({ words }) => words),
    [],
  );
});

test('the rule for words finds clauses, words, names and types, and nothing in strings', () => {
  assert.equal(commentsOf('/** One\n * two. */\nconst a = 1; // three\n// four\n'), [
    { line: 1, text: 'One two.' },
    { line: 3, text: 'three four' },
  ]);
  const wrong = wrongWords('a.ts', '/** What a client gets. */\n// It is told so.\ninterface Kept { sessionTold: 1 }');
  assert.equal(wrong, {
    clauses: ['a.ts:1: What a client gets.'],
    words: ['a.ts:2: "told" in a comment', 'a.ts: the name sessionTold', 'a.ts: the type Kept'],
  });
  assert.equal(wrongWords('a.ts', "/** A fact. */\nconst holder = 'told'; // The client keeps it."), {
    clauses: [],
    words: [],
  });
});

test('nothing escapes the types: no any, no ignored errors', () => {
  const wrong = [...files('src'), ...files('machines')].filter(
    (file) => /\bas any\b|: any\b|<any>/.test(code(file)) || /@ts-(ignore|expect-error|nocheck)/.test(read(file)),
  );
  assert.equal(wrong, []);
});

test('only the door imports uvu itself', () => {
  const wrong = files('test').filter(
    (file) => file !== 'test/harness/door.ts' && imports(file).some(({ from }) => from === 'uvu'),
  );
  assert.equal(wrong, []);
});

test('every error code has its heading in docs/errors.md, and every heading its code', async () => {
  const { ErrorCode } = await import('../../src/protocol/errors.ts');
  const headings = [...read('docs/errors.md').matchAll(/^## (-\d+) (\w+)$/gm)].map(
    ([, code, name]) => `${name} ${code}`,
  );
  assert.equal(
    headings.sort(),
    Object.entries(ErrorCode)
      .map(([name, code]) => `${name} ${code}`)
      .sort(),
  );
});

test('machines/README.md is as the machines are: npm run machines writes it', async () => {
  const { machinesPage } = await import('./machines-page.ts');
  assert.is(await machinesPage(), read('machines/README.md'));
});

test('every machine is described in machines/README.md, with its states and events', async () => {
  const readme = read('machines/README.md');
  for (const file of files('machines')) {
    const name = relative('machines', file).replace('.ts', '').replaceAll('-', ' ');
    const section = readme.split(/^## /m).find((part) => part.startsWith(`${name}\n`));
    assert.ok(section, `machines/README.md has no section "${name}"`);
    const module: Record<string, unknown> = await import(moduleUrl(file));
    const exported = `${name.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase())}Machine`;
    const machine = module[exported];
    assert.ok(typeof machine === 'object' && machine !== null && 'states' in machine, `${file} exports ${exported}`);
    for (const state of Object.keys(machine.states as object))
      assert.ok(section.includes(`\`${state}\``), `machines/README.md, ${name}: state ${state}`);
    for (const event of (machine as unknown as { events: string[] }).events)
      assert.ok(section.includes(`\`${event}\``), `machines/README.md, ${name}: event ${event}`);
  }
});

test('git ignores no folder that the build needs: a fresh clone has all of it', () => {
  const ignored = read('.gitignore')
    .split('\n')
    .flatMap((line) => /^([\w-]+)\/$/.exec(line)?.[1] ?? []);
  assert.ok(ignored.includes('node_modules'));
  const hidden = ['src', 'machines', 'inspector', 'examples', 'test', 'docs'].flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).filter((file) =>
      file.split(sep).some((part) => ignored.includes(part)),
    ),
  );
  assert.equal(hidden, [], 'write such a line of .gitignore with a slash before it');
});
