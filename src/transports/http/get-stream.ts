/** One GET of a session: a response that reads the session's own stream, or takes up one that was cut. */
import type { Stream } from './event-stream.ts';
import type { HttpResponse, Listener } from './message.ts';
import type { Open } from './open-list.ts';
import type { HttpSession } from './session.ts';
import { KEEP_ALIVE } from './sse.ts';
import { Stall } from './stall.ts';

export class GetStream implements Listener, Open {
  before: Open | undefined;
  after: Open | undefined;
  readonly session: HttpSession;
  readonly principal: string;
  readonly #response: HttpResponse;
  /** The stream that it takes up; undefined where it reads whatever the session says of its own accord. */
  readonly #stream: Stream | undefined;
  readonly #over: (stream: GetStream) => void;
  readonly #now: () => number;
  readonly #stall = new Stall();

  constructor(
    session: HttpSession,
    response: HttpResponse,
    stream: Stream | undefined,
    now: () => number,
    over: (stream: GetStream) => void,
  ) {
    this.session = session;
    this.principal = session.principal;
    this.#response = response;
    this.#stream = stream;
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

  drained(): void {
    this.#stall.moved();
    this.session.drained(this.#response, this.#stream);
  }

  closed(): void {
    this.session.left(this.#response, this.#stream, this.#now());
    this.#over(this);
  }
}
