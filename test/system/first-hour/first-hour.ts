/** The folder of somebody who tries Troupe for the first time: empty, with a home of its own, and with a shell. */
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Registry, serveRegistry } from './registry.ts';
import { Shell } from './shell.ts';

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** What a project of `troupe init` installs, and the packages that the tutorial adds. */
const LINKED = ['zod', 'tsx', 'typescript', '@types/node', 'xstate', '@modelcontextprotocol/client'];

export class FirstHour {
  /** The empty folder. */
  readonly folder: string;
  readonly shell: Shell;
  /** The variables of its commands, beside PATH. */
  readonly env: Readonly<Record<string, string>>;
  readonly #scratch: string;
  readonly #registry: Registry | undefined;

  private constructor(scratch: string, registry: Registry | undefined) {
    this.#scratch = scratch;
    this.#registry = registry;
    this.folder = join(scratch, 'empty');
    const home = { HOME: join(scratch, 'home'), XDG_RUNTIME_DIR: join(scratch, 'run'), TMPDIR: join(scratch, 'tmp') };
    for (const path of [...Object.values(home), this.folder]) mkdirSync(path, { mode: 0o700 });
    const npm = { npm_config_cache: join(scratch, 'cache'), npm_config_update_notifier: 'false' };
    this.env = {
      ...home,
      ...npm,
      ...(registry ? { npm_config_registry: registry.url } : { npm_config_offline: 'true' }),
    };
    this.shell = new Shell(this.folder, this.env);
  }

  /** With a registry on loopback, from which npm installs the packed Troupe. */
  static async packed(): Promise<FirstHour> {
    const scratch = makeScratch();
    return new FirstHour(scratch, await serveRegistry(scratch));
  }

  /**
   * Without npm: the packages of this clone stand for an installation in `project`, a folder in the empty one. It costs a third of
   * the processor time.
   */
  static linked(project: string): FirstHour {
    const hour = new FirstHour(makeScratch(), undefined);
    const modules = join(hour.folder, project, 'node_modules');
    mkdirSync(join(modules, '.bin'), { recursive: true });
    symlinkSync(ROOT, join(modules, 'troupe'), 'dir');
    for (const name of LINKED) {
      mkdirSync(dirname(join(modules, name)), { recursive: true });
      symlinkSync(join(ROOT, 'node_modules', name), join(modules, name), 'dir');
    }
    symlinkSync(join(ROOT, 'node_modules/.bin/tsc'), join(modules, '.bin/tsc'));
    const command = join(modules, '.bin/troupe');
    // `exec` keeps the process id, which the shell's `$!` names.
    writeFileSync(command, `#!/bin/sh\nexec node '${join(ROOT, 'dist/lib/cli/main.js')}' "$@"\n`);
    chmodSync(command, 0o755);
    return hour;
  }

  /** Ends every process that the shell has started, and removes the folders. */
  async close(): Promise<void> {
    await this.shell.close();
    await this.#registry?.close();
    rmSync(this.#scratch, { recursive: true, force: true, maxRetries: 10 });
  }
}

function makeScratch(): string {
  return mkdtempSync(join(tmpdir(), 'troupe-first-hour-'));
}
