/** The tasks of a server: decides which call becomes one, checks ownership and quotas, and deletes expired tasks. */

import type { ToolCall, ToolExecution, ToolImplementation } from '../../core/execution/execution.ts';
import { type ContextHost, RequestContext } from '../../core/execution/request-context.ts';
import type { CallGate, CallOutcome, Stages } from '../../core/execution/stages.ts';

import { type ActorSystem, wireErrorOf } from '../../core/kernel/actor-system.ts';
import { afterAny, eachInSlices, type Timer } from '../../core/kernel/clock.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import type { Excess } from '../../core/kernel/quota.ts';
import type { CellHolder } from '../../core/messages/cell-holder.ts';
import type { ClientFacts } from '../../core/messages/client-facts.ts';
import type { RecordedReply } from '../../core/messages/client-input.ts';
import type { ForgottenPrincipal } from '../../core/messages/forgotten-principal.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { Capabilities } from '../../core/messages/offered-capabilities.ts';
import type { RequestMail, RequestTarget } from '../../core/messages/request-messages.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { SubscriptionsMail } from '../../core/messages/subscription-messages.ts';
import { cellIn, isOfCells } from '../../core/protocol/cell.ts';
import type { WireError } from '../../core/protocol/errors.ts';
import { ErrorCode, ProtocolError, toWireError } from '../../core/protocol/errors.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import { isThenable } from '../../core/protocol/json.ts';
import { damagedTask, declaresTasks, tasksNotDeclared, unknownTask } from '../../core/protocol/task-params.ts';
import type { Tool } from '../../core/protocol/types.ts';
import { respond } from '../../core/requests/active-request.ts';
import { StoreError } from '../../core/store/store.ts';
import type { HandlerRun, InteractiveRequestMail } from '../asking/input-messages.ts';
import type { InteractiveRequests } from '../asking/interactive-requests.ts';
import type { RequestLog } from '../asking/request-log.ts';
import { type CallMode, callModeOf, unfit } from './call-mode.ts';
import { DelayedCalls } from './delayed-calls.ts';
import { spawnTask } from './task.actor.ts';
import type { StatusAtCrash } from './task-entry.ts';
import { release, TaskEntry, type TaskReservation, type TaskServices } from './task-entry.ts';
import { sharedTaskPage, taskPage } from './task-pages.ts';
import { actorOfTask, expiryOf, firstOf, type TaskRecord, type TaskRecords } from './task-records.ts';
import { TaskRecovery } from './task-recovery.ts';
import type { TaskSnapshot } from './task-snapshot.ts';
import { OF_PRINCIPAL, ownerOf, type TaskTable } from './task-table.ts';

interface TasksOptions {
  readonly system: ActorSystem;
  readonly limits: Limits;
  readonly interactive: InteractiveRequests;
  readonly requestLog: RequestLog;
  /** The durable tasks; undefined if tasks end with the process. */
  readonly records: TaskRecords | undefined;
  /** True if other nodes have tasks in the same store. */
  readonly shared: boolean;
  /** The table of all tasks; only this service changes it. */
  readonly table: TaskTable;
  readonly capabilities: Pick<Capabilities, 'offered'>;
  readonly stages: Pick<Stages, 'fill'>;
  /** Runs the handlers. */
  execution(): ToolExecution;
  readonly contexts: ContextHost;
  /** Receives the changes of tasks. */
  readonly subscriptions: Mailbox<SubscriptionsMail>;
}

/** The context of a call that becomes a task if it runs too long for a request. */
class PromotableContext extends RequestContext {
  readonly #tasks: Tasks;
  #current: RequestView;
  #timer: Timer;
  #became = false;

  constructor(request: RequestView, host: ContextHost, tasks: Tasks, implementation: ToolImplementation) {
    super(request, host, implementation, 'may become a task');
    this.#tasks = tasks;
    this.#current = request;
    this.#timer = tasks.promoteLater(() => this.becomeTask());
  }

  /** The time that its client takes to answer does not count: each request of the call gets the full time. */
  override continueFor(request: RequestView): void {
    super.continueFor(request);
    this.#current = request;
    this.#timer.cancel();
    this.#timer = this.#tasks.promoteLater(() => this.becomeTask());
  }

  override get isTask(): boolean {
    return this.#became;
  }

  override becomeTask(): boolean {
    this.#became ||= this.#tasks.promote(this.#current, this, this.lastsUntil);
    if (this.#became) this.#timer.cancel();
    return this.#became;
  }

  /** The handler has ended. */
  end(): void {
    this.#timer.cancel();
  }
}

export class Tasks implements RequestTarget, CellHolder {
  readonly #options: TasksOptions;
  readonly #table: TaskTable;
  readonly #services: TaskServices & { recovery: TaskRecovery | undefined };
  #delayed: DelayedCalls | undefined;
  #started = (): void => {};
  readonly #serves = new Promise<void>((resolve) => {
    this.#started = resolve;
  });

  constructor(options: TasksOptions) {
    this.#options = options;
    this.#table = options.table;
    this.#services = { ...options, recovery: undefined };
  }

  /** Runs calls again after a restart; undefined without a durable store. */
  get recovery(): TaskRecovery | undefined {
    return this.#services.recovery;
  }

  /** Decides from now on which calls of tools run as tasks. */
  begin(): void {
    this.#options.stages.fill('mode', this.#gate);
  }

  /** @throws {ProtocolError} for a call that may not run again, or for a mode that the tool or its client does not support */
  readonly #gate: CallGate = ({ request, call }, next) => {
    const { limits, capabilities, contexts, execution } = this.#options;
    const { implementation, tool } = call;
    const status = this.recovery?.statusOf(request);
    if (status) {
      checkRerun(status, request.recorded, implementation, tool);
      const ctx = new RequestContext(request, contexts, implementation, 'task');
      this.recovery?.attach(request, ctx);
      return execution().execute(call, ctx);
    }
    // No mode runs the call again.
    if (request.recorded?.id !== undefined && implementation.rerun === false) return next();
    const mode = callModeOf(request, {
      support: implementation.task,
      tool: tool.name,
      taskTtlMs: limits.taskTtlMs,
      offered: capabilities.offered.tasks !== undefined,
    });
    return mode.as === 'request' ? next() : this.#run(request, mode, call);
  };

  /** The server serves, with all of its tools: those of mounts are read from the store, which opens before them. */
  started(): void {
    this.#started();
  }

  /**
   * Runs calls again that other processes have begun, if the store is durable.
   *
   * @param tools receives the requests that run calls again
   */
  recoverBy(tools: RequestTarget): void {
    const { records } = this.#options;
    if (!records) return;
    const recovery = new TaskRecovery({ ...this.#options, records, tools });
    this.#services.recovery = recovery;
    this.#delayed = new DelayedCalls({ ...this.#options, table: this.#table, recovery, tools, serves: this.#serves });
    this.begin();
  }

  /**
   * Takes up stored tasks. Working ones run again once the server serves, and all other parts of it have taken up these cells;
   * waiting ones after their answer.
   */
  async take(cells: readonly number[] | undefined): Promise<void> {
    const { records, system } = this.#options;
    if (!records) return;
    const working: TaskEntry[] = [];
    for (const { record, task } of await records.take(cells)) {
      const entry = this.#add(record, undefined, task, this.#table.take(record, heapBytes(task)), undefined);
      if (entry.statusAtCrash === 'working') working.push(entry);
    }
    await this.#delayed?.take(cells);
    const recover = async (): Promise<void> => {
      for (const entry of working) if (this.#table.get(entry.record.id) === entry) await this.recovery?.recover(entry);
    };
    void this.#serves.then(() => system.clock.soon(recover));
  }

  /** Lets go of tasks. Their handlers are aborted, and run again in the process that takes them up. */
  drop(cells: ReadonlySet<number>, flush: boolean): Promise<void> {
    this.#delayed?.drop(cells);
    for (const entry of this.#table.all()) {
      if (!isOfCells(cells, entry.record.id)) continue;
      this.#table.remove(entry);
      entry.move(flush);
    }
    return Promise.resolve();
  }

  *working(): Iterable<number> {
    for (const { running, record, task } of this.#table.all()) {
      const cell = running && task.look().status === 'working' ? cellIn(record.id) : undefined;
      if (cell !== undefined) yield cell;
    }
  }

  /**
   * Runs a call that is a task or may become one.
   *
   * @throws {ProtocolError} if there are too many tasks
   */
  #run(request: RequestView, mode: Exclude<CallMode, { readonly as: 'request' }>, call: ToolCall): CallOutcome {
    const { contexts } = this.#options;
    const execution = this.#options.execution();
    if (mode.as === 'task') {
      this.#makeRoom(request);
      const ctx = new RequestContext(request, contexts, call.implementation, 'task');
      const created = this.#create(request, ctx, mode.ttlMs);
      return created ? created.then(() => execution.execute(call, ctx)) : execution.execute(call, ctx);
    }
    const ctx = new PromotableContext(request, contexts, this, call.implementation);
    let running: CallOutcome;
    try {
      running = execution.execute(call, ctx);
    } catch (error) {
      ctx.end();
      throw error;
    }
    if (isThenable(running)) {
      const end = (): void => ctx.end();
      Promise.resolve(running).then(end, end);
    } else ctx.end();
    return running;
  }

  /** Turns a call into a task if the request that carries it now is still running after `limits.taskAfterMs`. */
  promoteLater(promote: () => void): Timer {
    const { limits, system } = this.#options;
    return system.clock.after(limits.taskAfterMs, promote);
  }

  /** Serves a request about tasks. */
  send(mail: RequestMail): void {
    const { request } = mail;
    try {
      this.#serve(mail);
    } catch (error) {
      respond(request, { ok: false, error: wireErrorOf(this.#options.system, request.operation.method, error) });
    }
  }

  /** Cancels and removes the tasks of a principal, with the recorded steps of their calls. */
  forget({ principal, settling, ended }: ForgottenPrincipal): void {
    const { records } = this.#options;
    for (const entry of [...this.#table.of(OF_PRINCIPAL + principal)]) {
      ended('task', actorOfTask(entry.record.id));
      this.#table.remove(entry);
      entry.forget('the data of its principal is deleted');
      if (records) settling.push(records.erase(entry.record));
    }
  }

  /** The server stops: cancels all working tasks, in slices. */
  stop(reason: string): Promise<void> {
    this.#delayed?.stop();
    return eachInSlices(this.#options.system.clock, this.#table.all(), (entry) => entry.stop(reason));
  }

  #serve(mail: RequestMail): void {
    const { request } = mail;
    const { client, operation } = request;
    if (client.dialect.tasks === 'none')
      throw unfit(`${operation.method}: revision ${client.dialect.revision} has no tasks`);
    if (client.dialect.tasks === 'extension' && !declaresTasks(client.capabilities))
      throw tasksNotDeclared(operation.method);
    switch (operation.method) {
      case 'tasks/list':
        return this.#list(request, operation.cursor);
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
      case 'tasks/result': {
        const entry = this.#table.own(client, operation.taskId);
        if (!entry) throw this.#none(operation.taskId);
        if (entry.record.trace !== undefined) request.span?.link(entry.record.trace);
        return entry.task.mailbox.send(mail);
      }
      default:
        throw new Error(`no task handler for ${operation.method}, although the methods table routes it to tasks`);
    }
  }

  #none(id: string): ProtocolError {
    const damaged = this.#table.get(id) === undefined && this.#options.records?.isDamaged(id);
    return damaged ? damagedTask(id) : unknownTask(id);
  }

  /** Lists the tasks of a client, without those whose scopes it lacks. */
  #list(request: RequestView, cursor: string | undefined): void {
    const { limits, records, shared, system } = this.#options;
    const { client, auth } = request;
    const has = (scope: string): boolean => auth?.scopes.includes(scope) === true;
    const query = { owner: ownerOf(client), cursor, size: limits.pageSize, has };
    if (!records || !shared) return respond(request, taskPage(this.#table, query));
    sharedTaskPage({ table: this.#table, records, pollMs: limits.taskPollMs }, query).then(
      (outcome) => respond(request, outcome),
      (error: unknown) => respond(request, { ok: false, error: unlisted(error, system) }),
    );
  }

  /**
   * Turns a call into a task because it runs longer than a request may.
   *
   * @param until the time until which the task must live, if that is after its usual time to live
   * @returns false if the call stays a request: there is no room for a task, or its client takes none
   */
  promote(request: RequestView, carrier: HandlerRun, until: number): boolean {
    if (request.settled || !declaresTasks(request.client.capabilities) || this.#table.full(request)) return false;
    const { limits, system } = this.#options;
    const ttlMs = Math.max(limits.taskTtlMs, until - system.clock.date());
    this.#create(request, carrier, ttlMs)?.catch((error: unknown) => {
      if (!request.settled) system.incident('turning a call into a task; it stays a request', error);
    });
    return true;
  }

  #makeRoom(request: RequestView): void {
    const full = this.#table.full(request);
    if (!full) return;
    this.#options.system.metrics.refused(full.option);
    throw noRoom(full);
  }

  /**
   * Creates a task, which can be read before its client receives its id (ext-tasks, "Task Creation").
   *
   * @returns a promise that resolves when it is durable and rejects if there is no task; undefined without a durable store
   */
  #create(request: RequestView, carrier: HandlerRun, ttlMs: number): Promise<void> | undefined {
    const { system, limits, interactive, records, requestLog } = this.#options;
    const interactiveRequest = interactive.interact(request, carrier);
    const {
      id: identity,
      round,
      replies,
    } = interactive.identityOf(interactiveRequest) ?? { id: '', round: 0, replies: {} };
    this.#table.newest += 1;
    const record: TaskRecord = {
      // With its question, which has the steps of its call.
      id: system.ids.within(identity === '' ? request.client.session?.id : identity),
      tool: 'name' in request.operation ? request.operation.name : '',
      owner: ownerOf(request.client),
      session: request.client.session?.id,
      identity,
      round,
      ordinal: this.#table.newest,
      ttlMs,
      created: system.clock.date(),
      trace: request.span?.traceparent,
      needed: request.needed,
    };
    request.held?.release();
    const reservation = this.#table.take(record, request.bytes);
    const begin = (): void => {
      interactive.tasked(interactiveRequest);
      const entry = this.#add(record, interactiveRequest, undefined, reservation, request.client.session);
      entry.running = true;
      interactiveRequest.send({ type: 'detach', task: entry.task.mailbox });
    };
    if (!records) {
      begin();
      return undefined;
    }
    const first = firstOf(record.created);
    const look = { ...first, id: record.id, ttlMs, pollMs: limits.taskPollMs, inputs: {} };
    const expires = expiryOf(record);
    const more = requestLog.answered(
      identity,
      round,
      { ok: true, result: { kind: 'task created', task: look } },
      expires,
    );
    return records
      .create(record, first, { request, replies }, [...requestLog.retain(identity, expires), ...more])
      .then(() => {
        if (!request.settled) return begin();
        throw new ProtocolError(ErrorCode.InvalidRequest, 'the request ended before it became a task');
      })
      .catch((error: unknown) => {
        release(reservation);
        // The commit may have succeeded after all.
        records.forget(record);
        throw error;
      });
  }

  #add(
    record: TaskRecord,
    interactiveRequest: Mailbox<InteractiveRequestMail> | undefined,
    was: TaskSnapshot | undefined,
    reservation: TaskReservation,
    session: ClientFacts['session'],
  ): TaskEntry {
    const { clock } = this.#options.system;
    const entry = new TaskEntry(record, was, reservation, session, this.#services);
    const expiry = afterAny(clock, Math.max(0, expiryOf(record) - clock.date()), () => this.#expire(entry));
    entry.begin(spawnTask(entry, was, interactiveRequest), expiry);
    this.#table.add(entry);
    return entry;
  }

  #expire(entry: TaskEntry): void {
    this.#table.remove(entry);
    entry.forget('its time to live has passed');
  }
}

function noRoom({ message }: Excess): ProtocolError {
  return new ProtocolError(
    ErrorCode.Overloaded,
    `no task was created: ${message}. Try again when older tasks have expired`,
  );
}

/** The error for a list that the store cannot answer. */
function unlisted(error: unknown, system: ActorSystem): WireError {
  if (error instanceof StoreError && error.fault === 'busy')
    return toWireError(new ProtocolError(ErrorCode.Overloaded, `the tasks cannot be listed: ${error.message}`), '');
  return wireErrorOf(system, 'tasks/list', error);
}

/**
 * Decides whether a call may run again after its process ended. The progress of a working handler is unknown, so it runs
 * again only if that is known to be safe: its tool declares it, or it has recorded steps and was therefore written for it. A
 * statechart resumes from its checkpoint. A handler that waited for an answer may run again, because every handler that asks
 * must tolerate that.
 *
 * @throws {ProtocolError} if the call may not run again
 */
function checkRerun(
  status: StatusAtCrash,
  recorded: RecordedReply | undefined,
  { rerun }: ToolImplementation,
  { name, annotations = {} }: Tool,
): void {
  if (rerun === true) return;
  const { steps = {}, checkpoint } = recorded ?? {};
  const resumes = Object.keys(steps).length > 0 || checkpoint !== undefined;
  const harmless = annotations.readOnlyHint === true || annotations.idempotentHint === true || resumes;
  if (rerun === undefined && (status === 'input_required' || harmless)) return;
  throw new ProtocolError(
    ErrorCode.InternalError,
    `the process restarted while tool "${name}" ran this task, and the outcome is unknown. Find out what was done before you call it again`,
  );
}
