/** The client of a run: the request that waits for it, if there is one, with its questions, its progress and its time. */
import type { ScriptRunState } from '../../../../machines/script-run.ts';
import { Unanswered } from '../../../core/execution/input-errors.ts';
import { becomeTask, isTask, requestContextOf } from '../../../core/execution/request-context.ts';
import type { Timer } from '../../../core/kernel/clock.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import { askVerbatim } from '../../asking/asking-context.ts';
import type { OpenCall } from './open-call.ts';
import type { Attachment, RunMail, ScriptRunOptions } from './run-messages.ts';
import { type EndedCall, pausedResult } from './run-result.ts';

/** Milliseconds before the deadline of a request at which it is answered although calls of its run are in flight. */
const MARGIN_MS = 5_000;
/** Maximum number of questions that are open at once: that of one round. */
const MAX_QUESTIONS = 32;
/** Progress must increase: that of a script itself is higher than the parts of this number. */
const MAX_REPORTED = 1_000_000;

export class RunClient {
  readonly #options: Pick<ScriptRunOptions, 'core' | 'id' | 'tool' | 'settings'>;
  readonly #self: Mailbox<RunMail>;
  #request: Attachment | undefined;
  /** The script reports its progress itself. */
  #reports = false;
  /** Ends the wait of the request. */
  #pause: Timer | undefined;
  /** Ends the time in which a client that has left may return. */
  #lost: Timer | undefined;

  constructor(options: ScriptRunOptions, self: Mailbox<RunMail>) {
    this.#options = options;
    this.#self = self;
  }

  /** The request that waits. */
  get request(): Attachment | undefined {
    return this.#request;
  }

  /** True while the client waits for the response to its request. A task, or a question to the client, has answered the request. */
  get isInFlight(): boolean {
    const ctx = this.#request?.ctx;
    return ctx !== undefined && !ctx.signal.aborted && !requestContextOf(ctx).current.settled;
  }

  attach(request: Attachment): void {
    this.#lost?.cancel();
    this.answer(['another call waits for it now'], undefined);
    this.#request = request;
    requestContextOf(request.ctx).allow(this.#options.core.limits.maxTimeoutMs);
  }

  /** The run ends at this time at the latest, in milliseconds since 1970. A task of its request lives until then. */
  lastsUntil(time: number): void {
    if (this.#request) requestContextOf(this.#request.ctx).lastsUntil = time;
  }

  /** @returns the request, which the caller settles */
  detach(): Attachment | undefined {
    const request = this.#request;
    this.#request = undefined;
    this.#pause?.cancel();
    return request;
  }

  /** Answers the request: its run continues without it. @param leftMs milliseconds for which the run is kept */
  answer(waits: readonly string[], leftMs: number | undefined): void {
    const { id, tool } = this.#options;
    this.detach()?.resolve(pausedResult(id, waits, tool, leftMs));
  }

  /** The next process continues the request, which ends here by its signal: an error before that would be its outcome. */
  moveOn(reason: string): void {
    const request = this.detach();
    if (!request) return;
    const { signal } = request.ctx;
    const left = (): void => request.reject(new Unanswered(reason));
    if (signal.aborted) left();
    else signal.addEventListener('abort', left, { once: true });
  }

  /** The client has left. It may return for a while. */
  awaitReturn(): void {
    const { clock } = this.#options.core.system;
    this.#lost = clock.after(this.#options.core.limits.askMs, () => this.#self.send({ type: 'not returned' }));
  }

  /** Starts the time after which the request is answered if the run waits for long, and its client need not do anything. */
  watch(state: ScriptRunState, waits: boolean, calls: Iterable<OpenCall>): void {
    this.#pause?.cancel();
    const request = this.#request;
    if (!request || isTask(request.ctx) || isAsked(calls)) return;
    const { core, settings } = this.#options;
    const { clock } = core.system;
    const { deadline } = requestContextOf(request.ctx).current;
    if (deadline <= 0) return;
    const left = Math.max(0, deadline - clock.now() - MARGIN_MS);
    // Waiting does not help if this client cannot do what is missing.
    const longest = state === 'waiting for client' ? 0 : settings.waitMs;
    const ms = waits ? Math.min(longest, left) : left;
    this.#pause = clock.after(Math.ceil(ms), () => this.#self.send({ type: 'waited' }));
  }

  /** @returns false if there is no request, or its task waits in its place */
  mayPause(): boolean {
    return this.#request !== undefined && !becomeTask(this.#request.ctx);
  }

  /** Asks the client all questions that are open now together. */
  ask(calls: ReadonlyMap<number, OpenCall>): void {
    const request = this.#request;
    if (!request) return;
    let asked = 0;
    for (const open of calls.values()) if (open.askedBy === request) asked += Object.keys(open.requests).length;
    for (const open of calls.values()) {
      if (open.status !== 'asked' || open.askedBy === request) continue;
      const count = Object.keys(open.requests).length;
      asked += count;
      if (asked > MAX_QUESTIONS && asked > count) return;
      this.#askFor(open, request);
    }
  }

  #askFor(open: OpenCall, request: Attachment): void {
    const { number } = open.call;
    const { round, requests } = open;
    const prefix = `${number}.${round}.`;
    const named = Object.fromEntries(Object.entries(requests).map(([key, each]) => [prefix + key, each]));
    const waiting = new AbortController();
    Object.assign(open, { askedBy: request, waiting });
    askVerbatim(request.ctx, named, waiting.signal).then(
      (given) => {
        const replies = Object.fromEntries(
          Object.entries(given).map(([key, reply]) => [key.slice(prefix.length), reply]),
        );
        this.#self.send({ type: 'replied', number, round, replies });
      },
      (error: unknown) => this.#self.send({ type: 'unanswered', number, round, by: request, error }),
    );
  }

  /** Progress that the script reports. */
  progress(done: number, total: number | undefined, text: string | undefined): void {
    this.#reports = true;
    this.#request?.ctx.progress(done, total, text);
  }

  /** Reports the last call, so that a host does not take a long script for one that hangs, until the script reports progress itself. */
  report(last: EndedCall | undefined): void {
    if (this.#reports || !last) return;
    this.#request?.ctx.progress(last.number / MAX_REPORTED, undefined, `call ${last.number}: ${last.name}`);
  }

  /** Stops its timers. */
  silence(): void {
    this.#pause?.cancel();
    this.#lost?.cancel();
  }
}

/** True while the client that waits is asked something. */
function isAsked(calls: Iterable<OpenCall>): boolean {
  return [...calls].some(({ status, waiting }) => status === 'asked' && waiting !== undefined);
}
