/** A shim between one agent on stdio and a server, whichever process that may be: it takes the agent's session from one to the next. */
import type { Readable, Writable } from 'node:stream';
import { type Clock, systemClock } from '../../clock.ts';
import { messageOf } from '../../protocol/json.ts';
import { LineReader } from '../../transports/lines.ts';
import { asideOf, isAside, readServerMail } from '../../transports/relay.ts';
import { Probe } from '../supervisor/probe.ts';
import { StrayOutput } from '../supervisor/stray-output.ts';
import type { ServerLink } from './server-link.ts';
import { SessionReplay } from './session-replay.ts';

/** Longest line from a server that passes, in bytes; also from the agent, where a server does not say what its limit is. */
const LONGEST = 64 * 1024 * 1024;

/** Characters that wait for a server before the agent has to wait too. */
const MOST_HELD = 4 * 1024 * 1024;

const HELLO = asideOf({ type: 'hello' });

const SHUTTING_DOWN = -31_003;

/** What becomes of a request that was in flight, for the agent. */
const RESTARTED =
  'the server restarted, and this request was lost with it: send it again if it does no harm when done twice';
const ENDED = 'the server ended before it answered this request, and does not start again';

/** How often to look for a server, and for how long. */
export interface Persistence {
  /** No server could be reached: resolves when it is time for the next attempt. @throws {Error} when there shall be none */
  failed(error: unknown): Promise<void>;
  /** A server was lost, so many milliseconds after it was reached; the same. @param refusal why it would not serve, or empty */
  lost(livedMs: number, refusal: string): Promise<void>;
  /** Calls back when a server has taken too long to take up a session, unless the returned function is called first. */
  deadline(late: () => void): () => void;
}

export interface ShimOptions {
  readonly input: Readable;
  readonly output: Writable;
  /** Reaches a server, once. @throws {Error} when that fails */
  dial(): Promise<ServerLink>;
  readonly patience: Persistence;
  /** Default: the real one. */
  readonly clock?: Clock;
  /** Tells people. */
  say(line: string): void;
}

/**
 * Copies lines from `input` to the server and back, until the input has ended and all is answered.
 * When the server dies, what it had is sent to the next where that does no harm, and answered with an error where it might;
 * what comes meanwhile waits for the next.
 *
 * @example await new Shim({ input: process.stdin, output: process.stdout, dial, patience, say }).run();
 */
export class Shim {
  readonly #options: ShimOptions;
  readonly #conversation = new SessionReplay();
  readonly #fromAgent: LineReader;
  /** A server has said how long a line may be. The next may say otherwise. */
  #limited = false;
  /** What waits for a server. */
  #held: string[] = [];
  #heldLength = 0;
  /** What was sent on this connection before the first message came back: a server that refuses has read none of it. */
  #unread: string[] | undefined;
  /** The connection, once lines may pass. */
  #open: ServerLink | undefined;
  #link: ServerLink | undefined;
  #batch: string[] = [];
  /** Another server waits to take this one's place, as soon as this has taken up the session. */
  #handingOver = false;
  /** The server finishes what it has; what is new is for the next. */
  #draining = false;
  /** The agent sends nothing more. */
  #ended = false;
  /** Why no server shall take what the agent may still send. */
  #stopped: string | undefined;
  /** The agent reads nothing more. */
  #gone = false;
  #served = false;
  #leave: () => void = () => {};
  /** Ends the wait for a server that takes up the session. */
  #inTime: () => void = () => {};

  constructor(options: ShimOptions) {
    this.#options = options;
    this.#fromAgent = new LineReader({
      maxBytes: LONGEST,
      onLine: (line) => this.#line(line),
      // The server knows how to reject it, in the agent's revision.
      onUnreadable: (reason, bytes, head) => this.#line(asideOf({ type: 'unreadable', reason, bytes, head })),
    });
  }

  /** @throws {Error} when there is no server to be had, or the session cannot go on with it; the agent has its errors then */
  async run(): Promise<void> {
    const { input, output } = this.#options;
    input.on('data', (chunk: Buffer) => {
      this.#fromAgent.push(chunk);
      this.#flush();
      if (this.#isFull) input.pause();
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
      while (!this.isDone) {
        const link = await dial().catch((error: unknown) => patience.failed(error));
        if (!link) continue;
        const began = performance.now();
        await this.#converse(link);
        if (!this.isDone) await patience.lost(performance.now() - began, this.#conversation.refusal);
      }
    } catch (error) {
      this.#toAgent(SessionReplay.refused(this.#held, messageOf(error)));
      throw error;
    }
  }

  /** The agent sends nothing more: what it has asked is still answered. */
  end(): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#fromAgent.end();
    this.#flush();
    this.#open?.output.end();
    // Nothing waits for the server that is looked for.
    if (!this.#link && this.isDone) this.#leave();
  }

  /** Ends as if the agent had sent nothing more. What it sends all the same, and what waits for a server, is refused. */
  stop(why: string): void {
    if (this.#stopped !== undefined) return;
    this.#stopped = why;
    this.#toAgent(SessionReplay.refused(this.#held.splice(0), why, SHUTTING_DOWN));
    this.end();
    // A server that has not taken up the session yet has nothing to finish.
    if (!this.#open) this.#link?.destroy();
  }

  /** The server finishes what it has, and ends; what is new waits for the next. Where none serves, the next is the next. */
  handOver(): void {
    this.#handingOver = this.#link !== undefined && !this.#ended;
    if (!this.#handingOver || !this.#open || this.#draining) return;
    this.#draining = true;
    this.#flush();
    this.#conversation.draining();
    this.#open.drain();
  }

  /** Whether any server has sent a message. */
  get hasServed(): boolean {
    return this.#served;
  }

  /** Nobody reads what the shim says. */
  #vanish(): void {
    this.#gone = true;
    this.end();
    this.#leave();
  }

  /** True when nothing is left to do, but for what a server may still be finishing. */
  get isDone(): boolean {
    return this.#gone || (this.#ended && !this.#held.some(SessionReplay.isAnswered));
  }

  #line(line: string): void {
    if (this.#stopped !== undefined) this.#toAgent(SessionReplay.refused([line], this.#stopped, SHUTTING_DOWN));
    else if (this.#open && !(this.#draining && this.#conversation.isForNext(line))) this.#send(line);
    else this.#hold([line]);
  }

  #hold(lines: readonly string[]): void {
    this.#held.push(...lines);
    for (const line of lines) this.#heldLength += line.length;
    if (this.#isFull) this.#options.input.pause();
  }

  /** Whether the agent has to wait: for a server, or until that says how long a line may be. */
  get #isFull(): boolean {
    return this.#heldLength > MOST_HELD || (!this.#limited && this.#fromAgent.heldBytes > MOST_HELD);
  }

  #send(line: string): void {
    const sent = this.#conversation.sent(line);
    if (sent === undefined) return;
    // A line may end in a carriage return of its own: the server takes the last one for a part of the line end.
    this.#batch.push(sent.endsWith('\r') ? `${sent}\r` : sent);
    this.#unread?.push(line);
  }

  /** How long a line of the agent may be. */
  #limit(maxBytes: number): void {
    this.#limited = true;
    this.#fromAgent.maxBytes = maxBytes;
    if (!this.#isFull) this.#options.input.resume();
  }

  /** Writes what was sent in this turn. */
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

  /** One connection, from its first line to its last. @throws {Error} when the session cannot go on */
  async #converse(link: ServerLink): Promise<void> {
    this.#link = link;
    this.#unread = [];
    this.#conversation.refusal = '';
    const { clock = systemClock, say } = this.#options;
    const output = new StrayOutput({ clock, say });
    const probe = this.#probe(link, clock);
    let problem: unknown;
    let over = false;
    const reader = new LineReader({
      maxBytes: LONGEST,
      onLine: (line) => {
        const message = over ? undefined : output.messageIn(line);
        if (message === undefined) return;
        const { responses } = this.#conversation;
        try {
          over = !this.#heard(message, link);
          if (this.#conversation.responses > responses) probe?.responded();
          else probe?.heard();
        } catch (error) {
          problem = error;
          over = true;
        }
        if (over) link.destroy();
      },
      onUnreadable: (reason, bytes, head) => this.#leftOut(reason, bytes, head),
    });
    link.input.on('data', (chunk: Buffer) => {
      reader.push(chunk);
      this.#pass(link);
    });
    const opening = this.#conversation.connected();
    link.output.write(lines(opening === undefined ? [HELLO] : [HELLO, opening]));
    if (opening === undefined) this.#goLive(link, []);
    else this.#inTime = this.#options.patience.deadline(() => link.destroy());
    await link.closed;
    over = true;
    probe?.stop();
    this.#inTime();
    this.#afterwards(link);
    if (problem !== undefined) throw problem;
  }

  /** Finds out whether a server that owes responses can still give any; where others use it, too, that is not ours to judge. */
  #probe(link: ServerLink, clock: Clock): Probe | undefined {
    const { life } = link;
    return (
      life &&
      new Probe({
        clock,
        // What the agent does not read, its server need not say.
        awaits: () => this.#open === link && !this.#draining && !link.input.isPaused() && this.#conversation.awaits,
        turns: () => life.turns(),
        ask: () => void link.output.write(lines([this.#conversation.probe()])),
        dead: (why) => {
          this.#conversation.distrust();
          life.end(why);
        },
      })
    );
  }

  /** The connection is over. */
  #afterwards({ keeps, life }: ServerLink): void {
    this.#open = undefined;
    this.#link = undefined;
    this.#handingOver = false;
    this.#draining = false;
    this.#batch = [];
    // A server that refuses has read nothing.
    const unread = this.#conversation.refusal === '' ? [] : (this.#unread ?? []);
    if (unread.length > 0) this.#conversation.unsent();
    const { toAgent, again } = this.#conversation.lost(life?.endedItself === true ? ENDED : RESTARTED, keeps);
    this.#toAgent(toAgent);
    const held = [...again, ...unread, ...this.#held.splice(0)];
    this.#heldLength = 0;
    if (this.#stopped === undefined) this.#hold(held);
    else this.#toAgent(SessionReplay.refused(held, this.#stopped, SHUTTING_DOWN));
    // It may have been paused for a server that will never say 'drain' now.
    if (!this.#isFull) this.#options.input.resume();
  }

  #goLive(link: ServerLink, first: readonly string[]): void {
    this.#inTime();
    this.#open = link;
    this.#batch.push(...first);
    const held = this.#held.splice(0);
    this.#heldLength = 0;
    for (const line of held) this.#send(line);
    if (!this.#isFull) this.#options.input.resume();
    this.#flush();
    if (this.#ended) link.output.end();
    else if (this.#handingOver) this.handOver();
  }

  /** A line from the server. @returns false when nothing more is wanted of it */
  #heard(line: string, link: ServerLink): boolean {
    if (isAside(line)) return this.#learn(line);
    this.#served = true;
    const verdict = this.#conversation.received(line);
    if (verdict === 'refused') return false;
    // A server that says no limit before its first message says none.
    if (!this.#limited) this.#limit(LONGEST);
    this.#unread = undefined;
    if (verdict === 'pass') this.#out.push(line);
    else if (verdict === 'reworded') this.#out.push(this.#conversation.said);
    else if (verdict === 'resumed') {
      this.#goLive(link, this.#conversation.resumption());
      this.#out.push(...this.#conversation.changes());
    }
    return true;
  }

  /** A line that is for the shim. @returns true: the server is there */
  #learn(line: string): true {
    const mail = readServerMail(line);
    if (mail?.type === 'limit') this.#limit(mail.maxMessageBytes);
    else if (mail?.type === 'repeatable') this.#conversation.learn(mail.tools);
    else if (mail?.type === 'rejected') this.#conversation.rejected(mail.line, mail.id);
    return true;
  }

  /** A line from the server was skipped: the request that it answers gets an error. */
  #leftOut(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void {
    const why =
      reason === 'too long' ? `${bytes} bytes long, and ${LONGEST} is the limit` : `${bytes} bytes that are not UTF-8`;
    this.#options.say(`a line of the server is left out: it is ${why}`);
    this.#out.push(...this.#conversation.leftOut(head, `the server's response is left out: it is ${why}`));
  }

  /** What is for the agent, of the chunk at hand. */
  readonly #out: string[] = [];

  #pass(link: ServerLink): void {
    if (this.#out.length === 0) return;
    if (this.#toAgent(this.#out.splice(0))) return;
    link.input.pause();
    this.#options.output.once('drain', () => link.input.resume());
  }

  /** @returns false when the agent should read first */
  #toAgent(said: readonly string[]): boolean {
    return said.length === 0 || this.#gone || this.#options.output.write(lines(said));
  }
}

function lines(texts: readonly string[]): string {
  return `${texts.join('\n')}\n`;
}
