/** Continues the statecharts of calls whose clients have not returned since the process restarted: each resumes when its first timer is due. */
import type { ActorSystem } from '../../core/kernel/actor-system.ts';
import { steadyDate } from '../../core/kernel/clock.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { TimerQueue } from '../../core/kernel/timer-queue.ts';
import type { RequestTarget } from '../../core/messages/request-messages.ts';
import type { Outcome } from '../../core/messages/results.ts';
import { isOfCells } from '../../core/protocol/cell.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { InteractiveRequests } from '../asking/interactive-requests.ts';
import type { RequestLog } from '../asking/request-log.ts';
import { isCall } from '../asking/request-log.ts';
import { replayRequest } from './replayed-request.ts';
import type { TaskRecovery } from './task-recovery.ts';
import type { TaskTable } from './task-table.ts';

interface DelayedCallsOptions {
  readonly system: ActorSystem;
  readonly limits: Pick<Limits, 'maxParked' | 'maxTasks'>;
  readonly requestLog: RequestLog;
  readonly interactive: InteractiveRequests;
  /** The tasks, whose calls `recovery` runs again. */
  readonly table: TaskTable;
  readonly recovery: TaskRecovery;
  /** Resolves when the server serves: all of its tools are there. */
  readonly serves: Promise<void>;
  /** Receives the requests that run other calls again. */
  readonly tools: RequestTarget;
}

export class DelayedCalls {
  readonly #options: DelayedCallsOptions;
  readonly #timers: TimerQueue;
  /** The times of calls whose timers start when the server serves, by their ids. */
  readonly #taken = new Map<string, number>();

  constructor(options: DelayedCallsOptions) {
    this.#options = options;
    this.#timers = new TimerQueue(
      options.system.clock,
      steadyDate(options.system.clock),
      (id) => void this.#resume(id),
    );
  }

  /**
   * Reads the timers from the store. Overdue ones fire once the server serves, and all other parts of it have taken up these
   * cells.
   */
  async take(cells: readonly number[] | undefined): Promise<void> {
    const { requestLog, limits, serves, system } = this.#options;
    const due = await requestLog.due(limits.maxParked + limits.maxTasks, cells);
    for (const { id, due: at } of due) this.#taken.set(id, at);
    void serves.then(() => system.clock.soon(() => this.#start()));
  }

  #start(): void {
    for (const [id, at] of this.#taken) if (!this.#options.requestLog.isLeaving(id)) this.#timers.add(id, at);
    this.#taken.clear();
  }

  drop(cells: ReadonlySet<number>): void {
    for (const id of this.#timers.ids()) if (isOfCells(cells, id)) this.#timers.delete(id);
    for (const id of this.#taken.keys()) if (isOfCells(cells, id)) this.#taken.delete(id);
  }

  stop(): void {
    this.#timers.stop();
  }

  async #resume(id: string): Promise<void> {
    const { interactive, requestLog, recovery, system, table, tools } = this.#options;
    try {
      const task = table.all().find(({ record }) => record.identity === id);
      if (task) return await recovery.recover(task);
      const suspended = await requestLog.suspendedCall(id);
      // Its client has returned in the meantime.
      if (!suspended || interactive.has(id) || requestLog.isLeaving(id) || requestLog.isConsumed(id)) return;
      const { call, recorded } = suspended;
      const tool = isObject(call) ? call.tool : undefined;
      if (!isCall(call) || typeof tool !== 'string') throw new Error('expected a stored call');
      const refused = (outcome: Outcome): void => {
        if (!outcome.ok) system.incident(`a suspended call of tool "${tool}"`, new Error(outcome.error.message));
      };
      tools.send({ type: 'request', request: replayRequest({ tool, session: undefined }, call, recorded, refused) });
    } catch (error) {
      system.incident('continuing a suspended call after its delay', error);
    }
  }
}
