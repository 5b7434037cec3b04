/** The house rules that a test can hold: which way imports point, what machines may name, who may parse, who may touch a timer. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { Chart } from '../../../machines/chart/chart.ts';
import { moduleUrl } from '../../harness/compiled.ts';
import { suite } from '../../harness/door.ts';
import { immediateLooks } from './page-looks.ts';
import { commentsOf, wrongTitles, wrongWords, wrongWordsInPage } from './words.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../../..');
const test = suite('house rules');

/** What a function has answered for each argument: the rules read the same files. */
function once<T>(find: (path: string) => T): (path: string) => T {
  const found = new Map<string, T>();
  return (path) => {
    const known = found.get(path);
    if (known !== undefined) return known;
    const answer = find(path);
    found.set(path, answer);
    return answer;
  };
}

const below = once((folder) => readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }));

function files(folder: string, ending = /\.ts$/): string[] {
  return below(folder)
    .filter((file) => ending.test(file) && !file.endsWith('.d.ts'))
    .map((file) => posix.join(folder, file.split(sep).join('/')));
}

/** The charts: what they are made of is in a folder of its own. */
const charts = (): readonly string[] => files('machines').filter((file) => !file.startsWith('machines/chart/'));

const read = once((file) => readFileSync(join(root, file), 'utf8'));

/** The text without comments and strings, so that prose may name what code may not. */
const code = once((file) =>
  read(file)
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|[^:])\/\/.*$/gm, '$1')
    .replace(/`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''"),
);

const imports = once((file): readonly { readonly from: string; readonly typeOnly: boolean }[] =>
  [...read(file).matchAll(/^(?:import|export)\s+(type\s)?[^;]*?from\s+'([^']+)'/gms)].map(([, type, from = '']) => ({
    typeOnly: type !== undefined,
    from: from.startsWith('.') ? posix.normalize(posix.join(posix.dirname(file), from)) : from,
  })),
);

/** The rooms of the core, from the ground floor up: each imports only those before it. */
const CORE = [
  ...['protocol', 'messages', 'kernel', 'schema', 'store', 'requests', 'execution', 'registry', 'codec', 'emitters'],
  ...['transports', 'sessions', 'http', 'server'],
];

test('the core imports no feature, and its rooms import only those below them', () => {
  const wrong = files('src/core').flatMap((file) => {
    const floor = CORE.indexOf(file.split('/')[2] ?? '');
    assert.ok(floor >= 0, `${file}: a room of the core without a floor`);
    return imports(file).flatMap(({ from }) => {
      const [top, part, room = ''] = from.split('/');
      const isBelow = part === 'core' && CORE.indexOf(room) <= floor;
      return top !== 'src' || isBelow ? [] : `${file} imports ${from}`;
    });
  });
  assert.equal(wrong, []);
});

/** The features that each feature uses besides the core. The list of the package uses all of them. */
const USES: Readonly<Record<string, readonly string[]>> = {
  apps: ['asking'],
  approvals: ['asking', 'cluster', 'guard/audit', 'guard/authorization'],
  asking: ['guard/audit'],
  charts: [],
  // It finds the tools of mounts.
  code: ['approvals', 'asking', 'durability', 'gateway', 'guard/authorization'],
  cluster: ['asking', 'durability'],
  // A module may export mounts and machines.
  discovery: ['machines', 'gateway'],
  durability: ['guard/audit'],
  events: ['cluster', 'guard/authorization'],
  forgetting: ['cluster', 'guard/audit', 'machines', 'tasks'],
  'guard/audit': [],
  'guard/authorization': ['asking', 'events', 'tasks', 'guard/audit'],
  'guard/limits': ['guard/audit'],
  hooks: ['machines'],
  machines: ['apps', 'asking', 'cluster', 'events', 'guard/audit', 'guard/limits', 'schedules', 'skills', 'workers'],
  middleware: ['guard/authorization'],
  // The methods that need no token may be theirs.
  oauth: ['skills', 'tasks'],
  postgres: [],
  schedules: [],
  // A machine has a manual.
  skills: ['asking', 'charts', 'machines'],
  sqlite: [],
  state: [],
  tasks: ['asking', 'cluster'],
  telemetry: [],
  workers: ['discovery'],
};

test('a feature imports the core and the features that it declares', () => {
  const roomOf = (file: string): string => {
    const [, top = '', room = '', part = ''] = file.split('/');
    if (top !== 'features') return top;
    return room === 'guard' ? `${room}/${part}` : room;
  };
  const used = new Map(Object.keys(USES).map((room) => [room, new Set<string>()]));
  for (const file of files('src/features')) {
    const room = roomOf(file);
    if (room === 'server') continue;
    for (const { from } of imports(file))
      if (from.startsWith('src/') && !from.startsWith('src/core/') && roomOf(from) !== room)
        (used.get(room) ?? assert.unreachable(`${file}: a feature without a row`))?.add(roomOf(from));
  }
  assert.equal(
    Object.fromEntries([...used].map(([room, names]) => [room, [...names].sort()])),
    Object.fromEntries(Object.entries(USES).map(([room, names]) => [room, [...names].sort()])),
  );
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
  const mail = (file: string): boolean => file.startsWith('src/core/messages/');
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

test('no file name occurs twice in src, except index.ts, oauth.ts, and the file of a command with the name of another', () => {
  const names = files('src').map((file) => posix.basename(file));
  assert.equal(
    names.filter(
      (name, place) => !['index.ts', 'oauth.ts', 'types.ts'].includes(name) && names.indexOf(name) !== place,
    ),
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
  const doors = /^src\/(core\/codec\/(inbound\/parse|outbound\/outbound)|client\/client-codec)\.ts$/;
  // What is sealed is read by nobody else; a schema is told to a model in the middle of a text; a handle is read as a JSON file.
  const inside = [
    'src/core/store/seal.ts',
    'src/features/asking/model-fallback.ts',
    'src/core/store/serialize.ts',
    'src/features/machines/tools/handle-resources.ts',
  ];
  // The inspector has a door of its own: to its viewers, and to the texts that it shows them.
  inside.push('src/inspector/inspector-json.ts');
  // Stored grants and proofs are no messages of MCP.
  inside.push('src/client/oauth/resource-grant.ts', 'src/client/oauth/proof.ts');
  // A source map lies beside the author's code.
  inside.push('src/core/kernel/authored-stack.ts');
  // The names in a page are a part of its text.
  inside.push('src/gateway/mounts/translated-page.ts');
  // Heads and news between nodes are no messages.
  inside.push('src/features/cluster/link/link-text.ts');
  // A resource that a view watches is a JSON file, and the definition of a page is a part of its text.
  inside.push('src/features/apps/resource-reads.ts', 'src/features/apps/generated-page.ts');
  // A configuration that people edit is no message.
  inside.push('src/core/codec/commented-json.ts');
  // An answer of a token endpoint is no message.
  inside.push('src/client/oauth/token-answer.ts');
  // The doors write with it.
  inside.push('src/core/protocol/json-text.ts');
  // A document of an API is no message, and its megabytes have no number whose digits a tool needs.
  inside.push('src/gateway/openapi/document-source.ts');
  // A script and its sandbox exchange texts, which are no messages.
  inside.push('src/features/code/sandbox/sandboxed-script.ts');
  // A line of the log is no message.
  inside.push('src/core/server/json-log.ts');
  // The command line and discovery read package.json, which is no message.
  const others = /^src\/(cli|features\/discovery|testing)\//;
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
  const allowed = /^src\/(core\/kernel\/clock\.ts|cli\/|testing\/)/;
  const pattern = /\b(setTimeout|setInterval|setImmediate|Date\.now|new Date|performance\.now|Math\.random)\b/;
  const wrong = files('src').filter((file) => !allowed.test(file) && pattern.test(code(file)));
  assert.equal(wrong, []);
});

test('no code below the dialects asks which revision it is', () => {
  const pattern = /['"]20\d\d-\d\d-\d\d['"]/;
  const allowed = /^src\/(core\/protocol\/(revisions|dialects\/.*)|testing\/.*)\.ts$/;
  const wrong = files('src').filter(
    (file) => !allowed.test(file) && pattern.test(read(file).replace(/\/\*[\s\S]*?\*\//g, '')),
  );
  assert.equal(wrong, []);
});

test('only a machine of an author runs as an actor of XState', () => {
  // A statechart of an author's is no actor of ours: it has no mailbox that another could reach, and lives as long as its call,
  // or as the instance behind its handle; restoring makes what a new version invokes, to persist it, and starts nothing.
  // What traces the steps of a chart needs one that is never started, and so does the check of XState's members.
  const authors = [
    'src/core/kernel/xstate-internals.ts',
    'src/core/kernel/inspection/edges-taken.ts',
    'src/features/machines/hosted-machine.ts',
    'src/features/machines/restore.ts',
  ];
  const wrong = files('src').filter((file) => !authors.includes(file) && /\bcreateActor\b/.test(code(file)));
  assert.equal(wrong, []);
});

test('one function steps the charts without context, and one those with context', () => {
  // The others step the machines of authors: for a viewer of the inspector, and to find what an instance has passed.
  const places = [
    'src/core/kernel/step-machine.ts',
    'src/features/machines/event-history.ts',
    'src/inspector/views/what-if.ts',
  ];
  const steps = /\b(initialTransition|transition|getNextSnapshot|getInitialSnapshot)\b[^;]*from 'xstate'/;
  const wrong = [...files('src'), ...files('machines')].filter(
    (file) => !places.includes(file) && steps.test(code(file)),
  );
  assert.equal(wrong, []);
});

test('one file touches the members of XState that its documentation does not promise', () => {
  const members =
    /\b(_actorScope|_actorSystem|_children|_initialTransition|_nodes|_parent|_process|_processingStatus|_relay|_scheduledEvents|_send|_sendInspectionEvent|_snapshot|_transitions|_unregister|actionExecutor)\b|\bsystem\.scheduler\b/;
  const places = ['src/core/kernel/xstate-internals.ts'];
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
    /(#snapshot|#supervisor|#state|\bstate|\bnow|\bnext|\bsupervisor)(\.(?:path|value) [!=]==|\.status [!=]==|\.(hasTag|matches|can|has|after)\()/;
  const idle = charts().filter((machine) => {
    const owners = files('src').filter((file) =>
      imports(file).some(({ from, typeOnly }) => from === machine && !typeOnly),
    );
    return !owners.some((file) => reads.test(deciding(file)));
  });
  assert.equal(idle, []);
});

test('only the room of the in-flight table names a request that can be written to', () => {
  const wrong = files('src').filter(
    (file) => !file.startsWith('src/core/requests/') && /\b(ActiveRequest|activeRequestOf)\b/.test(code(file)),
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

test('no test makes the table of all characters of fast-check, which takes a second in each process', () => {
  const makes = /^[^*\n]*(?:\bunit: '(?:binary|grapheme(?!-ascii))|(?<!`)\bfc\.web[A-Z])/m;
  assert.equal(
    files('test').filter((file) => file !== 'test/system/house/rules.test.ts' && makes.test(read(file))),
    [],
    'use the arbitraries of test/harness/character.ts',
  );
});

test('no assertion about a page looks once, and no test of a page sleeps', () => {
  const opens = files('test').filter((file) =>
    imports(file).some(({ from }) => from === 'test/harness/browser.ts' || from === 'playwright-core'),
  );
  assert.ok(opens.length > 20);
  assert.equal(
    opens.flatMap((file) =>
      file === 'test/harness/browser.ts' ? [] : immediateLooks(code(file)).map((look) => `${file}: ${look}`),
    ),
    [],
    'wait with shows, counts, sees and lacks of test/harness/browser.ts, and with elapse of test/harness/wait.ts',
  );
  for (const [look, found] of [
    ["assert.is(await page.locator('a').innerText(), 'b')", 1],
    ['assert.equal(await statesOf(page), [])', 1],
    ['const box = await row.boundingBox();\nassert.ok(box && box.width > 60)', 1],
    ['const all = await page.evaluate((of) => of);\nconst some = all.slice(1);\nassert.is(some.length, 2)', 1],
    ['await page.waitForTimeout(250)', 1],
    ["await sees(() => page.locator('a').innerText(), 'b')", 0],
    ['const width = async () => (await row.boundingBox())?.width;\nawait sees(width, 60)', 0],
    ['const before = await rows.count();\nawait counts(rows, before + 1)', 0],
    ['assert.equal(server.calls, [])', 0],
  ] as const)
    assert.is(immediateLooks(look).length, found, look);
});

test('only the door imports uvu itself', () => {
  const wrong = files('test').filter(
    (file) => file !== 'test/harness/door.ts' && imports(file).some(({ from }) => from === 'uvu'),
  );
  assert.equal(wrong, []);
});

test('every error code has its heading in docs/errors.md, and every heading its code', async () => {
  const { ErrorCode } = await import('../../../src/core/protocol/errors.ts');
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
  for (const file of charts()) {
    const name = relative('machines', file).replace('.ts', '').replaceAll('-', ' ');
    const section = readme.split(/^## /m).find((part) => part.startsWith(`${name}\n`));
    assert.ok(section, `machines/README.md has no section "${name}"`);
    const module: Record<string, unknown> = await import(moduleUrl(file));
    const exported = `${name.replace(/ (\w)/g, (_, letter: string) => letter.toUpperCase())}Machine`;
    const value = module[exported];
    const machine = value instanceof Chart ? value.machine : value;
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
