/** Makes one mistake of a beginner in a folder of its own, and measures when the beginner is told. */
import { type ChildProcess, spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, dirname, join } from 'node:path';
import { freePort } from '../../harness/free-port.ts';
import { until } from '../../harness/wait.ts';
import type { FirstHour } from './first-hour.ts';
import type { Mistake } from './mistakes.ts';

/** What came of a mistake. */
export interface Told {
  /** Seconds from the command to the words; undefined if they did not come. */
  readonly seconds: number | undefined;
  /** All that was printed, for a failure. */
  readonly output: string;
}

/**
 * @param project the folder of the hour with the installation
 * @param name of the new folder
 */
export async function makeMistake(
  { files, beside, run, says, where }: Mistake,
  { folder, env }: FirstHour,
  project: string,
  name: string,
): Promise<Told> {
  const own = join(folder, project, name);
  mkdirSync(own, { recursive: true });
  for (const [file, text] of Object.entries(files)) writeFileSync(join(own, file), text);
  const bin = join(folder, project, 'node_modules/.bin');
  const all = {
    ...env,
    PATH: `${bin}${delimiter}${dirname(process.execPath)}${delimiter}${process.env.PATH ?? ''}`,
    PORT: String(await freePort()),
  };
  const words = patternOf(says);
  const other = beside && new Command(beside.run, own, all);
  let command: Command | undefined;
  try {
    if (beside && other && !(await other.prints(patternOf(beside.ready))))
      return { seconds: undefined, output: `the command beside it did not start:\n${other.printed}` };
    const began = performance.now();
    command = new Command(run, own, all);
    const told = await (where === 'log' && other ? other : command).prints(words);
    const seconds = (performance.now() - began) / 1_000;
    const output = [other, command].map((each) => each?.printed ?? '').join('');
    return { seconds: told ? seconds : undefined, output };
  } finally {
    command?.kill();
    other?.kill();
  }
}

/** The words of a mistake as a pattern: `…` stands for any text. */
function patternOf(says: string): RegExp {
  return new RegExp(
    says
      .split('…')
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[\\s\\S]*?'),
  );
}

/** A command of the shell, with all that it starts. */
class Command {
  readonly #child: ChildProcess;
  #printed = '';
  #ended = false;

  constructor(command: string, cwd: string, env: NodeJS.ProcessEnv) {
    // The installation is on the PATH: npx would take a second of its own.
    this.#child = spawn('bash', ['--noprofile', '--norc', '-c', command.replaceAll('npx troupe', 'troupe')], {
      cwd,
      env,
      stdio: ['ignore', 'pipe', 'pipe'],
      detached: true,
    });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#printed += text;
      });
    this.#child.once('close', () => {
      this.#ended = true;
    });
  }

  get printed(): string {
    return this.#printed;
  }

  /** Waits for words. @returns false if the command has ended without them, or takes too long */
  async prints(words: RegExp): Promise<boolean> {
    const ended = until(() => this.#ended || words.test(this.#printed), 'the words of a mistake');
    await ended.catch(() => {});
    return words.test(this.#printed);
  }

  kill(): void {
    try {
      if (this.#child.pid !== undefined) process.kill(-this.#child.pid, 'SIGKILL');
    } catch {
      // The group has ended already.
    }
  }
}
