/** A shim between one agent on stdio and a server on a socket, whichever process that may be: it takes the agent's session from one to the next. */
import type { Socket } from 'node:net';
import type { Readable, Writable } from 'node:stream';
import { messageOf } from '../protocol/json.ts';
import { LineReader } from '../transports/lines.ts';
import { Conversation } from './conversation.ts';
import type { Patience } from './patience.ts';

/** Longest line that passes, in bytes: the server's own bound lies below. */
const LONGEST = 256 * 1024 * 1024;

/** Characters that wait for a server before the agent has to wait too. */
const MOST_HELD = 4 * 1024 * 1024;

/** What the server gets in place of bytes that are no text: it knows how to refuse that, in the agent's revision. */
const UNREADABLE = '\uFFFD';

export interface ShimOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Connects once. @throws {Error} when that fails */
  dial(): Promise<Socket>;
  readonly patience: Patience;
  /** Tells people. */
  say(line: string): void;
}

/**
 * Copies lines from `input` to the server and back, until the input has ended and all is answered.
 * When the server dies, requests that it had are answered with an error, and those that come meanwhile wait for the next.
 *
 * @example await new Shim({ input: process.stdin, output: process.stdout, dial, patience, say }).run();
 */
export class Shim {
  readonly #options: ShimOptions;
  readonly #conversation = new Conversation();
  readonly #fromAgent: LineReader;
  /** What waits for a server. */
  #held: string[] = [];
  #heldLength = 0;
  /** What was sent on this connection before the first word came back: a server that refuses has read none of it. */
  #unread: string[] | undefined;
  /** The connection, once lines may pass. */
  #open: Socket | undefined;
  #socket: Socket | undefined;
  #batch: string[] = [];
  /** The agent sends nothing more. */
  #ended = false;
  /** The agent reads nothing more. */
  #gone = false;
  #leave: () => void = () => {};
  /** Ends the wait for a server that takes up the session. */
  #inTime: () => void = () => {};

  constructor(options: ShimOptions) {
    this.#options = options;
    this.#fromAgent = new LineReader({
      maxBytes: LONGEST,
      onLine: (line) => this.#line(line),
      onUnreadable: () => this.#line(UNREADABLE),
    });
  }

  /** @throws {Error} when there is no server to be had, or the session cannot go on with it; the agent has its errors then */
  async run(): Promise<void> {
    const { input, output } = this.#options;
    input.on('data', (chunk: Buffer) => {
      this.#fromAgent.push(chunk);
      this.#flush();
    });
    input.on('end', () => this.end()).on('close', () => this.end());
    input.on('error', () => this.end());
    output.on('error', () => this.#vanish());
    const left = new Promise<void>((resolve) => {
      this.#leave = resolve;
    });
    await Promise.race([this.#serve(), left]);
  }

  async #serve(): Promise<void> {
    const { dial, patience } = this.#options;
    try {
      while (!this.#isDone()) {
        const socket = await dial().catch((error: unknown) => patience.failed(error));
        if (!socket) continue;
        const began = performance.now();
        await this.#converse(socket);
        const { refusal } = this.#conversation;
        if (!this.#isDone()) await patience.lost(performance.now() - began, refusal || 'the server has gone');
      }
    } catch (error) {
      this.#toAgent(Conversation.refused(this.#held, messageOf(error)));
      throw error;
    }
  }

  /** The agent sends nothing more: what it has asked is still answered. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#fromAgent.end();
    this.#flush();
    this.#open?.end();
    // Nothing waits for the server that is looked for.
    if (!this.#socket && this.#isDone()) this.#leave();
  }

  /** Nobody reads what the shim says. */
  #vanish(): void {
    this.#gone = true;
    this.end();
    this.#leave();
  }

  #isDone(): boolean {
    return this.#gone || (this.#ended && Conversation.refused(this.#held, '').length === 0);
  }

  #line(line: string): void {
    if (this.#open) this.#send(line);
    else this.#hold([line]);
  }

  #hold(lines: readonly string[]): void {
    this.#held.push(...lines);
    for (const line of lines) this.#heldLength += line.length;
    if (this.#heldLength > MOST_HELD) this.#options.input.pause();
  }

  #send(line: string): void {
    if (!this.#conversation.sent(line)) return;
    this.#batch.push(line);
    this.#unread?.push(line);
  }

  /** Writes what was sent in this turn. */
  #flush(): void {
    const socket = this.#open;
    if (!socket || this.#batch.length === 0) return;
    const { input } = this.#options;
    if (socket.write(lines(this.#batch.splice(0)))) return;
    input.pause();
    socket.once('drain', () => input.resume());
  }

  /** One connection, from its first line to its last. @throws {Error} when the session cannot go on */
  async #converse(socket: Socket): Promise<void> {
    this.#socket = socket;
    this.#unread = [];
    this.#conversation.refusal = '';
    let problem: unknown;
    const reader = new LineReader({
      maxBytes: LONGEST,
      onLine: (line) => {
        try {
          this.#heard(line, socket);
        } catch (error) {
          problem = error;
          socket.destroy();
        }
      },
      onUnreadable: (reason, bytes) =>
        this.#options.say(`troupe attach: the server sent a line that is ${reason} (${bytes} bytes): it is left out`),
    });
    socket.on('data', (chunk) => {
      reader.push(chunk);
      this.#pass(socket);
    });
    const over = new Promise<void>((resolve) => socket.once('close', () => resolve()));
    // The server ends a connection when it has nothing more to say.
    socket.once('end', () => socket.destroy());
    const opening = this.#conversation.connected();
    if (opening === undefined) this.#goLive(socket, []);
    else {
      this.#inTime = this.#options.patience.deadline(() => socket.destroy());
      socket.write(lines([opening]));
    }
    await over;
    this.#inTime();
    this.#afterwards();
    if (problem !== undefined) throw problem;
  }

  /** The connection is over. */
  #afterwards(): void {
    this.#open = undefined;
    this.#socket = undefined;
    this.#batch = [];
    // A server that refuses has read nothing.
    const unread = this.#conversation.refusal === '' ? [] : (this.#unread ?? []);
    this.#conversation.unsent(unread);
    const { toAgent, again } = this.#conversation.lost(
      'the server restarted, and this request was lost with it: send it again if it does no harm when done twice',
    );
    this.#toAgent(toAgent);
    const held = [...again, ...unread, ...this.#held.splice(0)];
    this.#heldLength = 0;
    this.#hold(held);
    // It may have been paused for a socket that will never say 'drain' now.
    if (this.#heldLength <= MOST_HELD) this.#options.input.resume();
  }

  #goLive(socket: Socket, first: readonly string[]): void {
    this.#inTime();
    this.#open = socket;
    this.#batch.push(...first);
    const held = this.#held.splice(0);
    this.#heldLength = 0;
    for (const line of held) this.#send(line);
    this.#options.input.resume();
    this.#flush();
    if (this.#ended) socket.end();
  }

  /** A line from the server. */
  #heard(line: string, socket: Socket): void {
    if (socket.destroyed) return;
    const verdict = this.#conversation.received(line);
    if (verdict === 'refused') {
      socket.destroy();
      return;
    }
    this.#unread = undefined;
    if (verdict === 'pass') this.#out.push(line);
    if (verdict !== 'resumed') return;
    this.#goLive(socket, this.#conversation.resumption());
    this.#out.push(...this.#conversation.changes());
  }

  /** What is for the agent, of the chunk at hand. */
  readonly #out: string[] = [];

  #pass(socket: Socket): void {
    if (this.#out.length === 0) return;
    if (this.#toAgent(this.#out.splice(0))) return;
    socket.pause();
    this.#options.output.once('drain', () => socket.resume());
  }

  /** @returns false when the agent should read first */
  #toAgent(said: readonly string[]): boolean {
    return said.length === 0 || this.#gone || this.#options.output.write(lines(said));
  }
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
