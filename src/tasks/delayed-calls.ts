/** Statecharts of calls whose clients have not come back since another process asked them: each goes on when the first of its delays is due. */
import type { Clock } from '../clock.ts';
import { steadyDate } from '../clock.ts';
import type { InteractiveRequests } from '../input/interactive-requests.ts';
import type { RequestLog } from '../input/request-log.ts';
import { isCall } from '../input/request-log.ts';
import type { Limits } from '../limits.ts';
import type { RequestMail } from '../messages/request-messages.ts';
import type { Outcome } from '../messages/results.ts';
import { isObject } from '../protocol/json.ts';
import { TimerQueue } from '../timer-queue.ts';
import { replayRequest } from './replayed-request.ts';

export interface DelayedCallsOptions {
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'maxParked' | 'maxTasks'>;
  readonly ledger: RequestLog;
  readonly asks: InteractiveRequests;
  /** Passes a call that is run anew to what runs it. */
  route(mail: RequestMail): void;
  /** Wakes the task of this identity. @returns false where it is none of a task */
  task(identity: string): boolean;
  incident(where: string, error: unknown): string;
}

export class DelayedCalls {
  readonly #options: DelayedCallsOptions;
  readonly #wakes: TimerQueue;

  constructor(options: DelayedCallsOptions) {
    this.#options = options;
    this.#wakes = new TimerQueue(options.clock, steadyDate(options.clock), (id) => void this.#wake(id));
  }

  /** Takes up what is kept. What is late goes on once everybody else has taken up theirs. */
  async restore(): Promise<void> {
    const { ledger, limits, clock } = this.#options;
    const due = await ledger.due(limits.maxParked + limits.maxTasks);
    clock.soon(() => {
      for (const { id, due: at } of due) if (!ledger.leaving) this.#wakes.add(id, at);
    });
  }

  stop(): void {
    this.#wakes.stop();
  }

  async #wake(id: string): Promise<void> {
    const { asks, ledger, route, task, incident } = this.#options;
    try {
      if (task(id)) return;
      const left = await ledger.left(id);
      // Its client has come back meanwhile.
      if (!left || asks.has(id) || asks.leaving || ledger.isSpent(id)) return;
      const { call, recorded } = left;
      const tool = isObject(call) ? call.tool : undefined;
      if (!isCall(call) || typeof tool !== 'string') throw new Error('expected a stored call');
      const refused = (outcome: Outcome): void => {
        if (!outcome.ok) incident(`a suspended call of tool "${tool}"`, new Error(outcome.error.message));
      };
      route({ type: 'request', request: replayRequest({ tool, session: undefined }, call, recorded, refused) });
    } catch (error) {
      incident('continuing a suspended call after its delay', error);
    }
  }
}
