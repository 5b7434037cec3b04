/** Builds what `dist` contains, if its inputs have changed since the last build. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));

export interface Built {
  /** The folder below `dist`. */
  readonly name: string;
  /** Files and folders of the repository that it is made of. */
  readonly inputs: readonly string[];
  /** A file that every complete build has. */
  readonly last: string;
}

export interface PageBuild extends Built {
  /** Builds into a folder that is renamed afterwards, so that a running server and another build never see half of a page. */
  build(folder: string): Promise<void>;
}

export async function buildPages({ name, inputs, last, build }: PageBuild): Promise<void> {
  const out = join(root, 'dist', name);
  await buildChanged({ name, inputs: ['src/cli/html-page.ts', ...inputs], last }, async () => {
    mkdirSync(join(root, 'dist'), { recursive: true });
    const folder = mkdtempSync(join(root, `dist/${name}-`));
    try {
      const made = join(folder, 'made');
      mkdirSync(made);
      await build(made);
      rmSync(out, { recursive: true, force: true });
      renameSync(made, out);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
}

/** The bundles of the library. */
export const LIBRARY: Built = {
  name: 'lib',
  inputs: [
    'build/bundle.ts',
    'build/entries.ts',
    'build/first-file.ts',
    'package.json',
    'machines',
    'src',
    'test/system/conformance/client.ts',
  ],
  last: 'cli/main.js',
};

/** Whether a folder of `dist` has its last file and was built from inputs with the same digest. */
export function isBuilt({ name, inputs, last }: Built): boolean {
  const stamp = stampOf(name);
  if (!existsSync(join(root, 'dist', name, last)) || !existsSync(stamp)) return false;
  return readFileSync(stamp, 'utf8') === digestOf(inputs);
}

/** Builds a folder of `dist`, unless its inputs are those of the last build. `--force` always builds. */
export async function buildChanged(built: Built, build: () => Promise<unknown>): Promise<void> {
  if (isBuilt(built) && !process.argv.includes('--force')) return;
  const stamp = stampOf(built.name);
  const digest = digestOf(built.inputs);
  // A build that is interrupted leaves no stamp.
  rmSync(stamp, { force: true });
  await build();
  writeFileSync(stamp, digest);
}

/** The only file in a folder with this ending. */
export function onlyFile(folder: string, ending: string): string {
  const files = readdirSync(folder).filter((file) => file.endsWith(ending));
  const [name, ...more] = files;
  if (name === undefined || more.length > 0)
    throw new Error(`expected one ${ending} file in ${folder}: ${files.join(', ')}`);
  return readFileSync(join(folder, name), 'utf8');
}

function stampOf(name: string): string {
  return join(root, 'dist', `${name}.inputs`);
}

/** A digest of the inputs and of the versions of the packages. */
function digestOf(inputs: readonly string[]): string {
  const hash = createHash('sha256');
  for (const file of ['package-lock.json', 'build/page-build.ts', ...inputs].flatMap(filesOf).sort())
    hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  return hash.digest('hex');
}

function filesOf(input: string): readonly string[] {
  if (statSync(join(root, input)).isFile()) return [input];
  return readdirSync(join(root, input), { recursive: true, encoding: 'utf8' })
    .map((file) => join(input, file))
    .filter((file) => !/^inspector.dev/.test(file) && statSync(join(root, file)).isFile());
}
