/** The package as npm publishes it: its size, its files, and the files that `package.json` names. */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import * as assert from 'uvu/assert';
import { z } from 'zod';
import { suite } from '../../harness/door.ts';
import { SCALE } from '../../harness/scale.ts';

const test = suite('the package');
const root = fileURLToPath(new URL('../../..', import.meta.url));
const MAX_BYTES = 4_600_000;
// publint and attw read the whole tarball, which takes a busy machine some time.

/** Its last statement has the only error, so that a compiler that checks nothing is found. */
const USER_PROGRAM = `
import { createServer, type Feature } from 'troupe';
declare module 'troupe' { interface Limits { readonly maxWords: number } }
import { connect } from 'troupe/testing';
import { connectView } from 'troupe/app';
import * as client from 'troupe/client';
import * as inspector from 'troupe/inspector';
import { oauth } from 'troupe/oauth';
import { otel } from 'troupe/otel';
const server = createServer({ name: 'a', version: '1' });
server.use('tools/list', async (_call, _ctx, next) => next());
server.tool('add', { input: { type: 'object', properties: { a: { type: 'number' } }, required: ['a'] }, limits: { perDay: 9, cost: ({ a }) => a } }, ({ a }) => a + 1);
server.resource('order://{id}{?page}', {}, ({ variables }) => variables.size);
const words: Feature = { name: 'words', limits: { maxWords: { default: 1, unit: 'words' } }, open: ({ limits }) => ({ service: limits.maxWords + 1 }) };
createServer({ name: 'a', version: '1', features: [words], limits: { maxWords: 2 } });
export { client, connect, connectView, inspector, oauth, otel };
`;

const REQUIRES = /\brequire\(["'](\.[^"'\n]*)["']/g;
const IMPORTS = /(?:\bfrom |\bimport\()["'](\.[^"'\n]*)["']/g;

const Packed = z.array(
  z.object({ filename: z.string(), unpackedSize: z.number(), files: z.array(z.object({ path: z.string() })) }),
);
const Manifest = z.object({
  files: z.array(z.string()),
  exports: z.record(z.string(), z.union([z.string(), z.record(z.string(), z.string())])),
  bin: z.record(z.string(), z.string()),
  sideEffects: z.array(z.string()),
});

/** Packs the package as `npm publish` does. */
function npmPack(folder: string): z.infer<typeof Packed>[number] {
  const args = ['pack', '--json', '--ignore-scripts', '--pack-destination', folder];
  const output = execFileSync('npm', args, { cwd: root, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  const [packed] = Packed.parse(JSON.parse(output));
  if (packed === undefined) throw new Error('npm packs nothing');
  return packed;
}

/** The files that npm publishes, by `files` of `package.json` and the `.npmignore` of the library. */
function publishedFiles(): readonly string[] {
  const { files } = Manifest.parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));
  const stale = readFileSync(join(root, 'dist/lib/.npmignore'), 'utf8').split('\n');
  const left = [
    ...files.flatMap((name) => (name.startsWith('!') ? name.slice(1) : [])),
    ...stale.flatMap((name) => (name === '' ? [] : `dist/lib${name}`)),
  ];
  const below = files
    .filter((name) => !name.startsWith('!'))
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' })
        .map((file) => posix.join(folder, ...file.split(sep)))
        .filter((path) => statSync(join(root, path)).isFile()),
    );
  return ['LICENSE', 'README.md', 'package.json', ...below].filter(
    (path) => !path.endsWith('/.npmignore') && !left.some((name) => path === name || path.startsWith(`${name}/`)),
  );
}

if (existsSync(join(root, 'dist/lib'))) {
  const folder = mkdtempSync(join(tmpdir(), 'troupe-package-'));
  test.after(() => rmSync(folder, { recursive: true, force: true }));
  let result: z.infer<typeof Packed>[number] | undefined;
  const packed = (): z.infer<typeof Packed>[number] => {
    result ??= npmPack(folder);
    return result;
  };
  // `npm pack` takes 1.5 s of processor time: the full run asks it, and compares.
  const isQuick = SCALE === 'quick';
  const paths = isQuick ? publishedFiles() : packed().files.map(({ path }) => path);
  const unpackedSize = isQuick
    ? paths.reduce((sum, path) => sum + statSync(join(root, path)).size, 0)
    : packed().unpackedSize;

  test('the package has at most 4.6 MB unpacked', () => {
    assert.ok(unpackedSize <= MAX_BYTES, `${unpackedSize} bytes`);
  });

  test('the package contains no source map, no test and no source, and its declarations are in one folder', () => {
    assert.equal(
      paths.filter((path) =>
        /\.map$|\.tsbuildinfo$|^(src|test|machines|apps|inspector|bench|dist\/check)\//.test(path),
      ),
      [],
    );
    assert.equal(
      paths.filter((path) => path.endsWith('.d.ts') && !path.startsWith('dist/types/')),
      [],
    );
  });

  test.full('npm packs the files that a quick run expects', () => {
    assert.equal(
      packed()
        .files.map(({ path }) => path)
        .sort(),
      [...publishedFiles()].sort(),
    );
  });

  test('the package contains each file that package.json names', () => {
    const { exports, bin, sideEffects } = Manifest.parse(JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')));
    const named = [...Object.values(exports), ...Object.values(bin)].flatMap((entry) =>
      typeof entry === 'string' ? [entry] : Object.values(entry),
    );
    assert.ok(named.length > 0);
    assert.equal(
      named.filter((path) => !paths.includes(path.replace('./', ''))),
      [],
    );
    for (const pattern of sideEffects) {
      const [start = '', end = ''] = pattern.replace('./', '').split('*');
      assert.ok(
        paths.some((path) => path.startsWith(start) && path.endsWith(end)),
        pattern,
      );
    }
  });

  test('npm changes nothing in package.json when it publishes it', () => {
    // A path of `bin` that begins with "./" is removed by npm 11, and the command with it.
    const manifest = readFileSync(join(root, 'package.json'), 'utf8');
    writeFileSync(join(folder, 'package.json'), manifest);
    execFileSync('npm', ['pkg', 'fix'], { cwd: folder, stdio: 'ignore' });
    assert.equal(JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8')), JSON.parse(manifest));
  });

  test('each module and each declaration finds what it imports in the package, and no file names a source map', () => {
    const missing: string[] = [];
    let imports = 0;
    for (const path of paths.filter((each) => /\.(?:c?js|d\.ts)$/.test(each))) {
      const text = readFileSync(join(root, path), 'utf8');
      if (/^\/\/# sourceMappingURL=/m.test(text)) missing.push(`${path}: its source map`);
      // CommonJS has texts of programs, which import.
      const pattern = path.endsWith('.cjs') ? REQUIRES : IMPORTS;
      for (const [, name = ''] of text.matchAll(pattern)) {
        imports += 1;
        const file = posix.join(dirname(path), name);
        if (![file, file.replace(/\.[jt]s$/, '.d.ts')].some((each) => paths.includes(each)))
          missing.push(`${path}: ${name}`);
      }
    }
    assert.ok(imports > 1_000, `${imports} imports`);
    assert.equal(missing, []);
  });

  test('each relative link of the pages in the package leads to a file in it', () => {
    const missing: string[] = [];
    for (const path of paths.filter((each) => each.endsWith('.md')))
      for (const [, link = ''] of readFileSync(join(root, path), 'utf8')
        .replace(/```.*?```/gs, '')
        .matchAll(/\]\(([^)#\s]+)(?:#[^)]*)?\)/g))
        if (!/^[a-z]+:/.test(link) && !paths.includes(posix.join(dirname(path), link)))
          missing.push(`${path}: ${link}`);
    assert.equal(missing, []);
  });

  test.full('publint finds nothing in the tarball', () => lint('publint', 'run', '--strict'));

  // The package is ESM: CommonJS programs load it by import() or, from Node 20.19 on, by require().
  test.full('attw finds that each export has the types of its code', () => lint('attw', '--profile', 'esm-only'));

  // skipLibCheck off, and exactOptionalPropertyTypes on. The declarations of XState fail this check themselves.
  const RESOLUTIONS = [
    ['node16', 'node16'],
    ['bundler', 'esnext'],
  ] as const;
  for (const [moduleResolution, module] of RESOLUTIONS)
    test.full(`the declarations compile strictly in the program of a user (${moduleResolution})`, () => {
      const project = join(folder, moduleResolution);
      const modules = join(project, 'node_modules');
      mkdirSync(join(modules, '@types'), { recursive: true });
      execFileSync('tar', ['xzf', join(folder, packed().filename), '-C', modules]);
      renameSync(join(modules, 'package'), join(modules, 'troupe'));
      for (const name of ['xstate', 'oauth4webapi', 'undici-types', '@types/node'])
        symlinkSync(join(root, 'node_modules', name), join(modules, name), 'dir');
      const compilerOptions = {
        ...{ strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false, noEmit: true, target: 'es2022' },
        ...{ module, moduleResolution, types: ['node'] },
      };
      writeFileSync(join(project, 'package.json'), '{"type":"module"}');
      writeFileSync(join(project, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['server.ts'] }));
      writeFileSync(join(project, 'server.ts'), USER_PROGRAM);
      const tsc = join(root, 'node_modules/.bin/tsc');
      const { stdout } = spawnSync(process.execPath, [tsc, '--checkers', '1', '-p', project], { encoding: 'utf8' });
      const errors = stdout.split('\n').filter((line) => /error TS\d+/.test(line));
      const ours = errors.filter((line) => !line.includes('xstate/dist/declarations/'));
      assert.is(ours.length, 1, ours.join('\n'));
      assert.match(
        ours[0] ?? '',
        /server\.ts\(13,\d+\): error TS2339: Property 'size' does not exist on type .*id: string/,
      );
    });

  function lint(command: string, ...options: string[]): void {
    const file = join(root, 'node_modules/.bin', command);
    const { status, stdout, stderr, error } = spawnSync(
      process.execPath,
      [file, ...options, join(folder, packed().filename)],
      {
        encoding: 'utf8',
      },
    );
    assert.is(status, 0, `${error?.message ?? ''}${stdout}${stderr}`);
  }
} else test.skip('all of it', 'dist is missing: npm run build');
