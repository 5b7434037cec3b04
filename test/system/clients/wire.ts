/** What passes between an official client and a server, seen from beside it: every message, and how the server's process ended. */
import { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Revision } from '../../../src/core/protocol/revisions.ts';
import { startable } from '../../harness/compiled.ts';
import { type Direction, wireChecker } from '../../harness/wire.ts';

const ROOT = fileURLToPath(new URL('../../../', import.meta.url));

/** How to spawn a server written in TypeScript, which then imports `troupe` from `src` and not from the last build. */
export function server(file: string, env: Record<string, string> = {}) {
  return {
    command: process.execPath,
    args: [startable(file)],
    cwd: ROOT,
    env: { NODE_NO_WARNINGS: '1', ...env },
    stderr: 'pipe' as const,
  };
}

/** How to spawn the command: as it was built, where it was, because that starts in two thirds of the processor time. */
export function command(env: Record<string, string> = {}) {
  const source = server('src/cli/main.ts', env);
  const built = join(ROOT, 'dist/lib/cli/main.js');
  return existsSync(built) ? { ...source, args: [built] } : source;
}

export interface Message {
  readonly [member: string]: unknown;
}

/** One connection. The message that a client sends may be changed on its way. */
export abstract class Wire {
  readonly sent: Message[] = [];
  readonly received: Message[] = [];
  /** What came where only JSON belongs and is none: there must be nothing. */
  readonly noise: string[] = [];
  /** Messages that do not fit the official schema of the revision, or that nobody asked for: there must be none. */
  readonly faults: string[] = [];
  /** What the server's process wrote that is no protocol. */
  printed = '';
  readonly #watchers = new Set<() => void>();
  readonly #check: (direction: Direction, text: string) => void;

  /** @param revision the one that is expected; `initialize` may agree on another */
  constructor(revision: Revision) {
    this.#check = wireChecker(revision);
  }

  /** How the server's process ended: its code, or the signal that ended it. Resolves when it has. */
  abstract exit(): Promise<unknown>;

  /** Messages of one method that came from the server. */
  notifications(method: string): Message[] {
    return this.received.filter((message) => message.method === method);
  }

  /** Resolves when `seen` is true, looking again whenever something came. The test's own time limit ends a wait in vain. */
  async until(seen: () => boolean): Promise<void> {
    while (!seen()) {
      await new Promise<void>((resolve) => {
        const once = (): void => {
          this.#watchers.delete(once);
          resolve();
        };
        this.#watchers.add(once);
      });
    }
  }

  /** Gathers what a process writes that is no protocol. */
  listen(output: NodeJS.ReadableStream | null): void {
    output?.on('data', (chunk: Buffer) => {
      this.printed += chunk.toString('utf8');
      this.tell();
    });
  }

  /** The client says something. */
  protected say(message: Message): void {
    this.sent.push(message);
    this.#examine('in', JSON.stringify(message));
  }

  /** The server says something. */
  protected hear(text: string): void {
    try {
      this.received.push(JSON.parse(text));
    } catch {
      this.noise.push(text);
      return;
    }
    this.#examine('out', text);
  }

  /** Lets those look again who wait. */
  protected tell(): void {
    for (const watcher of [...this.#watchers]) watcher();
  }

  #examine(direction: Direction, text: string): void {
    try {
      this.#check(direction, text);
    } catch (error) {
      this.faults.push(error instanceof Error ? error.message : String(error));
    }
  }
}

/** What both official stdio transports have in common. */
export interface StdioClient {
  start(): Promise<void>;
  send(message: object): Promise<void>;
  readonly stderr: unknown;
}

/** The pipe between an official client's stdio transport and the server that it spawned. */
export class StdioWire extends Wire {
  #ended: Promise<unknown[]> | undefined;

  /**
   * Listens in on a transport that has not been started yet.
   *
   * @param rewrite changes what the client sends
   */
  constructor(
    transport: StdioClient,
    revision: Revision,
    rewrite: (message: Message) => Message = (message) => message,
  ) {
    super(revision);
    const start = transport.start.bind(transport);
    const send = transport.send.bind(transport);
    transport.start = async () => {
      await start();
      this.#tap(transport);
    };
    transport.send = (message) => {
      const rewritten = rewrite({ ...message });
      this.say(rewritten);
      return send(rewritten);
    };
  }

  async exit(): Promise<unknown> {
    const [code, signal] = (await this.#ended) ?? [];
    return code ?? signal;
  }

  #tap(transport: StdioClient): void {
    const child: unknown = Reflect.get(transport, '_process');
    if (!(child instanceof ChildProcess)) throw new Error('the official transport keeps its process elsewhere now');
    this.#ended = once(child, 'exit');
    let rest = '';
    child.stdout?.on('data', (chunk: Buffer) => {
      const lines = (rest + chunk.toString('utf8')).split('\n');
      rest = lines.pop() ?? '';
      for (const line of lines) this.hear(line);
      this.tell();
    });
    this.listen(child.stderr);
  }
}
