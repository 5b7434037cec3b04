/** Recovers tasks whose handlers ended with their process: runs their calls again with the recorded replies and steps. */

import type { ActorSystem } from '../actor/actor-system.ts';
import type { ToolImplementation } from '../executors/execution.ts';
import type { Context, RequestContext } from '../input/context.ts';
import type { InteractiveRequests } from '../input/interactive-requests.ts';
import type { RequestLog } from '../input/request-log.ts';
import type { RequestMail } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { Outcome } from '../messages/results.ts';
import { isProtocolError, toWireError } from '../protocol/errors.ts';
import type { Tool } from '../protocol/types.ts';
import { checkRerun, replayRequest } from './replayed-request.ts';
import type { RunningTask } from './task.ts';
import { expiryOf, type TaskRecord, type TaskRecords } from './task-records.ts';

/** The status of a task when its process ended. */
export type StatusAtCrash = 'working' | 'input_required';

/** A stored task whose handler did not end. */
export interface Interrupted {
  readonly task: RunningTask;
  readonly record: TaskRecord;
  /** Its status at the restore; undefined if its call had ended. */
  stood: StatusAtCrash | undefined;
  /** Its handler has not ended. */
  running: boolean;
}

export interface TaskRecoveryOptions {
  readonly records: TaskRecords;
  readonly ledger: RequestLog;
  readonly asks: InteractiveRequests;
  /** Routes the request that runs the call. */
  route(mail: RequestMail): void;
  readonly system: ActorSystem;
}

export class TaskRecovery {
  readonly #options: TaskRecoveryOptions;
  readonly #reviving = new WeakMap<RequestView, { readonly left: Interrupted; readonly stood: StatusAtCrash }>();

  constructor(options: TaskRecoveryOptions) {
    this.#options = options;
  }

  /** Runs the call of a task again, once. */
  async revive(left: Interrupted): Promise<void> {
    const { asks, records, ledger, route, system } = this.#options;
    const { task, record, stood } = left;
    if (stood === undefined || left.running) return;
    left.stood = undefined;
    const done = (outcome: Outcome): void => task.mailbox.send({ type: 'done', outcome });
    try {
      const call = await records.call(record);
      const steps = await ledger.steps(record.identity);
      const place = await ledger.place(record.identity);
      if (asks.leaving) return;
      ledger.lasts(record.identity, expiryOf(record));
      const recorded = { id: record.identity, round: record.round, replies: task.replies(), steps, place };
      const request = replayRequest(record, call, recorded, done);
      this.#reviving.set(request, { left, stood });
      route({ type: 'request', request });
    } catch (error) {
      const named = isProtocolError(error) ? '' : system.incident('running a task again after a restart', error);
      done({ ok: false, error: toWireError(error, named) });
    }
  }

  /** Whether a request runs the call of a recovered task. */
  has(request: RequestView): boolean {
    return this.#reviving.has(request);
  }

  /**
   * Runs it.
   *
   * @throws {ProtocolError} if it must not run twice
   */
  run<R>(
    request: RequestView,
    implementation: ToolImplementation,
    tool: Tool,
    contextOf: () => RequestContext,
    execute: (ctx: Context) => R | Promise<R>,
  ): R | Promise<R> {
    const { asks } = this.#options;
    const reviving = this.#reviving.get(request);
    if (reviving) checkRerun(reviving.stood, request.recorded, implementation, tool);
    const ctx = contextOf();
    if (reviving) {
      const { task } = reviving.left;
      const conversation = asks.interact(request, ctx);
      asks.tasked(conversation);
      reviving.left.running = true;
      task.mailbox.send({ type: 'revived', conversation });
      conversation.send({ type: 'detach', task: task.mailbox });
    }
    return execute(ctx);
  }
}
