/** An agent that sends thousands of requests and checks that each has one response. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';

const BUILT = fileURLToPath(new URL('../../dist/lib/cli/main.js', import.meta.url));

export interface Answer {
  readonly result?: Readonly<Record<string, unknown>>;
  readonly error?: { readonly code: number; readonly message: string };
}

export class Talker {
  readonly process: ChildProcess;
  readonly exit: Promise<number | null>;
  /** The methods of what the server said without being asked. */
  readonly heard: string[] = [];
  /** Answers to what was never asked, or has been answered. */
  readonly strays: string[] = [];
  err = '';
  readonly #waiting = new Map<number, (answer: Answer) => void>();
  #id = 0;

  constructor(args: readonly string[]) {
    const child = spawn(process.execPath, [BUILT, ...args], { stdio: 'pipe' });
    this.process = child;
    this.exit = once(child, 'close').then(([code]) => code);
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.err += text;
    });
    child.stdin.on('error', () => {});
    createInterface(child.stdout).on('line', (line) => {
      const { id, method, ...answer } = JSON.parse(line);
      if (method !== undefined) this.heard.push(method);
      else if (!this.#waiting.has(id)) this.strays.push(line);
      else {
        this.#waiting.get(id)?.(answer);
        this.#waiting.delete(id);
      }
    });
    process.on('exit', () => child.kill('SIGKILL'));
  }

  ask(method: string, params: object = {}): Promise<Answer> {
    this.#id += 1;
    const id = this.#id;
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve);
      this.process.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }

  tell(method: string): void {
    this.process.stdin?.write(`${JSON.stringify({ jsonrpc: '2.0', method })}\n`);
  }

  call(name: string, args: object = {}): Promise<Answer> {
    return this.ask('tools/call', { name, arguments: args });
  }

  end(): Promise<number | null> {
    this.process.stdin?.end();
    return this.exit;
  }
}

/** The text of a tool's answer. @throws when it is an error */
export function textOf({ result, error }: Answer): string {
  const [first]: unknown[] = Array.isArray(result?.content) ? result.content : [];
  if (!result || result.isError === true) throw new Error(JSON.stringify(error ?? result));
  return typeof first === 'object' && first !== null && 'text' in first ? String(first.text) : '';
}
