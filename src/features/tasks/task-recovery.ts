/** Recovers tasks whose handlers ended with their process: runs their calls again with the recorded replies and steps. */

import { type ActorSystem, wireErrorOf } from '../../core/kernel/actor-system.ts';
import type { RequestTarget } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome } from '../../core/messages/results.ts';
import type { HandlerRun } from '../asking/input-messages.ts';
import type { InteractiveRequests } from '../asking/interactive-requests.ts';
import type { RequestLog } from '../asking/request-log.ts';
import { replayRequest } from './replayed-request.ts';
import type { StatusAtCrash, TaskEntry } from './task-entry.ts';
import { expiryOf, type TaskRecords } from './task-records.ts';

interface TaskRecoveryOptions {
  readonly records: TaskRecords;
  readonly requestLog: RequestLog;
  readonly interactive: InteractiveRequests;
  /** Receives the requests that run calls again. */
  readonly tools: RequestTarget;
  readonly system: ActorSystem;
}

export class TaskRecovery {
  readonly #options: TaskRecoveryOptions;
  readonly #recovering = new WeakMap<
    RequestView,
    { readonly entry: TaskEntry; readonly statusAtCrash: StatusAtCrash }
  >();

  constructor(options: TaskRecoveryOptions) {
    this.#options = options;
  }

  /** Runs the call of a task again, once. */
  async recover(entry: TaskEntry): Promise<void> {
    const { records, requestLog, tools, system } = this.#options;
    const { task, record, statusAtCrash } = entry;
    if (statusAtCrash === undefined || entry.running) return;
    entry.statusAtCrash = undefined;
    const done = (outcome: Outcome): void => task.mailbox.send({ type: 'done', outcome });
    try {
      const call = await records.call(record);
      const steps = await requestLog.steps(record.identity);
      const checkpoint = await requestLog.checkpoint(record.identity);
      if (requestLog.isLeaving(record.id)) return;
      requestLog.retain(record.identity, expiryOf(record));
      const replies = { ...call.replies, ...task.replies() };
      const recorded = { id: record.identity, round: record.round, replies, steps, checkpoint };
      const request = replayRequest(record, call, recorded, done);
      this.#recovering.set(request, { entry, statusAtCrash });
      tools.send({ type: 'request', request });
    } catch (error) {
      done({ ok: false, error: wireErrorOf(system, 'running a task again after a restart', error) });
    }
  }

  /** The status at the crash of the recovered task whose call a request runs; undefined for any other request. */
  statusOf(request: RequestView): StatusAtCrash | undefined {
    return this.#recovering.get(request)?.statusAtCrash;
  }

  /** Connects the run of a recovered call with its task. */
  attach(request: RequestView, run: HandlerRun): void {
    const { interactive } = this.#options;
    const recovering = this.#recovering.get(request);
    if (!recovering) return;
    const { entry } = recovering;
    const interactiveRequest = interactive.interact(request, run);
    interactive.tasked(interactiveRequest);
    entry.running = true;
    entry.task.mailbox.send({ type: 'revived', interactiveRequest });
    interactiveRequest.send({ type: 'detach', task: entry.task.mailbox });
  }
}
