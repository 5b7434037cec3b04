/** Recovers tasks whose handlers ended with their process: runs their calls again with the recorded replies and steps. */

import type { ActorSystem } from '../actor/actor-system.ts';
import type { InteractiveRequests } from '../input/interactive-requests.ts';
import type { RequestLog } from '../input/request-log.ts';
import type { HandlerRun } from '../messages/input-messages.ts';
import type { RequestTarget } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import type { Outcome } from '../messages/results.ts';
import { isProtocolError, toWireError } from '../protocol/errors.ts';
import { replayRequest } from './replayed-request.ts';
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
  /** Receives the requests that run calls again. */
  readonly tools: RequestTarget;
  readonly system: ActorSystem;
}

export class TaskRecovery {
  readonly #options: TaskRecoveryOptions;
  readonly #recovering = new WeakMap<RequestView, { readonly left: Interrupted; readonly stood: StatusAtCrash }>();

  constructor(options: TaskRecoveryOptions) {
    this.#options = options;
  }

  /** Runs the call of a task again, once. */
  async recover(left: Interrupted): Promise<void> {
    const { asks, records, ledger, tools, system } = this.#options;
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
      this.#recovering.set(request, { left, stood });
      tools.send({ type: 'request', request });
    } catch (error) {
      const named = isProtocolError(error) ? '' : system.incident('running a task again after a restart', error);
      done({ ok: false, error: toWireError(error, named) });
    }
  }

  /** The status at the crash of the recovered task whose call a request runs; undefined for any other request. */
  statusOf(request: RequestView): StatusAtCrash | undefined {
    return this.#recovering.get(request)?.stood;
  }

  /** Connects the run of a recovered call with its task. */
  attach(request: RequestView, run: HandlerRun): void {
    const { asks } = this.#options;
    const recovering = this.#recovering.get(request);
    if (!recovering) return;
    const { task } = recovering.left;
    const conversation = asks.interact(request, run);
    asks.tasked(conversation);
    recovering.left.running = true;
    task.mailbox.send({ type: 'revived', conversation });
    conversation.send({ type: 'detach', task: task.mailbox });
  }
}
