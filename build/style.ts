/** Checks the style of the files that changed since they were last found clean. No rule of `biome.json` reads a second file. */
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = fileURLToPath(new URL('..', import.meta.url));
const STAMP = join(root, 'dist/style.json');
/** Folders that are not of the repository. */
const FOREIGN = ['.git', 'coverage', 'dist', 'node_modules'];
/** More files than this are checked as one folder: a command line has a limit. */
const MAX_NAMED = 200;

/** The rules, and the digests of the files that they found clean. */
interface Clean {
  readonly rules: string;
  readonly files: Readonly<Record<string, string>>;
}

function digest(...paths: readonly string[]): string {
  const hash = createHash('sha256');
  for (const path of paths) hash.update(readFileSync(join(root, path)));
  return hash.digest('base64');
}

function filesBelow(folder: string): string[] {
  return readdirSync(join(root, folder), { withFileTypes: true }).flatMap((entry) => {
    const path = join(folder, entry.name);
    if (entry.isDirectory()) return FOREIGN.includes(entry.name) ? [] : filesBelow(path);
    return entry.isFile() ? [path] : [];
  });
}

/** What the last check found clean. A file that was written by another version of this one counts as missing. */
function lastClean(): Clean {
  const rules = digest('biome.json', 'package-lock.json', 'build/style.ts');
  const found: unknown = existsSync(STAMP) ? JSON.parse(readFileSync(STAMP, 'utf8')) : undefined;
  return isClean(found) && found.rules === rules ? found : { rules, files: {} };
}

function isClean(value: unknown): value is Clean {
  return typeof value === 'object' && value !== null && 'rules' in value && 'files' in value;
}

const { rules, files: clean } = lastClean();
const files = Object.fromEntries(filesBelow('.').map((path) => [path, digest(path)]));
const changed = Object.keys(files).filter((path) => clean[path] !== files[path]);
if (changed.length > 0) {
  const biome = fileURLToPath(new URL('bin/biome', import.meta.resolve('@biomejs/biome/package.json')));
  const named = changed.length > MAX_NAMED ? ['.'] : changed;
  const args = [biome, 'check', '--error-on-warnings', '--no-errors-on-unmatched', ...named];
  const { status } = spawnSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  if (status === 0) {
    mkdirSync(join(root, 'dist'), { recursive: true });
    writeFileSync(STAMP, JSON.stringify({ rules, files } satisfies Clean));
  } else process.exitCode = 1;
}
