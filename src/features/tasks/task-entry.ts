/** The entry of a task in its table: its record, its quotas, the run of its handler, its notifications, and its end. */
import type { Actor, ActorSystem } from '../../core/kernel/actor.ts';
import type { Timer } from '../../core/kernel/clock.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import type { Reservation } from '../../core/kernel/quota.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { Outcome, TaskState } from '../../core/messages/results.ts';
import type { SubscriptionsMail } from '../../core/messages/subscription-messages.ts';
import { ErrorCode } from '../../core/protocol/errors.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import type { TaskStatus } from '../../core/protocol/task-params.ts';
import type { TaskMail } from './task-messages.ts';
import type { TaskRecord, TaskRecords } from './task-records.ts';
import type { TaskSnapshot } from './task-snapshot.ts';

/** The services that all tasks of a server share. */
export interface TaskServices {
  readonly system: ActorSystem;
  readonly limits: Limits;
  /** The durable tasks; undefined if tasks end with the process. */
  readonly records: TaskRecords | undefined;
  /** Runs calls again; undefined without a durable store, and until the tasks are restored. */
  readonly recovery: { recover(entry: TaskEntry): Promise<void> } | undefined;
  /** Receives the changes of tasks. */
  readonly subscriptions: Mailbox<SubscriptionsMail>;
}

/** The actor of a task, with its current state. */
export interface RunningTask extends Actor<TaskMail> {
  /** The state that clients may see: without changes that are not yet durable. */
  look(): TaskState;
  /** The replies by the names of the handler's questions. */
  replies(): Readonly<Record<string, unknown>>;
  /** Stops persisting the task: it was deleted, or another process continues it. */
  leave(why: Error): void;
  /** The same, without a last write. */
  discard(why: Error): void;
}

/** The status of a task when its process ended. */
export type StatusAtCrash = 'working' | 'input_required';

/** The quotas that a task holds: until it is deleted, and as long as its handler runs. */
export interface TaskReservation {
  readonly task: Reservation;
  readonly bytes: Reservation;
}

/** Bytes of an ended task, without its result. Measured with Node 20. */
const ENDED_TASK_BYTES = 14_000;

export class TaskEntry {
  readonly record: TaskRecord;
  /** The session that created it, if connected. It receives status notifications. */
  session: ClientFacts['session'];
  /** Its status at the restore; undefined if its call had ended. */
  statusAtCrash: StatusAtCrash | undefined;
  /** Its handler has not ended. */
  running = false;
  readonly #services: TaskServices;
  readonly #reservation: TaskReservation;
  /** The status in its last notification. */
  #notified: TaskStatus;
  #forgotten = false;
  #task: RunningTask | undefined;
  #expiry: Timer | undefined;

  /** @param was the stored state; undefined for a new task */
  constructor(
    record: TaskRecord,
    was: TaskSnapshot | undefined,
    reservation: TaskReservation,
    session: ClientFacts['session'],
    services: TaskServices,
  ) {
    this.record = record;
    this.session = session;
    this.statusAtCrash = was?.status === 'working' || was?.status === 'input_required' ? was.status : undefined;
    this.#notified = was?.status ?? 'working';
    this.#reservation = reservation;
    this.#services = services;
  }

  /** Sets its actor, and the timer of its end. */
  begin(task: RunningTask, expiry: Timer): void {
    this.#task = task;
    this.#expiry = expiry;
  }

  get task(): RunningTask {
    if (!this.#task) throw new Error('expected a task that has begun');
    return this.#task;
  }

  get system(): ActorSystem {
    return this.#services.system;
  }

  get pollMs(): number {
    return this.#services.limits.taskPollMs;
  }

  /** True if its states are persisted. Clients then see no newer state than the last durable one. */
  get durable(): boolean {
    return this.#services.records !== undefined;
  }

  /** Resolves when the snapshot is durable. */
  save(snapshot: TaskSnapshot): Promise<void> {
    const { records } = this.#services;
    if (!records) throw new Error('expected a durable store');
    return records.save(this.record, snapshot);
  }

  /** Notifies subscriptions of a new visible state, and the session that created the task of a new status. */
  changed(look: TaskState): void {
    const { subscriptions } = this.#services;
    subscriptions.send({ type: 'task changed', task: look });
    const { mailbox: session } = this.session ?? {};
    if (look.status !== this.#notified && session)
      subscriptions.send({ type: 'session changed', session, change: { type: 'task changed', task: look } });
    this.#notified = look.status;
  }

  /** Runs the call again: its handler ended with an earlier process, and an answer has arrived. */
  recover(): void {
    void this.#services.recovery?.recover(this);
  }

  /**
   * Counts additional bytes that its client makes it hold.
   *
   * @returns the exceeded limit if there is no room
   */
  reserve(bytes: number): string | undefined {
    const { bytes: reserved } = this.#reservation;
    return reserved.resize(reserved.amount + bytes)?.message;
  }

  /**
   * Counts the result in place of the call.
   *
   * @returns the outcome to store: the result, or an error if there is no room for it
   */
  reserveResult(outcome: Outcome): Outcome {
    const { bytes } = this.#reservation;
    const excess = bytes.resize(ENDED_TASK_BYTES + heapBytes(outcome));
    if (!excess) return outcome;
    const { owner, tool } = this.record;
    this.system.log('warning', `dropped the result of a task of tool "${tool}": ${excess.message}`, {
      event: 'client',
      element: `tool ${tool}`,
      principal: owner,
    });
    bytes.resize(ENDED_TASK_BYTES, 'forced');
    return {
      ok: false,
      error: {
        code: ErrorCode.Overloaded,
        message: `the call has ended, but there is no room for its result: ${excess.message}`,
      },
    };
  }

  /** Its handler has ended, possibly long after the task. */
  handlerEnded(): void {
    if (!this.running) return;
    this.running = false;
    if (this.#forgotten) this.#end('its handler has ended');
  }

  /** Deletes the task. A handler that continues keeps its reservation. */
  forget(why: string): void {
    this.#forgotten = true;
    this.task.leave(new Error(why));
    this.#services.records?.forget(this.record);
    this.task.mailbox.send({ type: 'cancel', reason: why });
    if (!this.running) this.#end(why);
  }

  /**
   * Another process continues the task: cancels it here.
   *
   * @param flush false: its newest state must not be written
   */
  move(flush: boolean): void {
    const reason = 'another node continues this task';
    this.#expiry?.cancel();
    this.#forgotten = true;
    if (!flush) this.task.discard(new Error(reason));
    this.task.leave(new Error(reason));
    this.task.mailbox.send({ type: 'cancel', reason });
    if (!this.running) this.#end(reason);
  }

  /** The server stops: cancels the task. With a durable store, another process continues it. */
  stop(reason: string): void {
    this.#expiry?.cancel();
    if (this.durable) this.task.leave(new Error(reason));
    this.task.mailbox.send({ type: 'cancel', reason });
  }

  #end(why: string): void {
    release(this.#reservation);
    this.task.stop(why);
  }
}

export function release({ task, bytes }: TaskReservation): void {
  task.release();
  bytes.release();
}
