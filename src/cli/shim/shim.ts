/** Connects one agent on stdio with a sequence of server processes, and moves the agent's session from one to the next. */
import type { Readable, Writable } from 'node:stream';
import { type Clock, systemClock } from '../../clock.ts';
import { messageOf } from '../../protocol/json.ts';
import { LineReader } from '../../transports/lines.ts';
import { asideOf, isAside, readServerMail } from '../../transports/relay.ts';
import { Probe } from '../supervisor/probe.ts';
import { StrayOutput } from '../supervisor/stray-output.ts';
import type { ServerLink } from './server-link.ts';
import { SessionReplay } from './session-replay.ts';

/** The longest line that passes from a server, in bytes. It also limits lines of the agent if the server reports no limit. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** How many characters may wait for a server before the shim stops reading from the agent. */
const MAX_QUEUED = 4 * 1024 * 1024;

const HELLO = asideOf({ type: 'hello' });

const SHUTTING_DOWN = -31_003;

/** The errors of requests in flight when their server ends. */
const RESTARTED = 'The server restarted before it answered. Retry only if running this call twice is safe.';
const ENDED = 'The server ended before it answered, and will not be restarted.';

/** When to connect to a server again. */
export interface ReconnectPolicy {
  /** An attempt to connect failed: resolves when the next may start. @throws {Error} to give up */
  failed(error: unknown): Promise<void>;
  /** A connection was lost after `livedMs` milliseconds: resolves when the next attempt may start. @param refusal why the server rejected the session, or empty @throws {Error} to give up */
  lost(livedMs: number, refusal: string): Promise<void>;
  /** Calls back when a server takes too long to resume a session. The returned function cancels the timer. */
  deadline(late: () => void): () => void;
}

export interface ShimOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Connects to a server. @throws {Error} if that fails */
  dial(): Promise<ServerLink>;
  readonly retryPolicy: ReconnectPolicy;
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** Prints a line on stderr. */
  say(line: string): void;
}

/**
 * Copies lines from `input` to the server and back, until the input has ended and every request is answered.
 * If the server dies, its requests in flight are resent to the next server if that is safe, and get an error otherwise.
 * Later requests wait for the next server.
 *
 * @example await new Shim({ input: process.stdin, output: process.stdout, dial, retryPolicy, say }).run();
 */
export class Shim {
  readonly #options: ShimOptions;
  readonly #session = new SessionReplay();
  readonly #fromAgent: LineReader;
  /** A server has reported its limit for lines. A later server may report another. */
  #limited = false;
  /** Lines that wait for a server. */
  #queue: string[] = [];
  #queueLength = 0;
  /** Lines that were sent on this connection before the first message from the server: a server that rejects the session has read none of them. */
  #unread: string[] | undefined;
  /** The connection, once the session is established and lines may pass. */
  #open: ServerLink | undefined;
  #link: ServerLink | undefined;
  #batch: string[] = [];
  /** Another server replaces this one as soon as this one has resumed the session. */
  #handingOver = false;
  /** The server finishes its running requests; new requests wait for the next server. */
  #draining = false;
  /** The agent sends nothing more. */
  #ended = false;
  /** The reason for rejecting all further requests of the agent. */
  #stopped: string | undefined;
  /** The agent reads nothing more. */
  #gone = false;
  #served = false;
  #leave: () => void = () => {};
  /** Cancels the deadline for resuming the session. */
  #cancelDeadline: () => void = () => {};

  constructor(options: ShimOptions) {
    this.#options = options;
    this.#fromAgent = new LineReader({
      maxBytes: MAX_LINE_BYTES,
      onLine: (line) => this.#line(line),
      // The server rejects the line, because the error depends on the agent's revision.
      onUnreadable: (reason, bytes, head) => this.#line(asideOf({ type: 'unreadable', reason, bytes, head })),
    });
  }

  /** @throws {Error} if no server can be reached, or the session cannot continue; every waiting request has an error by then */
  async run(): Promise<void> {
    const { input, output } = this.#options;
    input.on('data', (chunk: Buffer) => {
      this.#fromAgent.push(chunk);
      this.#flush();
      if (this.#isFull) input.pause();
    });
    input.on('end', () => this.end()).on('close', () => this.end());
    input.on('error', () => this.end());
    output.on('error', () => this.#abandon());
    const left = new Promise<void>((resolve) => {
      this.#leave = resolve;
    });
    await Promise.race([this.#serve(), left]);
  }

  async #serve(): Promise<void> {
    const { dial, retryPolicy } = this.#options;
    try {
      while (!this.isDone) {
        const link = await dial().catch((error: unknown) => retryPolicy.failed(error));
        if (!link) continue;
        const began = performance.now();
        await this.#connect(link);
        if (!this.isDone) await retryPolicy.lost(performance.now() - began, this.#session.refusal);
      }
    } catch (error) {
      this.#toAgent(SessionReplay.refused(this.#queue, messageOf(error)));
      throw error;
    }
  }

  /** The agent sends nothing more. Requests in flight are still answered. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#fromAgent.end();
    this.#flush();
    this.#open?.output.end();
    // No request waits for the next server.
    if (!this.#link && this.isDone) this.#leave();
  }

  /** Ends as if the agent had closed its input. Rejects waiting and later requests. */
  stop(why: string): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = why;
    this.#toAgent(SessionReplay.refused(this.#queue.splice(0), why, SHUTTING_DOWN));
    this.end();
    // A server that has not resumed the session yet has no running requests.
    if (!this.#open) this.#link?.destroy();
  }

  /** Asks the server to finish its running requests and to end. New requests wait for the next server. Without a server, does nothing. */
  handOver(): void {
    this.#handingOver = this.#link !== undefined && !this.#ended;
    if (!this.#handingOver || !this.#open || this.#draining) return;
    this.#draining = true;
    this.#flush();
    this.#session.draining();
    this.#open.drain();
  }

  /** True if any server has sent a message. */
  get hasServed(): boolean {
    return this.#served;
  }

  /** The agent does not read its input any more. */
  #abandon(): void {
    this.#gone = true;
    this.end();
    this.#leave();
  }

  /** True if no request waits for a server; a server may still be finishing running requests. */
  get isDone(): boolean {
    return this.#gone || (this.#ended && !this.#queue.some(SessionReplay.isAnswered));
  }

  #line(line: string): void {
    if (this.#stopped !== undefined) this.#toAgent(SessionReplay.refused([line], this.#stopped, SHUTTING_DOWN));
    else if (this.#open && !(this.#draining && this.#session.isForNext(line))) this.#send(line);
    else this.#enqueue([line]);
  }

  #enqueue(lines: readonly string[]): void {
    this.#queue.push(...lines);
    for (const line of lines) this.#queueLength += line.length;
    if (this.#isFull) this.#options.input.pause();
  }

  /** True if the shim must not read more from the agent: the queue is full, or a long line waits for the server's limit. */
  get #isFull(): boolean {
    return this.#queueLength > MAX_QUEUED || (!this.#limited && this.#fromAgent.heldBytes > MAX_QUEUED);
  }

  #send(line: string): void {
    const sent = this.#session.sent(line);
    if (sent === undefined) return;
    // Repeat a carriage return at the end of the line: the server removes one as a part of the line ending.
    this.#batch.push(sent.endsWith('\r') ? `${sent}\r` : sent);
    this.#unread?.push(line);
  }

  /** Sets the maximum length of the agent's lines. */
  #limit(maxBytes: number): void {
    this.#limited = true;
    this.#fromAgent.maxBytes = maxBytes;
    if (!this.#isFull) this.#options.input.resume();
  }

  /** Writes the lines of this turn to the server. */
  #flush(): void {
    const link = this.#open;
    if (!link || this.#batch.length === 0) return;
    const { input } = this.#options;
    if (link.output.write(lines(this.#batch.splice(0)))) return;
    input.pause();
    link.output.once('drain', () => {
      if (!this.#isFull) input.resume();
    });
  }

  /** Runs one connection from its first line to its last. @throws {Error} if the session cannot continue */
  async #connect(link: ServerLink): Promise<void> {
    this.#link = link;
    this.#unread = [];
    this.#session.refusal = '';
    const { clock = systemClock, say } = this.#options;
    const output = new StrayOutput({ clock, say });
    const probe = this.#probe(link, clock);
    let problem: unknown;
    let over = false;
    const reader = new LineReader({
      maxBytes: MAX_LINE_BYTES,
      onLine: (line) => {
        const message = over ? undefined : output.messageIn(line);
        if (message === undefined) return;
        const { responses } = this.#session;
        try {
          over = !this.#receive(message, link);
          if (this.#session.responses > responses) probe?.responded();
          else probe?.heard();
        } catch (error) {
          problem = error;
          over = true;
        }
        if (over) link.destroy();
      },
      onUnreadable: (reason, bytes, head) => this.#skipped(reason, bytes, head),
    });
    link.input.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      this.#pass(link);
    });
    const initialize = this.#session.connected();
    link.output.write(lines(initialize === undefined ? [HELLO] : [HELLO, initialize]));
    if (initialize === undefined) this.#goLive(link, []);
    else this.#cancelDeadline = this.#options.retryPolicy.deadline(() => link.destroy());
    await link.closed;
    over = true;
    probe?.stop();
    this.#cancelDeadline();
    this.#disconnected(link);
    if (problem !== undefined) throw problem;
  }

  /** Probes a silent server that owes responses. A shared server is not probed: one agent must not end it for the others. */
  #probe(link: ServerLink, clock: Clock): Probe | undefined {
    const { ownProcess } = link;
    return (
      ownProcess &&
      new Probe({
        clock,
        // If the agent does not read, the server cannot send.
        awaits: () => this.#open === link && !this.#draining && !link.input.isPaused() && this.#session.awaits,
        turns: () => ownProcess.turns(),
        ask: () => void link.output.write(lines([this.#session.probe()])),
        dead: (why) => {
          this.#session.distrust();
          ownProcess.kill(why);
        },
      })
    );
  }

  /** The connection has ended. */
  #disconnected({ durable, ownProcess }: ServerLink): void {
    this.#open = undefined;
    this.#link = undefined;
    this.#handingOver = false;
    this.#draining = false;
    this.#batch = [];
    // A server that rejects the session has read nothing.
    const unread = this.#session.refusal === '' ? [] : (this.#unread ?? []);
    if (unread.length > 0) this.#session.unsent();
    const { toAgent, again } = this.#session.lost(ownProcess?.endedItself === true ? ENDED : RESTARTED, durable);
    this.#toAgent(toAgent);
    const waiting = [...again, ...unread, ...this.#queue.splice(0)];
    this.#queueLength = 0;
    if (this.#stopped === undefined) this.#enqueue(waiting);
    else this.#toAgent(SessionReplay.refused(waiting, this.#stopped, SHUTTING_DOWN));
    // The input may be paused for a 'drain' event that this server's stream never emits.
    if (!this.#isFull) this.#options.input.resume();
  }

  #goLive(link: ServerLink, first: readonly string[]): void {
    this.#cancelDeadline();
    this.#open = link;
    this.#batch.push(...first);
    const waiting = this.#queue.splice(0);
    this.#queueLength = 0;
    for (const line of waiting) this.#send(line);
    if (!this.#isFull) this.#options.input.resume();
    this.#flush();
    if (this.#ended) link.output.end();
    else if (this.#handingOver) this.handOver();
  }

  /** Handles a line from the server. @returns false if the connection must end */
  #receive(line: string, link: ServerLink): boolean {
    if (isAside(line)) return this.#learn(line);
    this.#served = true;
    const verdict = this.#session.received(line);
    if (verdict === 'refused') return false;
    // A server reports its limit before its first message, or never.
    if (!this.#limited) this.#limit(MAX_LINE_BYTES);
    this.#unread = undefined;
    if (verdict === 'pass') this.#out.push(line);
    else if (verdict === 'replaced') this.#out.push(this.#session.replacement);
    else if (verdict === 'resumed') {
      this.#goLive(link, this.#session.resumption());
      this.#out.push(...this.#session.changes());
    }
    return true;
  }

  /** Handles a report to the relay. @returns true: the connection continues */
  #learn(line: string): true {
    const mail = readServerMail(line);
    if (mail?.type === 'limit') this.#limit(mail.maxMessageBytes);
    else if (mail?.type === 'repeatable') this.#session.learn(mail.tools);
    else if (mail?.type === 'rejected') this.#session.rejected(mail.line, mail.id);
    return true;
  }

  /** A line from the server was skipped: its request gets an error. */
  #skipped(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void {
    const why =
      reason === 'too long'
        ? `it is ${bytes} bytes long, and the limit is ${MAX_LINE_BYTES}`
        : `its ${bytes} bytes are not UTF-8`;
    this.#options.say(`dropped a line from the server: ${why}`);
    this.#out.push(...this.#session.skipped(head, `The server's response was dropped: ${why}.`));
  }

  /** The lines for the agent from the current chunk. */
  readonly #out: string[] = [];

  #pass(link: ServerLink): void {
    if (this.#out.length === 0) return;
    if (this.#toAgent(this.#out.splice(0))) return;
    link.input.pause();
    this.#options.output.once('drain', () => link.input.resume());
  }

  /** @returns false if the output buffer is full */
  #toAgent(messages: readonly string[]): boolean {
    return messages.length === 0 || this.#gone || this.#options.output.write(lines(messages));
  }
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
