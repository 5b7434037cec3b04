/** A folder of skills: its last scan, the reading of its files, and the scans that follow a change. */
import { existsSync, statSync } from 'node:fs';
import { basename, relative, resolve, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../core/kernel/clock.ts';
import { Watch } from '../../core/kernel/files/file-watch.ts';
import type { RuntimeLog } from '../../core/kernel/operator-log.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { SKILL_LIMITS } from '../../core/protocol/skills.ts';
import type { ResourceContents } from '../../core/protocol/types.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { contentsOf, digestOf } from './file-bytes.ts';
import { readBytes, type Scan, scanSkills } from './skill-scan.ts';
import type { ServedSkill, SkillSource } from './skill-source.ts';
import { checkSkillsOptions, type SkillProblem, type SkillsOptions } from './skills-options.ts';

/** Number of changes of a file while it is read, after which the read fails. */
const ATTEMPTS = 3;

const NO_SKILLS: Scan = { skills: [], files: new Map(), directories: [], problems: [] };

export class SkillFolder implements SkillSource {
  readonly name: string;
  readonly options: SkillsOptions;
  readonly #path: string;
  readonly #log: RuntimeLog;
  readonly #watch: Watch | undefined;
  readonly #listeners = new Set<() => void>();
  #scan = NO_SKILLS;
  /** The scan that runs, and the one that follows it: each begins after whatever called for it. */
  #running: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;
  #reported: ReadonlySet<string> = new Set();
  #closed = false;

  /** @throws {DefinitionError | TypeError | RangeError} if the folder does not exist, or an option is invalid */
  constructor(
    folder: string | URL,
    options: SkillsOptions,
    system: { readonly clock: Clock; readonly log: RuntimeLog },
  ) {
    checkSkillsOptions(options);
    this.options = options;
    this.#log = system.log;
    this.#path = resolve(typeof folder === 'string' ? folder : fileURLToPath(folder));
    if (!statSync(this.#path, { throwIfNoEntry: false })?.isDirectory())
      throw new DefinitionError(
        `server.skills: ${this.#path}: expected a folder, found ${existsSync(this.#path) ? 'a file' : 'nothing'}`,
      );
    const { prefix, watch = true } = options;
    this.name = `skills in ${this.#path}${prefix === undefined ? '' : ` with the prefix ${prefix}`}`;
    if (watch)
      this.#watch = new Watch({
        clock: system.clock,
        matters: (path) => !basename(path).startsWith('.') && this.#contains(path),
        onChange: () => void this.scan(),
        say: (line) => this.#log('info', `${this.name}: ${line}`, { event: 'program' }),
      });
  }

  get skills(): readonly ServedSkill[] {
    return this.#scan.skills;
  }

  get problems(): readonly SkillProblem[] {
    return this.#scan.problems;
  }

  onChange(listener: () => void): void {
    this.#listeners.add(listener);
  }

  close(): void {
    this.#closed = true;
    this.#watch?.close();
    this.#listeners.clear();
  }

  /** The first scan. @throws {DefinitionError} with all problems, if `strict` is set and there are any */
  async open(): Promise<void> {
    await this.scan();
    const { problems } = this.#scan;
    if (!this.options.strict || problems.length === 0) return;
    this.close();
    throw new DefinitionError(`${this.name}: ${problems.map(textOf).join('\n- ')}`);
  }

  /** Scans the folder. The scan begins after this call. Never rejects: a folder that cannot be read is a problem of the scan. */
  scan(): Promise<void> {
    this.#next ??= this.#running.then(() => {
      this.#next = undefined;
      this.#running = this.#scanNow();
      return this.#running;
    });
    return this.#next;
  }

  /**
   * Reads a file. If it is not the file that the skill's entry lists any more, the folder is scanned first: a client that
   * compares the bytes with the digest of the current entry finds them equal.
   */
  async read(uri: string): Promise<ResourceContents> {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const file = this.#scan.files.get(uri);
      if (!file)
        throw new ProtocolError(ErrorCode.ResourceNotFound, 'Resource not found', { uri: uri.slice(0, 2_048) });
      const found = await readBytes(file.path, SKILL_LIMITS.bytes).catch(() => undefined);
      if (found && 'bytes' in found && (await digestOf(found.bytes)) === file.digest)
        return contentsOf(uri, file.mimeType, found.bytes);
      await this.scan();
    }
    throw new Error(`${uri}: the file changes each time it is read`);
  }

  async #scanNow(): Promise<void> {
    if (this.#closed) return;
    const before = this.#scan;
    try {
      this.#scan = await scanSkills(this.#path, this.options.prefix ?? '', before);
    } catch (error) {
      this.#scan = { ...NO_SKILLS, problems: [{ file: this.#path, line: undefined, message: messageOf(error) }] };
    }
    // Closed while it was scanned.
    if (this.#closed) return;
    this.#report();
    const { skills, directories } = this.#scan;
    if (!isDeepStrictEqual(before.skills, skills)) for (const listener of this.#listeners) listener();
    if (!this.#watch) return;
    // The folder may exist again later: its parent is watched, too.
    this.#watch.file(this.#path);
    for (const directory of directories) this.#watch.directory(directory);
    // Something may have changed after a new folder was read, and before it was watched.
    if (directories.some((directory) => !before.directories.includes(directory))) void this.scan();
  }

  #contains(path: string): boolean {
    const [root = this.#path] = this.#scan.directories;
    return path === this.#path || path.startsWith(`${this.#path}${sep}`) || path.startsWith(`${root}${sep}`);
  }

  /** Logs each problem once, until it is gone. */
  #report(): void {
    const lines = new Set(this.#scan.problems.map(textOf));
    for (const line of lines)
      if (!this.#reported.has(line)) this.#log('warning', `${line}. The skill is left out`, { event: 'program' });
    this.#reported = lines;
  }
}

/** A problem as an editor and a terminal link it. */
function textOf({ file, line, message }: SkillProblem): string {
  const short = relative(process.cwd(), file);
  const shown = short === '' || short.startsWith('..') ? file : short;
  return `${shown}${line === undefined ? '' : `:${line}`}: ${message}`;
}
