/** Connects one agent on stdio with a sequence of server processes, and moves the agent's session from one to the next. */
import type { Readable, Writable } from 'node:stream';
import { type Clock, systemClock } from '../../core/kernel/clock.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { LineReader } from '../../core/transports/lines.ts';
import { asideOf, isAside, readServerMail } from '../../core/transports/relay.ts';
import { Probe } from '../supervisor/probe.ts';
import { StrayOutput } from '../supervisor/stray-output.ts';
import type { ServerLink } from './server-link.ts';
import { SessionReplay } from './session-replay.ts';

/** The default of {@link ShimOptions.maxLineBytes}. */
const MAX_LINE_BYTES = 64 * 1024 * 1024;

/** Number of characters that may wait for a server before the shim stops reading from the agent. */
const MAX_QUEUED = 4 * 1024 * 1024;

const HELLO = asideOf({ type: 'hello' });

const SHUTTING_DOWN = -31_003;

/** The errors of requests in flight when their server ends. */
const RESTARTED = 'The server restarted before it answered. Retry only if running this call twice is safe.';
const ENDED = 'The server ended before it answered, and will not be restarted.';

/** When to connect to a server again. */
interface ReconnectPolicy {
  /** An attempt to connect failed: resolves when the next may start. @throws {Error} to give up */
  failed(error: unknown): Promise<void>;
  /** A connection was lost after `livedMs` milliseconds: resolves when the next attempt may start. @param refusal why the server rejected the session, or empty @throws {Error} to give up */
  lost(livedMs: number, refusal: string): Promise<void>;
  /** Calls back when a server takes too long to resume a session. The returned function cancels the timer. */
  deadline(late: () => void): () => void;
}

interface ShimOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Connects to a server. @throws {Error} if that fails */
  dial(): Promise<ServerLink>;
  readonly retryPolicy: ReconnectPolicy;
  /** Default: the system clock. */
  readonly clock?: Clock;
  /** The longest line that passes from a server, in bytes. It also limits lines of the agent if the server reports no limit. Default: 64 MiB. */
  readonly maxLineBytes?: number;
  /** Prints a line on stderr. */
  say(line: string): void;
}

/** The shim's connection to a server. */
type Connection =
  | { readonly state: 'none' }
  /** The server resumes the agent's session: only `initialize` has been sent. */
  | {
      readonly state: 'resuming';
      readonly link: ServerLink;
      readonly deadline: () => void;
      readonly handsOver: boolean;
    }
  /** Lines pass. */
  | { readonly state: 'linked'; readonly link: ServerLink }
  /** The server finishes its running requests; new requests wait for the next server. */
  | { readonly state: 'draining'; readonly link: ServerLink };

/** The agent's side. Each state replaces the one before; the order is the order below. */
type Agent =
  | { readonly state: 'connected' }
  /** The agent sends nothing more. */
  | { readonly state: 'ended' }
  /** All its further requests are rejected. */
  | { readonly state: 'rejected'; readonly why: string }
  /** The agent reads nothing more. */
  | { readonly state: 'gone' };

/**
 * Copies lines from `input` to the server and back, until the input has ended and every request is answered.
 * If the server dies, its requests in flight are resent to the next server if that is safe, and get an error otherwise.
 * Later requests wait for the next server.
 *
 * @example await new Shim({ input: process.stdin, output: process.stdout, dial, retryPolicy, say }).run();
 */
export class Shim {
  readonly #options: ShimOptions;
  readonly #maxLineBytes: number;
  readonly #session = new SessionReplay();
  readonly #fromAgent: LineReader;
  /** A server has reported its limit for lines. A later server may report another. */
  #limited = false;
  /** Lines that wait for a server. */
  #queue: string[] = [];
  #queueLength = 0;
  /** Lines that were sent on this connection before the first message from the server: a server that rejects the session has read none of them. */
  #unread: string[] | undefined;
  #connection: Connection = { state: 'none' };
  #agent: Agent = { state: 'connected' };
  /** Lines for the server from the current turn. */
  #batch: string[] = [];
  #served = false;
  #leave: () => void = () => {};

  constructor(options: ShimOptions) {
    this.#options = options;
    this.#maxLineBytes = options.maxLineBytes ?? MAX_LINE_BYTES;
    this.#fromAgent = new LineReader({
      maxBytes: this.#maxLineBytes,
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

  /** The server to which lines may pass. */
  get #open(): ServerLink | undefined {
    const connection = this.#connection;
    return connection.state === 'linked' || connection.state === 'draining' ? connection.link : undefined;
  }

  /** The agent sends nothing more. Requests in flight are still answered. */
  end(): void {
    if (this.#agent.state !== 'connected') return;
    this.#agent = { state: 'ended' };
    this.#endInput();
  }

  /** Ends as if the agent had closed its input. Rejects waiting and later requests. */
  stop(why: string): void {
    const { state } = this.#agent;
    if (state === 'rejected' || state === 'gone') return;
    this.#agent = { state: 'rejected', why };
    this.#toAgent(SessionReplay.refused(this.#takeQueue(), why, SHUTTING_DOWN));
    if (state === 'connected') this.#endInput();
    // A server that has not resumed the session yet has no running requests.
    if (this.#connection.state === 'resuming') this.#connection.link.destroy();
  }

  /** The agent does not read its input any more. */
  #abandon(): void {
    const { state } = this.#agent;
    this.#agent = { state: 'gone' };
    if (state === 'connected') this.#endInput();
    this.#leave();
  }

  #endInput(): void {
    this.#fromAgent.end();
    this.#flush();
    this.#open?.output.end();
    // No request waits for the next server.
    if (this.#connection.state === 'none' && this.isDone) this.#leave();
  }

  /** Asks the server to finish its running requests and to end. New requests wait for the next server. Without a server, does nothing. */
  handOver(): void {
    if (this.#agent.state !== 'connected') return;
    const connection = this.#connection;
    if (connection.state === 'resuming') this.#connection = { ...connection, handsOver: true };
    else if (connection.state === 'linked') this.#drain(connection.link);
  }

  #drain(link: ServerLink): void {
    this.#connection = { state: 'draining', link };
    this.#flush();
    this.#session.draining();
    link.drain();
  }

  /** True if any server has sent a message. */
  get hasServed(): boolean {
    return this.#served;
  }

  /** True if no request waits for a server; a server may still be finishing running requests. */
  get isDone(): boolean {
    const { state } = this.#agent;
    return state === 'gone' || (state !== 'connected' && !this.#queue.some(SessionReplay.isAnswered));
  }

  #line(line: string): void {
    const { state } = this.#connection;
    if (this.#agent.state === 'rejected') this.#toAgent(SessionReplay.refused([line], this.#agent.why, SHUTTING_DOWN));
    else if (state === 'linked' || (state === 'draining' && !this.#session.isForNext(line))) this.#send(line);
    else this.#enqueue([line]);
  }

  #enqueue(lines: readonly string[]): void {
    this.#queue.push(...lines);
    for (const line of lines) this.#queueLength += line.length;
    if (this.#isFull) this.#options.input.pause();
  }

  #takeQueue(): readonly string[] {
    this.#queueLength = 0;
    return this.#queue.splice(0);
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
    this.#unread = [];
    this.#session.refusal = '';
    const { clock = systemClock, say } = this.#options;
    const output = new StrayOutput({ clock, say });
    const probe = this.#probe(link, clock);
    let problem: unknown;
    let over = false;
    const reader = new LineReader({
      maxBytes: this.#maxLineBytes,
      onLine: (line) => {
        const message = over ? undefined : output.messageIn(line);
        if (message === undefined) return;
        const { responses } = this.#session;
        try {
          over = !this.#receive(message, link);
          if (this.#session.responses > responses) probe?.responded();
          else probe?.received();
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
    else {
      const deadline = this.#options.retryPolicy.deadline(() => link.destroy());
      this.#connection = { state: 'resuming', link, deadline, handsOver: false };
    }
    await link.closed;
    over = true;
    probe?.stop();
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
        awaits: () => this.#connection.state === 'linked' && !link.input.isPaused() && this.#session.awaits,
        loopRuns: () => ownProcess.loopRuns(),
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
    if (this.#connection.state === 'resuming') this.#connection.deadline();
    this.#connection = { state: 'none' };
    this.#batch = [];
    // A server that rejects the session has read nothing.
    const unread = this.#session.refusal === '' ? [] : (this.#unread ?? []);
    if (unread.length > 0) this.#session.unsent();
    const { toAgent, again } = this.#session.lost(ownProcess?.endedItself === true ? ENDED : RESTARTED, durable);
    this.#toAgent(toAgent);
    const waiting = [...again, ...unread, ...this.#takeQueue()];
    if (this.#agent.state !== 'rejected') this.#enqueue(waiting);
    else this.#toAgent(SessionReplay.refused(waiting, this.#agent.why, SHUTTING_DOWN));
    // The input may be paused for a 'drain' event that this server's stream never emits.
    if (!this.#isFull) this.#options.input.resume();
  }

  #goLive(link: ServerLink, first: readonly string[]): void {
    const before = this.#connection;
    if (before.state === 'resuming') before.deadline();
    this.#connection = { state: 'linked', link };
    this.#batch.push(...first);
    for (const line of this.#takeQueue()) this.#send(line);
    if (!this.#isFull) this.#options.input.resume();
    this.#flush();
    if (this.#agent.state !== 'connected') link.output.end();
    else if (before.state === 'resuming' && before.handsOver) this.#drain(link);
  }

  /** Handles a line from the server. @returns false if the connection must end */
  #receive(line: string, link: ServerLink): boolean {
    if (isAside(line)) return this.#learn(line);
    this.#served = true;
    const verdict = this.#session.received(line);
    if (verdict === 'refused') return false;
    // A server reports its limit before its first message, or never.
    if (!this.#limited) this.#limit(this.#maxLineBytes);
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
        ? `it is ${bytes} bytes long, and the limit is ${this.#maxLineBytes}`
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
    return messages.length === 0 || this.#agent.state === 'gone' || this.#options.output.write(lines(messages));
  }
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
