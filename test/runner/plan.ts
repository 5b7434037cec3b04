/** The test files of a run, and their division into processes. */
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { availableParallelism } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const tests = resolve(dirname(fileURLToPath(import.meta.url)), '..');
/** The folder of the checkout. */
export const root = dirname(tests);

/** A file that takes this many seconds gains little from a shared process, and alone it starts when it is its turn. */
const LONG_S = 25;
/** Seconds of a file that was never timed. */
const UNKNOWN_S = 0.5;
/** Tests wait for about half of their time (for timers, disks, other processes): two lanes a core leave a core idle now and then. */
export const LANES = Math.ceil(2.5 * availableParallelism());
/**
 * More lanes of a whole run. The shared processes are the longest jobs and take all lanes at first, so that the long files with a
 * process of their own, which mostly wait, would begin when the shared processes have ended, and would leave the cores idle.
 */
export const MORE_LANES = availableParallelism();

/** The declaration of a file that `npm test` leaves to `npm run test:full`. It is read, not run: the file need not be loaded. */
const FULL_ONLY = /^fullOnly\(/m;

/**
 * The names of what a file can change in its process for the files after it, such as a hook of the module loader. A file that
 * has one of them, itself or in a file of the tests that it imports, runs in a process of its own. A listener that the file
 * removes changes nothing, nor does the text of a program that it starts. The runner restores the environment and the outputs.
 */
const CHANGES =
  /'(?:node:inspector|playwright[\w-]*)'|\bpreloadAjv\b|\bRunning\(\['dev'|(?<![.\w])process\.(?:emit|stdin|chdir|execArgv|title)\b|(?<![.\w])process\.(?:on|once)\('(?!exit')|(?<![.\w])process\.exitCode = |Object\.assign\(globalThis|globalThis\.\w+ = |\bError\.\w+ = /;

/** The names of what a file measures of its process: such files share a process with each other only. */
const MEASURES = /'node:v8'|(?<![.\w])process\.(?:memoryUsage|getActiveResourcesInfo)\b|\bgc\(/;

/** A server that finds its modules hooks the loader of its process: such files share a process with each other only. */
const DISCOVERS = /\.discover\(/;

/** Files of the harness that tests import. They change the process of the runner only. */
const HARNESS = ['door.ts', 'compiled.ts'].map((name) => join(tests, 'harness', name));

/** A comment, or a literal: whichever begins first. */
const TEXT = /\/\*[\s\S]*?\*\/|\/\/.*|`(?:\\[\s\S]|[^`\\])*`|'(?:\\.|[^'\\\n])*'|"(?:\\.|[^"\\\n])*"/g;
/** A literal that names something, such as a module or an event. */
const NAME = /^'[\w:-]+'$/;
const LISTENER = /(?<![.\w])process\.(?:on|once)\(('\w+')/g;

export interface Job {
  readonly files: readonly string[];
  /** Seconds that the files took when they were last timed: only their order matters. */
  readonly seconds: number;
  /** Many files share its process, and none of them measures that. */
  readonly roomy?: boolean;
}

/** The files below the given files and folders, or all of the scale. @throws Error for a path that does not exist */
export function filesOf(paths: readonly string[], full: boolean): string[] {
  if (paths.length === 0) return testFiles(tests).filter((file) => full || !FULL_ONLY.test(readFileSync(file, 'utf8')));
  return paths.flatMap((path) => {
    if (!existsSync(path)) throw new Error(`there is no test file ${path}`);
    return statSync(path).isDirectory() ? testFiles(path) : [path];
  });
}

function testFiles(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.test.ts') && !file.includes('fixtures'))
    .sort()
    .map((file) => join(folder, file));
}

/** The slowest first, so that no long file is left over at the end; files that share a process are dealt out evenly. */
export function jobsOf(files: readonly string[], expected: ReadonlyMap<string, number>, sharing: boolean): Job[] {
  const slow = (file: string): number => expected.get(relative(root, file)) ?? UNKNOWN_S;
  const empty = (length: number): { files: string[]; seconds: number }[] =>
    Array.from({ length }, () => ({ files: [], seconds: 0 }));
  const shared = { any: empty(LANES), measuring: empty(1), discovering: empty(1) };
  const alone: Job[] = [];
  for (const file of [...files].sort((a, b) => slow(b) - slow(a))) {
    const company = !sharing || slow(file) >= LONG_S ? 'none' : companyOf(textsOf(file));
    if (company === 'none') {
      alone.push({ files: [file], seconds: slow(file) });
      continue;
    }
    const least = shared[company].reduce((a, b) => (b.seconds < a.seconds ? b : a));
    least.files.push(file);
    least.seconds += slow(file);
  }
  const all = [
    ...alone,
    ...shared.any.map((job) => ({ ...job, roomy: true })),
    ...shared.measuring,
    ...shared.discovering,
  ];
  return all.filter((job) => job.files.length > 0).sort((a, b) => b.seconds - a.seconds);
}

/** The kinds of company, the narrowest first. */
const COMPANIES = ['none', 'discovering', 'measuring'] as const;
type Company = (typeof COMPANIES)[number] | 'any';

/** With which files a file shares its process, by its code and that of the files that it imports. */
export function companyOf(texts: readonly string[]): Company {
  const companies = texts.map(companyOfText);
  return COMPANIES.find((company) => companies.includes(company)) ?? 'any';
}

function judge(code: string): Company {
  if (CHANGES.test(code)) return 'none';
  if (DISCOVERS.test(code)) return 'discovering';
  return MEASURES.test(code) ? 'measuring' : 'any';
}

/** The judgements of this process: many files import the same file of the tests. */
const judged = new Map<string, Company>();

function companyOfText(text: string): Company {
  const known = judged.get(text);
  if (known !== undefined) return known;
  const code = text.replace(TEXT, (literal) => (NAME.test(literal) ? literal : ''));
  const left = code.replace(LISTENER, (added, event) => (code.includes(`process.off(${event}`) ? '' : added));
  const company = judge(left);
  judged.set(text, company);
  return company;
}

/** Whether the full run has more of a file than `npm test`: the whole file, a test, or another number. */
export function growsWithScale(file: string): boolean {
  return textsOf(file).some((text) => /^fullOnly\(|\.full\(|\/scale\.ts'/m.test(text));
}

/** The text of a test file, and those of the files of the tests that it imports, without the harness of each file. */
function textsOf(file: string): readonly string[] {
  const texts = new Map<string, string>();
  const add = (path: string): void => {
    if (texts.has(path)) return;
    const { text, imports } = sourceOf(path);
    texts.set(path, text);
    for (const imported of imports) add(imported);
  };
  add(file);
  return [...texts.values()];
}

interface Source {
  readonly text: string;
  /** The files of the tests that it imports, without the harness of each file. */
  readonly imports: readonly string[];
}

/** The files that this process has read. */
const sources = new Map<string, Source>();

function sourceOf(path: string): Source {
  const known = sources.get(path);
  if (known !== undefined) return known;
  const text = readFileSync(path, 'utf8');
  const imports = [...text.matchAll(/from '(\.[^']+\.ts)'/g)]
    .map(([, from = '']) => resolve(dirname(path), from))
    .filter((imported) => imported.startsWith(tests) && existsSync(imported) && !HARNESS.includes(imported));
  const source = { text, imports };
  sources.set(path, source);
  return source;
}
