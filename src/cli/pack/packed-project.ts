/** The files of a packed program: its modules as JavaScript, each in its place, and what they may read. */
import { existsSync, readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import { isBuiltin } from 'node:module';
import { basename, extname, join, relative, sep } from 'node:path';
import type { Plugin } from 'esbuild';
import { type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { isBelow, isModule } from '../../features/discovery/module-files.ts';
import { matches } from '../../gateway/mounts/names.ts';
import { packedFile } from './packed-packages.ts';
import type { ZipFile } from './zip-archive.ts';

/** Folders and files that belong to the work on a program. */
const UNPACKED: ReadonlySet<string> = new Set([
  ...['node_modules', 'test', 'tests', '__tests__', 'coverage'],
  ...[
    'package-lock.json',
    'npm-shrinkwrap.json',
    'yarn.lock',
    'pnpm-lock.yaml',
    'bun.lock',
    'server.json',
    'manifest.json',
  ],
]);
const UNPACKED_NAMES =
  /^\.|^tsconfig.*\.json$|\.(?:test|spec)\.[cm]?[jt]sx?$|\.config\.[cm]?[jt]s$|\.(?:mcpb|tgz|log|map|tsbuildinfo)$|\.d\.[cm]?ts$/;
/** Names of files that an archive for strangers must not contain by mistake. */
const PRIVATE =
  /^(?:id_(?:rsa|dsa|ecdsa|ed25519)|credentials\.json|secrets?\.(?:json|ya?ml|toml)|.*\.(?:pem|key|p12|pfx|jks|keystore|db|db-wal|db-shm|sqlite3?))$/i;
/** The syntax that every Node runs that this package supports. */
const TARGET = 'node20';
/** The modules that are compiled, with the kind of their JavaScript. */
const COMPILED: ReadonlyMap<string, 'esm' | 'cjs'> = new Map([
  ...['.ts', '.tsx', '.jsx', '.mts'].map((extension) => [extension, 'esm'] as const),
  ['.cts', 'cjs'],
]);
/** A module of JavaScript that imports one of TypeScript. */
const IMPORTS_TYPESCRIPT = /(['"])\.{1,2}\/[^'"\n]*\.[cm]?tsx?\1/;
/** Marks a question of our own to the resolver. */
const ASKED = Symbol('asked');

/** A project that cannot be packed. The message says what to change. */
export class PackError extends Error {
  override readonly name = 'PackError';
}

/**
 * Reads the files of a project and compiles its modules.
 *
 * @param root the folder of its `package.json`, without symbolic links
 * @param project its `package.json`: `files` for the files, `type` for the names of modules
 * @throws {PackError} for a file that looks like a secret or a database, or a module that cannot be compiled
 */
export async function packedProject(root: string, { files: only, type }: JsonObject): Promise<readonly ZipFile[]> {
  const wanted = Array.isArray(only) ? only.filter((each) => typeof each === 'string').map(plainPath) : undefined;
  const files = filesOf(root, wanted);
  const secret = files.find((path) => PRIVATE.test(basename(path)) && wanted?.includes(path) !== true);
  if (secret !== undefined)
    throw new PackError(
      `${secret} looks like a secret or a database, and everybody can read the archive. Move it out of ${root}, or list what belongs to the program in "files" of package.json (with ${JSON.stringify(secret)} if it does)`,
    );
  const modules = files.filter((path) => isCompiled(root, path));
  const rest = files.filter((path) => !modules.includes(path) && path !== 'package.json');
  return [...(await compile(root, modules, type)), ...rest.map((path) => packedFile(join(root, path), path))];
}

/** The place of a module in the archive. @param type of the `package.json`: without it, `.js` may be CommonJS */
export function compiledPath(path: string, type: unknown): string {
  const extension = extname(path);
  if (!COMPILED.has(extension)) return path;
  const plain = type === 'module' ? '.js' : '.mjs';
  return `${path.slice(0, path.length - extension.length)}${extension === '.mts' ? '.mjs' : extension === '.cts' ? '.cjs' : plain}`;
}

function isCompiled(root: string, path: string): boolean {
  if (COMPILED.has(extname(path))) return true;
  return isModule(path) && !path.endsWith('.cjs') && IMPORTS_TYPESCRIPT.test(readFileSync(join(root, path), 'utf8'));
}

function plainPath(pattern: string): string {
  return pattern.replace(/^(?:\.?\/)+/, '').replace(/(?:\/\*{0,2})+$/, '');
}

/** The paths of the files, relative to the root, with `/`. */
function filesOf(root: string, wanted: readonly string[] | undefined, below = ''): readonly string[] {
  return readdirSync(join(root, below), { withFileTypes: true }).flatMap((entry) => {
    const path = below === '' ? entry.name : `${below}/${entry.name}`;
    if (UNPACKED.has(entry.name) || UNPACKED_NAMES.test(entry.name)) return [];
    const real = realpathSync(join(root, path));
    if (!isBelow(root, real))
      throw new PackError(`${path} is a link to ${real}, which is not in ${root}. Copy it into the project`);
    const found = statSync(real);
    // A link to a folder of the project would be packed twice, and a link to one above it for ever.
    if (found.isDirectory()) return entry.isSymbolicLink() ? [] : filesOf(root, wanted, path);
    return found.isFile() && isWanted(path, wanted) ? [path] : [];
  });
}

function isWanted(path: string, wanted: readonly string[] | undefined): boolean {
  if (!wanted) return true;
  return wanted.some((pattern) => path.startsWith(`${pattern}/`) || matches(pattern, path));
}

/**
 * Compiles each module alone, so that it stays in its place: what it reads beside itself by `import.meta.url` is there, too. Only the
 * paths in its imports change with the names of the files.
 *
 * @throws {PackError}
 */
async function compile(root: string, paths: readonly string[], type: unknown): Promise<readonly ZipFile[]> {
  if (paths.length === 0) return [];
  const { build } = await import('esbuild');
  const tsconfig = join(root, 'tsconfig.json');
  const files = await Promise.all(
    paths.map(async (path): Promise<ZipFile> => {
      const { outputFiles } = await build({
        absWorkingDir: root,
        entryPoints: [path],
        bundle: true,
        write: false,
        platform: 'node',
        target: TARGET,
        format: COMPILED.get(extname(path)) ?? 'esm',
        logLevel: 'silent',
        ...(existsSync(tsconfig) ? { tsconfig } : {}),
        plugins: [importsStay(root, type)],
      });
      const [output] = outputFiles;
      return { path: compiledPath(path, type), bytes: Buffer.from(output?.contents ?? []), executable: false };
    }),
  ).catch((error: unknown) => {
    throw new PackError(messageOf(error));
  });
  return files;
}

/** Bundles nothing: an import of a module of the project leads to its place in the archive, and any other stays. */
function importsStay(root: string, type: unknown): Plugin {
  return {
    name: 'imports stay',
    setup(build) {
      build.onResolve({ filter: /.*/ }, async ({ path, resolveDir, kind, pluginData }) => {
        if (kind === 'entry-point' || pluginData === ASKED) return undefined;
        const found = isBuiltin(path) ? undefined : await build.resolve(path, { resolveDir, kind, pluginData: ASKED });
        const file = found?.errors.length === 0 && !found.external ? found.path : '';
        // A package, or a module that does not exist: its import fails where it runs, with the words of Node.
        if (!isBelow(root, file) || file.includes(`${sep}node_modules${sep}`)) return { path, external: true };
        const place = relative(resolveDir, compiledPath(file, type)).split(sep).join('/');
        return { path: place.startsWith('.') ? place : `./${place}`, external: true };
      });
    },
  };
}
