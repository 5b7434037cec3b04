/**
 * The actor of one task: a call that outlives its request. Authorized clients read it, answer it, wait for it and cancel it,
 * while its handler runs behind its interactive request.
 */
import { type TaskEvent, taskMachine } from '../../../machines/task.ts';
import { type Behaviour, spawn } from '../../core/kernel/actor.ts';
import { isoOf } from '../../core/kernel/clock.ts';
import { counted } from '../../core/kernel/inspection/display-names.ts';
import type { Charted, Facts, Waits } from '../../core/kernel/inspection/records.ts';
import { step } from '../../core/kernel/step.ts';
import type { InputRequest, Reply } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { EMPTY, type Outcome, type TaskState } from '../../core/messages/results.ts';
import { ErrorCode, toWireError, wireError } from '../../core/protocol/errors.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import { misrouted, respond } from '../../core/requests/active-request.ts';
import type { InteractiveRequestMail } from '../asking/input-messages.ts';
import type { RunningTask, TaskEntry } from './task-entry.ts';
import { TaskInputs } from './task-inputs.ts';
import type { TaskMail } from './task-messages.ts';
import type { OneTask } from './task-methods.ts';
import { TaskPersistence, taskAddress } from './task-persistence.ts';
import type { TaskSnapshot } from './task-snapshot.ts';
import { TaskWaiters } from './task-waiters.ts';

/** The initial snapshot, shared by all because snapshots are immutable. */
const INITIAL = taskMachine.initial;

/** The abort reason of the handler's signal. */
class TaskCancelled extends Error {
  override readonly name = 'AbortError';
}

/**
 * Creates the actor of a task.
 *
 * @param was the stored state; undefined for a new task
 * @param interactiveRequest the one that asks the handler's questions; undefined while no handler runs
 */
export function spawnTask(
  entry: TaskEntry,
  was: TaskSnapshot | undefined,
  interactiveRequest: Mailbox<InteractiveRequestMail> | undefined,
): RunningTask {
  const task = new Task(entry, was, interactiveRequest);
  const { id, tool } = entry.record;
  const identity = { kind: 'task', address: taskAddress(id), ...(tool === '' ? {} : { label: tool }) } as const;
  const actor = spawn<TaskMail>(identity, entry.system, (self) => task.at(self));
  const stop = (why: string): void => {
    task.leave(new Error(why));
    actor.stop(why);
  };
  return {
    mailbox: actor.mailbox,
    stop,
    leave: (why) => task.leave(why),
    discard: (why) => task.discard(why),
    look: () => task.look(),
    replies: () => task.replies,
  };
}

/** Mail that a task ignores after its end. */
const OF_WORK: readonly TaskMail['type'][] = ['asked', 'dropped', 'replied', 'progressed', 'cancel'];

class Task implements Behaviour<TaskMail> {
  readonly #entry: TaskEntry;
  #self: Mailbox<TaskMail> | undefined;
  /** Released when the handler ends, so that a stored task does not retain its call. */
  #interactiveRequest: Mailbox<InteractiveRequestMail> | undefined;
  readonly #questions: TaskInputs;
  readonly #waiters: TaskWaiters;
  readonly #createdAt: string;
  readonly #persistence: TaskPersistence;
  /** The replies by the names of the handler's questions. */
  #replies: Record<string, unknown>;
  #updatedAt: string;
  #snapshot = INITIAL;
  #message: string | undefined;
  #outcome: Outcome | undefined;

  constructor(
    entry: TaskEntry,
    was: TaskSnapshot | undefined,
    interactiveRequest: Mailbox<InteractiveRequestMail> | undefined,
  ) {
    const { record, system } = entry;
    this.#entry = entry;
    this.#interactiveRequest = interactiveRequest;
    this.#questions = new TaskInputs(record.id, was?.questions);
    this.#waiters = new TaskWaiters(this.#questions, record.ttlMs);
    this.#replies = { ...was?.replies };
    this.#createdAt = was?.createdAt ?? isoOf(system.clock.date());
    this.#updatedAt = was?.updatedAt ?? this.#createdAt;
    if (was) this.#snapshot = taskMachine.at(was.status);
    this.#message = was?.message;
    this.#outcome = was?.outcome;
    this.#persistence = new TaskPersistence(entry);
    this.#persistence.begins(this.#now());
  }

  get replies(): Readonly<Record<string, unknown>> {
    return this.#replies;
  }

  /** Stops persisting the task. */
  leave(why: Error): void {
    this.#persistence.end(why);
  }

  /** Stops persisting the task, and writes nothing more. */
  discard(why: Error): void {
    this.#persistence.discard(why);
  }

  /** Sets its own mailbox. */
  at(self: Mailbox<TaskMail>): this {
    this.#self = self;
    this.#questions.from = self;
    return this;
  }

  state(): string {
    return counted(this.#snapshot.path, this.#questions.size);
  }

  chart(): Charted {
    return this.#snapshot.charted();
  }

  facts(): Facts {
    return { ...this.#now(), 'kept as': this.#persistence.durable?.status };
  }

  waits(): readonly Waits[] {
    if (this.#ended) return [];
    const {
      record: { ttlMs },
      system: { clock },
    } = this.#entry;
    const until = clock.now() + Date.parse(this.#createdAt) + ttlMs - clock.date();
    return this.#questions.waits({ until, lasts: ttlMs });
  }

  look(): TaskState {
    return this.#persistence.durable ?? this.#now();
  }

  #now(): TaskState {
    const {
      pollMs,
      record: { id, ttlMs },
    } = this.#entry;
    return {
      id,
      status: this.#snapshot.path,
      message: this.#message,
      createdAt: this.#createdAt,
      updatedAt: this.#updatedAt,
      ttlMs,
      pollMs,
      inputs: this.#questions.inputs(),
      outcome: this.#outcome,
    };
  }

  receive(mail: TaskMail): void {
    if (this.#ended && OF_WORK.includes(mail.type)) return;
    switch (mail.type) {
      case 'request':
        return this.#serve(mail.request);
      case 'created':
        return respond(mail.request, { ok: true, result: { kind: 'task created', task: this.look() } });
      case 'revived':
        this.#interactiveRequest = mail.interactiveRequest;
        return;
      case 'asked':
        return this.#ask(mail.key, mail.request);
      case 'dropped':
        this.#questions.drop(mail.keys, 'the call continued without an answer');
        return this.#closed();
      case 'replied':
        if (this.#questions.awaits(mail)) this.#replied(mail.key, this.#fitting(mail.reply));
        return;
      case 'progressed':
        this.#message = mail.message;
        return this.#changed();
      case 'waiter aborted':
        return this.#waiters.aborted(mail.request);
      case 'cancel':
        return this.#cancel(mail.reason);
      case 'done':
        this.#interactiveRequest = undefined;
        this.#done(mail.outcome);
        return this.#entry.handlerEnded();
    }
  }

  get #ended(): boolean {
    return this.#snapshot.status === 'done';
  }

  #serve(request: RequestView): void {
    // Its client may have left while this actor was busy.
    if (request.settled) return;
    const { operation } = request;
    switch (operation.method) {
      case 'tasks/get':
        return respond(request, this.#looked());
      case 'tasks/cancel':
        return this.#cancelFor(request);
      case 'tasks/update': {
        const full = this.#ended ? undefined : this.#entry.reserve(request.bytes);
        if (full !== undefined)
          return respond(request, {
            ok: false,
            error: wireError(ErrorCode.Overloaded, `no room for the answers: ${full}`),
          });
        this.#update(operation);
        return this.#persistence.settle(request, () => EMPTY);
      }
      case 'tasks/result':
        if (this.#ended) return this.#persistence.settle(request, () => this.#result());
        return this.#waiters.add(request, () => this.#self?.send({ type: 'waiter aborted', request }));
      default:
        throw misrouted(request, 'a task');
    }
  }

  #looked(): Outcome {
    return { ok: true, result: { kind: 'task', task: this.look() } };
  }

  /**
   * The extension acknowledges every cancellation; 2025-11-25 returns the task, or rejects the cancellation of an ended one
   * ("Task Cancellation").
   */
  #cancelFor(request: RequestView): void {
    const acknowledges = request.client.dialect.tasks === 'extension';
    if (this.#ended && !acknowledges) {
      const why = `params.taskId: this task has already ended (${this.#snapshot.path}) and cannot be cancelled`;
      return respond(request, { ok: false, error: { code: ErrorCode.InvalidParams, message: why } });
    }
    this.#cancel('the client cancelled it');
    this.#persistence.settle(request, () => (acknowledges ? EMPTY : this.#looked()));
  }

  /** An unknown key is ignored; questions without an answer stay open (ext-tasks, "Task Update Requests"). */
  #update({ responses }: Extract<OneTask, { method: 'tasks/update' }>): void {
    for (const [key, result] of Object.entries(responses)) this.#replied(key, { ok: true, result });
  }

  #ask(name: string, request: InputRequest): void {
    this.#questions.add(name, request);
    delete this.#replies[name];
    this.#step({ type: 'ask' });
    this.#waiters.sendToSession();
  }

  /** Returns the reply of a session's client, or an error if there is no room for it. */
  #fitting(reply: Reply): Reply {
    const full = reply.ok ? this.#entry.reserve(heapBytes(reply.result)) : undefined;
    return full === undefined
      ? reply
      : { ok: false, error: wireError(ErrorCode.Overloaded, `no room for the answer: ${full}`) };
  }

  #replied(key: string, reply: Reply): void {
    const name = this.#questions.take(key);
    if (name === undefined) return;
    if (reply.ok) this.#replies[name] = reply.result;
    this.#closed();
    if (this.#interactiveRequest) this.#interactiveRequest.send({ type: 'replied', key: name, reply });
    else this.#entry.recover();
  }

  #closed(): void {
    if (this.#questions.size === 0) this.#step({ type: 'answered' });
    else this.#changed();
  }

  #cancel(reason: string): void {
    if (this.#ended) return;
    this.#questions.clear(reason);
    this.#message = reason;
    this.#end({ type: 'cancel' });
    this.#interactiveRequest?.send({ type: 'aborted', reason: new TaskCancelled(reason) });
  }

  #done(outcome: Outcome): void {
    if (this.#ended) {
      if (!this.#outcome) this.#entry.reserveResult(EMPTY);
      return;
    }
    this.#questions.clear('the task has ended');
    // The replies are no longer needed, because no handler runs again.
    this.#replies = {};
    const kept = this.#entry.reserveResult(outcome);
    this.#outcome = kept;
    // The progress message is no longer relevant.
    this.#message = kept.ok ? undefined : kept.error.message;
    this.#end({ type: kept.ok ? 'complete' : 'fail' });
  }

  #end(event: TaskEvent): void {
    this.#step(event);
    for (const request of this.#waiters.take()) this.#persistence.settle(request, () => this.#result());
  }

  /** Returns exactly what the call itself would have returned (2025-11-25 tasks, "Result Retrieval"). */
  #result(): Outcome {
    const outcome = this.#outcome;
    if (!outcome) {
      const why = `this task was cancelled and has no result: ${this.#message ?? 'no reason was given'}`;
      return { ok: false, error: { code: ErrorCode.InvalidRequest, message: why } };
    }
    if (!outcome.ok) return outcome;
    return { ok: true, result: { kind: 'task result', id: this.#entry.record.id, result: outcome.result } };
  }

  #step(event: TaskEvent): void {
    const { record, system } = this.#entry;
    const recorder = { inspection: system.inspection, actor: taskAddress(record.id) };
    this.#snapshot = step(this.#snapshot, event, recorder) ?? this.#snapshot;
    this.#changed();
  }

  #changed(): void {
    this.#updatedAt = isoOf(this.#entry.system.clock.date());
    const more = () => ({ questions: this.#questions.snapshot(), replies: { ...this.#replies } });
    this.#persistence.changed(this.#now(), more);
  }

  crashed(mail: TaskMail, error: unknown): void {
    const { record, system } = this.#entry;
    const incident = system.incident(taskAddress(record.id), error);
    if (mail.type === 'request' || mail.type === 'created')
      respond(mail.request, { ok: false, error: toWireError(error, incident) });
    // Its place in the quota must be freed.
    if (mail.type === 'done') this.#entry.handlerEnded();
  }
}
