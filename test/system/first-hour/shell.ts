/** One shell in a folder of its own: it runs the blocks of a page as a reader pastes them, and keeps its directory and variables. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';

/** Longest that one block may take, in milliseconds. */
const LIMIT_MS = 120_000;

export class Shell {
  readonly #bash: ChildProcess;
  #output = '';
  #wake: (() => void)[] = [];
  #blocks = 0;

  /** @param env replaces the environment, except for PATH */
  constructor(folder: string, env: Readonly<Record<string, string>>) {
    this.#bash = spawn('bash', ['--noprofile', '--norc'], {
      cwd: folder,
      env: { PATH: process.env.PATH, LANG: 'C.UTF-8', ...env },
      stdio: ['pipe', 'pipe', 'pipe'],
      // Its background processes end with its process group.
      detached: true,
    });
    for (const stream of [this.#bash.stdout, this.#bash.stderr])
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
        this.#awake();
      });
    this.#bash.once('exit', () => this.#awake());
    this.#bash.stdin?.on('error', () => {});
    process.on('exit', () => this.#kill());
  }

  /**
   * Runs a block until it has ended and its output fits. A process that it starts in the background continues.
   *
   * @returns the output
   * @throws if a command fails, or if the block has ended, no background process is left, and its output does not fit
   */
  async run(block: string, fits: (output: string) => boolean = () => true): Promise<string> {
    this.#blocks += 1;
    const mark = `==block ${this.#blocks} ended`;
    const from = this.#output.length;
    // Commands read nothing: the shell's own input is the script.
    this.#bash.stdin?.write(`{ set -e\n${block}\nset +e\n} </dev/null\necho "${mark} with $(jobs -r | wc -l) jobs"\n`);
    // A command may end its output without a line end.
    const ended = new RegExp(`${mark} with +(\\d+) jobs\\n`);
    const deadline = setTimeout(() => this.#kill(), LIMIT_MS);
    try {
      for (;;) {
        const output = this.#output.slice(from);
        const [line, jobs] = ended.exec(output) ?? [];
        const own = line === undefined ? output : output.replace(line, '');
        if (line !== undefined && fits(own)) return own;
        if (jobs === '0') throw new Error(`another output was expected of\n${block}\n${own}`);
        if (this.#bash.exitCode !== null || this.#bash.signalCode !== null)
          throw new Error(`the shell ended in\n${block}\n${own}`);
        await new Promise<void>((resolve) => void this.#wake.push(resolve));
      }
    } finally {
      clearTimeout(deadline);
    }
  }

  /** Ends the shell and all that it started. */
  async close(): Promise<void> {
    if (this.#bash.exitCode !== null || this.#bash.signalCode !== null) return this.#kill();
    const ended = once(this.#bash, 'exit');
    this.#kill();
    await ended;
  }

  #awake(): void {
    for (const resolve of this.#wake.splice(0)) resolve();
  }

  #kill(): void {
    try {
      if (this.#bash.pid !== undefined) process.kill(-this.#bash.pid, 'SIGKILL');
    } catch {
      // The group has ended already.
    }
  }
}
