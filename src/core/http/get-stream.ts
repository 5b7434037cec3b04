/** One GET of a session: a response that reads the session's own stream, or resumes one that was cut. */
import type { EventStream } from './event-stream.ts';
import type { HttpResponse } from './http-message.ts';
import type { HttpSession } from './http-session.ts';
import { OpenResponse } from './open-responses.ts';

export class GetStream extends OpenResponse {
  readonly session: HttpSession;
  readonly principal: string;
  /** The stream that it resumes; undefined if it reads the session's own messages. */
  readonly #stream: EventStream | undefined;
  readonly #over: (stream: GetStream) => void;
  readonly #now: () => number;

  constructor(
    session: HttpSession,
    response: HttpResponse,
    stream: EventStream | undefined,
    endsAt: number,
    now: () => number,
    over: (stream: GetStream) => void,
  ) {
    super(response, endsAt);
    this.session = session;
    this.principal = session.principal;
    this.#stream = stream;
    this.#now = now;
    this.#over = over;
    response.listener = this;
  }

  expire(retryMs: number, now: number): void {
    this.session.expire(this.response, this.#stream, retryMs, now);
  }

  override drained(): void {
    super.drained();
    this.session.drained(this.response, this.#stream);
  }

  closed(): void {
    this.session.detachReader(this.response, this.#stream, this.#now());
    this.#over(this);
  }
}
