/** The house rules that a test can hold: which way imports point, what machines may name, who may parse, who may touch a timer. */
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, posix, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '../..');
const test = suite('house rules');

function files(folder: string): string[] {
  return readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !file.endsWith('.d.ts'))
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

/** What each layer may import from, besides itself. Lower layers know nothing of higher ones. */
const LAYERS: readonly {
  readonly of: RegExp;
  readonly may: readonly RegExp[];
  readonly packages: readonly string[];
}[] = [
  { of: /^machines\//, may: [/^machines\//], packages: ['xstate'] },
  { of: /^src\/protocol\//, may: [/^src\/protocol\//], packages: [] },
  { of: /^src\/messages\//, may: [/^src\/messages\//, /^src\/protocol\//], packages: [] },
  { of: /^src\/schema\//, may: [/^src\/schema\//, /^src\/protocol\//], packages: ['ajv', 'ajv-formats', 'node:'] },
  {
    of: /^src\/asking\//,
    may: [/^src\/(asking|schema|messages|protocol)\//, /^src\/process-wide\.ts$/],
    packages: ['nanoid', 'node:crypto', 'xstate'],
  },
  { of: /^src\/store\//, may: [/^src\/(store|protocol)\//, /^src\/(clock|own)\.ts$/], packages: ['node:', 'libsql'] },
  { of: /^src\/results\//, may: [/^src\/(results|schema|protocol)\//], packages: [] },
  { of: /^src\/outbound\//, may: [/^src\/(outbound|messages|protocol)\//], packages: [] },
  { of: /^src\/requests\//, may: [/^src\/(requests|messages|protocol)\//], packages: [] },
  { of: /^src\/inbound\//, may: [/^src\/(inbound|inspection|requests|messages|protocol)\//], packages: [] },
  {
    of: /^src\/execution\//,
    may: [/^src\/(execution|asking|results|schema|messages|protocol)\//, /^src\/clock\.ts$/],
    packages: ['node:async_hooks'],
  },
  { of: /^src\/charts\//, may: [/^src\/(charts|protocol)\//], packages: ['node:crypto', 'xstate'] },
  {
    of: /^src\/inspection\//,
    may: [/^src\/(inspection|charts|messages|protocol)\//, /^src\/clock\.ts$/],
    packages: ['xstate'],
  },
  {
    of: /^src\/toolset\//,
    may: [/^src\/(toolset|charts|handles|registration|execution|results|schema|messages|protocol)\//],
    packages: ['nanoid', 'node:crypto', 'xstate'],
  },
  {
    of: /^src\/handles\//,
    may: [
      /^machines\//,
      /^src\/(handles|charts|inspection|asking|execution|results|store|messages|protocol)\//,
      /^src\/(clock|options|process-wide|quota)\.ts$/,
    ],
    packages: ['nanoid', 'node:crypto', 'xstate'],
  },
  {
    of: /^src\/actors\//,
    may: [
      /^machines\//,
      /^src\/(actors|charts|inspection|asking|execution|registry|requests|outbound|messages|protocol)\//,
      /^src\/(clock|quota)\.ts$/,
    ],
    packages: ['xstate'],
  },
  {
    of: /^src\/supervision\//,
    // Its threads load the author's modules, as discovery does, and keep what outlives the process as text.
    may: [
      /^machines\//,
      /^src\/(supervision|discovery|execution|registration|results|messages|protocol)\//,
      /^src\/(actors\/quarantine|inspection\/records|store\/(text|notes)|options|clock|own|process-wide)\.ts$/,
    ],
    packages: ['node:', 'nanoid', 'xstate'],
  },
  {
    of: /^src\/inspector\/(model\/|frames\.ts)/,
    // A page and an exported file have them too: they know neither Node nor the server.
    may: [
      /^src\/inspector\/(model\/|frames\.ts)/,
      /^src\/charts\/(node|condition)\.ts$/,
      /^src\/inspection\/told\.ts$/,
    ],
    packages: [],
  },
  {
    of: /^src\/inspector\//,
    // It is opened with a server, and is a transport to it: so it hears of its end, and may end connections.
    may: [
      /^src\/(inspector|inspection|charts|messages|protocol)\//,
      /^src\/(hosting\/inside|transports\/(memory|transport|http\/negotiate)|clock|server)\.ts$/,
    ],
    packages: ['node:', 'xstate'],
  },
  {
    of: /^src\/transports\//,
    may: [/^src\/(transports|messages|protocol)\//, /^src\/(bus|clock|process-wide|quota)\.ts$/],
    packages: ['node:', 'nanoid'],
  },
];

test('imports point one way', () => {
  const wrong: string[] = [];
  for (const { of, may, packages } of LAYERS) {
    const mine = [...files('src'), ...files('machines')].filter((file) => of.test(file));
    assert.ok(mine.length > 0, `the rule for ${of} matches no file`);
    for (const file of mine) {
      for (const { from } of imports(file)) {
        const own = from.startsWith('src/') || from.startsWith('machines/');
        const fine = own
          ? may.some((pattern) => pattern.test(from))
          : packages.some(
              (name) => from === name || from.startsWith(`${name}/`) || (name.endsWith(':') && from.startsWith(name)),
            );
        if (!fine) wrong.push(`${file} imports ${from}`);
      }
    }
  }
  assert.equal(wrong, []);
});

test('only the doors turn text into values and values into text', () => {
  const doors = /^src\/(inbound\/parse|outbound\/outbound)\.ts$/;
  // What is sealed is read by nobody else; a schema is told to a model in the middle of a text; a handle is read as a JSON file.
  const inside = ['src/asking/seal.ts', 'src/asking/through-model.ts', 'src/store/text.ts', 'src/toolset/json-text.ts'];
  // The inspector has a door of its own: to its viewers, and to the texts that it shows them.
  inside.push('src/inspector/json.ts');
  // The command line and discovery read package.json, which is no message.
  const others = /^src\/(cli|discovery|testing)(\/|\.ts)/;
  const wrong = files('src').filter(
    (file) =>
      !doors.test(file) &&
      !inside.includes(file) &&
      !others.test(file) &&
      /\bJSON\.(parse|stringify)\b/.test(code(file)),
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
  // What traces the steps of a chart needs one that is never started.
  const authors = [
    'src/inspection/stepping.ts',
    'src/actors/machine-run.ts',
    'src/handles/living.ts',
    'src/handles/restoring.ts',
  ];
  const places = ['src/actors/actor.ts', ...authors];
  const wrong = files('src').filter((file) => !places.includes(file) && /\bcreateActor\b/.test(code(file)));
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
    const name = relative('machines', file).replace('.ts', '');
    const section = readme.split(/^## /m).find((part) => part.startsWith(`${name}\n`));
    assert.ok(section, `machines/README.md has no section "${name}"`);
    const module: Record<string, unknown> = await import(`../../machines/${name}.ts`);
    const machine = module[`${name}Machine`];
    assert.ok(typeof machine === 'object' && machine !== null && 'states' in machine, `${file} exports ${name}Machine`);
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
