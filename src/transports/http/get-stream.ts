/** One GET of a session: a response that reads the session's own stream, or resumes one that was cut. */
import type { ClientStream } from './event-stream.ts';
import type { HttpListener, HttpResponse } from './http-message.ts';
import type { HttpSession } from './http-session.ts';
import type { Open } from './open-list.ts';
import { KEEP_ALIVE } from './sse.ts';
import { StallDetector } from './stall-detector.ts';

export class GetStream implements HttpListener, Open {
  before: Open | undefined;
  after: Open | undefined;
  readonly session: HttpSession;
  readonly principal: string;
  readonly endsAt: number;
  readonly #response: HttpResponse;
  /** The stream that it resumes; undefined if it reads the session's own messages. */
  readonly #stream: ClientStream | undefined;
  readonly #over: (stream: GetStream) => void;
  readonly #now: () => number;
  readonly #stall = new StallDetector();

  constructor(
    session: HttpSession,
    response: HttpResponse,
    stream: ClientStream | undefined,
    endsAt: number,
    now: () => number,
    over: (stream: GetStream) => void,
  ) {
    this.session = session;
    this.principal = session.principal;
    this.#response = response;
    this.#stream = stream;
    this.endsAt = endsAt;
    this.#now = now;
    this.#over = over;
    response.listener = this;
  }

  tend(now: number, _keepAliveMs: number, stallMs: number): boolean {
    if (this.#stall.stalled(this.#response.pending, now, stallMs)) {
      this.#response.destroy();
      return false;
    }
    if (this.#response.pending === 0) this.#response.write(KEEP_ALIVE);
    return true;
  }

  expire(retryMs: number, now: number): void {
    this.session.expire(this.#response, this.#stream, retryMs, now);
  }

  /** Disconnects the client without another byte. */
  cut(): void {
    this.#response.destroy();
  }

  drained(): void {
    this.#stall.moved();
    this.session.drained(this.#response, this.#stream);
  }

  closed(): void {
    this.session.detachReader(this.#response, this.#stream, this.#now());
    this.#over(this);
  }
}
