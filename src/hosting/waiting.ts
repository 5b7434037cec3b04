/** Statecharts of calls whose clients have not come back since another process asked them: each goes on when the first of its delays is due. */
import type { Clock } from '../clock.ts';
import { steadyDate } from '../clock.ts';
import { Wakes } from '../handles/wakes.ts';
import type { Outcome } from '../messages/answers.ts';
import type { RequestMail } from '../messages/requests.ts';
import type { Limits } from '../options.ts';
import { isObject } from '../protocol/json.ts';
import type { Asks } from './asks.ts';
import type { Ledger } from './ledger.ts';
import { requestAnew } from './revived.ts';
import { isCall } from './task-records.ts';

export interface WaitingOptions {
  readonly clock: Clock;
  readonly limits: Pick<Limits, 'maxParked' | 'maxTasks'>;
  readonly ledger: Ledger;
  readonly asks: Asks;
  /** Passes a call that is run anew to what runs it. */
  route(mail: RequestMail): void;
  /** Wakes the task of this identity. @returns false where it is none of a task */
  task(identity: string): boolean;
  incident(where: string, error: unknown): string;
}

export class Waiting {
  readonly #options: WaitingOptions;
  readonly #wakes: Wakes;

  constructor(options: WaitingOptions) {
    this.#options = options;
    this.#wakes = new Wakes(options.clock, steadyDate(options.clock), (id) => void this.#wake(id));
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
      if (!isCall(call) || typeof tool !== 'string') throw new Error('what is kept of it is no call');
      const refused = (outcome: Outcome): void => {
        if (!outcome.ok) incident(`a call of tool "${tool}" that waits`, new Error(outcome.error.message));
      };
      route({ type: 'request', request: requestAnew({ tool, session: undefined }, call, recorded, refused) });
    } catch (error) {
      incident('a call that waits for its client, and was to go on', error);
    }
  }
}
