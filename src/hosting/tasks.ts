/** The tasks of a server: which call becomes one, whose it is, how many there may be, and when one is forgotten. */
import { nanoid } from 'nanoid';
import type { ActorHost } from '../actors/actor.ts';
import { type RunningTask, spawnTask } from '../actors/task.ts';
import type { Timer } from '../clock.ts';
import type { Context, ContextHost, RequestContext } from '../execution/context.ts';
import type { TaskSupport } from '../execution/execution.ts';
import { isThenable } from '../execution/thenable.ts';
import type { Outcome } from '../messages/answers.ts';
import type { Carrier } from '../messages/asking.ts';
import type { Client } from '../messages/client.ts';
import type { InFlight } from '../messages/in-flight.ts';
import type { RequestMail } from '../messages/requests.ts';
import type { TaskState } from '../messages/tasks.ts';
import type { Limits } from '../options.ts';
import { ErrorCode, isProtocolError, ProtocolError, toWireError } from '../protocol/errors.ts';
import { declaresTasks, readTtl, tasksNotDeclared, unknownTask } from '../protocol/tasks.ts';
import type { Asks } from './asks.ts';
import { ANONYMOUS } from './directory.ts';

export interface TasksOptions extends ActorHost {
  readonly limits: Limits;
  readonly asks: Asks;
  /** Whether clients are told of tasks. */
  offered(): boolean;
  /** A task looks otherwise than before. */
  changed(task: TaskState): void;
  incident(where: string, error: unknown): string;
}

/** How a call is run: as a request, as a task from the start, or as a request that may become one. */
export type Way =
  | { readonly as: 'request' }
  | { readonly as: 'task'; readonly ttlMs: number }
  | { readonly as: 'request, then task' };

const REQUEST: Way = { as: 'request' };
const LATER: Way = { as: 'request, then task' };

interface Kept {
  readonly task: RunningTask;
  readonly owner: string;
  /** Its place in lists. */
  readonly ordinal: number;
  readonly timer: Timer;
  /** Its handler has not ended. */
  running: boolean;
  forgotten: boolean;
}

/** Characters of a task's id: 132 random bits, because where nobody is known the id is the key to the task. */
const TASK_ID_LENGTH = 22;

export class Tasks {
  readonly #options: TasksOptions;
  readonly #kept = new Map<string, Kept>();
  /** The same by owner, the oldest first. */
  readonly #of = new Map<string, Map<string, Kept>>();
  /** Handlers that run on although their tasks are forgotten: they keep their places. */
  #orphans = 0;
  #created = 0;

  constructor(options: TasksOptions) {
    this.#options = options;
  }

  /** How a call of a tool is run. @throws {ProtocolError} for one that the tool, or its client, cannot have */
  wayOf({ operation, client }: InFlight, support: TaskSupport, tool: string): Way {
    const asked = operation.method === 'tools/call' ? operation.task : undefined;
    switch (client.dialect.tasks) {
      case 'none':
        if (support !== 'required') return REQUEST;
        throw unfit(`tool "${tool}" runs as a task only, which revision ${client.dialect.revision} does not have`);
      case 'asked':
        // Where no tool can be a task, the parameter is read over (2025-11-25 tasks, "Task Support and Handling").
        if (!this.#options.offered()) return REQUEST;
        if (asked === undefined && support === 'required')
          throw unfit(`tool "${tool}" runs as a task only: call it with params.task`);
        if (asked === undefined) return REQUEST;
        if (support === 'never') throw unfit(`tool "${tool}" cannot be a task: call it without params.task`);
        return {
          as: 'task',
          ttlMs: Math.min(readTtl(asked) ?? Number.POSITIVE_INFINITY, this.#options.limits.taskTtlMs),
        };
      case 'extension': {
        if (support === 'never') return REQUEST;
        const declared = declaresTasks(client.capabilities);
        if (support === 'allowed') return declared ? LATER : REQUEST;
        if (!declared) throw tasksNotDeclared(`tool "${tool}"`);
        return { as: 'task', ttlMs: this.#options.limits.taskTtlMs };
      }
    }
  }

  /** Runs a call that is a task, or may become one. @throws {ProtocolError} when there are too many */
  run<R>(
    request: InFlight,
    way: Exclude<Way, { readonly as: 'request' }>,
    lent: ContextHost,
    contextOf: (lent: ContextHost) => RequestContext,
    execute: (ctx: Context) => R | Promise<R>,
  ): R | Promise<R> {
    if (way.as === 'task') {
      this.#makeRoom(request.client);
      const ctx = contextOf(lent);
      this.#create(request, ctx, way.ttlMs);
      return execute(ctx);
    }
    const { clock, limits } = this.#options;
    let timer: Timer | undefined;
    const stop = (): void => timer?.cancel();
    // What its client takes to answer does not count: each request that carries the call is given the whole time.
    const watch = (current: InFlight): void => {
      stop();
      timer = clock.after(limits.taskAfterMs, () => this.#outlasted(current, ctx));
    };
    const ctx = contextOf({ ...lent, carried: watch });
    watch(request);
    let running: R | Promise<R>;
    try {
      running = execute(ctx);
    } catch (error) {
      stop();
      throw error;
    }
    if (isThenable(running)) Promise.resolve(running).then(stop, stop);
    else stop();
    return running;
  }

  /** Serves a request about tasks. */
  readonly serve = (mail: RequestMail): void => {
    const { request } = mail;
    try {
      this.#serve(mail);
    } catch (error) {
      const incident = isProtocolError(error) ? '' : this.#options.incident(request.operation.method, error);
      answer(request, { ok: false, error: toWireError(error, incident) });
    }
  };

  /** What a client sees of a task; undefined where there is none, or it is another's. */
  look(client: Client, id: string): TaskState | undefined {
    return this.#own(client, id)?.task.look();
  }

  /** The server stops: whatever still works is cancelled. */
  stop(reason: string): void {
    for (const { task, timer } of [...this.#kept.values()]) {
      timer.cancel();
      task.mailbox.send({ type: 'cancel', reason });
    }
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
        return answer(request, this.#list(client, operation.cursor));
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
      case 'tasks/result': {
        const kept = this.#own(client, operation.taskId);
        if (!kept) throw unknownTask(operation.taskId);
        return kept.task.mailbox.send(mail);
      }
      default:
        throw new Error(`tasks do not serve ${operation.method}: the methods table and the directory disagree`);
    }
  }

  #own(client: Client, id: string): Kept | undefined {
    const kept = this.#kept.get(id);
    return kept?.owner === ownerOf(client) ? kept : undefined;
  }

  #list(client: Client, cursor: string | undefined): Outcome {
    const { pageSize } = this.#options.limits;
    const after = cursor === undefined ? 0 : this.#readCursor(cursor);
    const tasks: TaskState[] = [];
    let last = after;
    for (const { task, ordinal } of this.#of.get(ownerOf(client))?.values() ?? []) {
      if (ordinal <= after) continue;
      if (tasks.length === pageSize)
        return { ok: true, result: { kind: 'tasks', tasks, nextCursor: `t${last.toString(36)}` } };
      tasks.push(task.look());
      last = ordinal;
    }
    return { ok: true, result: { kind: 'tasks', tasks, nextCursor: undefined } };
  }

  #readCursor(cursor: string): number {
    const [, digits] = /^t([0-9a-z]{1,10})$/.exec(cursor) ?? [];
    const ordinal = digits === undefined ? Number.NaN : Number.parseInt(digits, 36);
    if (ordinal <= this.#created) return ordinal;
    throw new ProtocolError(
      ErrorCode.InvalidParams,
      'params.cursor: this server gave no such cursor: list again from the start, without one',
    );
  }

  /** The call has run longer than it may as a request. Where there is no room for a task, it stays one. */
  #outlasted(request: InFlight, carrier: Carrier): void {
    const { client } = request;
    if (request.settled || !declaresTasks(client.capabilities) || this.#full(client) !== undefined) return;
    this.#create(request, carrier, this.#options.limits.taskTtlMs);
  }

  /** Why there is no room for another task. */
  #full(client: Client): string | undefined {
    const { maxTasks, maxTasksPerPrincipal } = this.#options.limits;
    if (this.#kept.size + this.#orphans >= maxTasks)
      return `this server keeps ${maxTasks} tasks, which is its limit: try again later (the server's option is limits.maxTasks)`;
    const own = this.#of.get(ownerOf(client))?.size ?? 0;
    if (client.principal !== ANONYMOUS && own >= maxTasksPerPrincipal)
      return `this principal has ${own} tasks, which is its limit: try again when some are forgotten (the server's option is limits.maxTasksPerPrincipal)`;
    return undefined;
  }

  #makeRoom(client: Client): void {
    const full = this.#full(client);
    if (full !== undefined) throw new ProtocolError(ErrorCode.Overloaded, full);
  }

  /** It can be looked at before its client learns of it (ext-tasks, "Task Creation"). */
  #create(request: InFlight, carrier: Carrier, ttlMs: number): void {
    const { clock, inspection, resting, limits, asks, changed, incident } = this.#options;
    const id = nanoid(TASK_ID_LENGTH);
    const owner = ownerOf(request.client);
    const conversation = asks.converse(request, carrier);
    const host = { clock, inspection, resting, incident };
    const look = { changed: () => changed(task.look()), handlerEnded: () => this.#handlerEnded(kept) };
    const task = spawnTask({ ...host, ...look, id, ttlMs, pollMs: limits.taskPollMs }, conversation);
    this.#created += 1;
    const timer = clock.after(ttlMs, () => this.#forget(id, kept));
    const kept: Kept = { task, owner, ordinal: this.#created, timer, running: true, forgotten: false };
    this.#kept.set(id, kept);
    const own = this.#of.get(owner) ?? new Map<string, Kept>();
    this.#of.set(owner, own.set(id, kept));
    conversation.send({ type: 'detach', task: task.mailbox });
  }

  #forget(id: string, kept: Kept): void {
    kept.forgotten = true;
    this.#kept.delete(id);
    const own = this.#of.get(kept.owner);
    own?.delete(id);
    if (own?.size === 0) this.#of.delete(kept.owner);
    if (kept.running) this.#orphans += 1;
    kept.task.mailbox.send({ type: 'cancel', reason: 'its time to live is over' });
    if (!kept.running) kept.task.stop('its time to live is over');
  }

  #handlerEnded(kept: Kept): void {
    if (!kept.running) return;
    kept.running = false;
    if (!kept.forgotten) return;
    this.#orphans -= 1;
    kept.task.stop('its handler has ended');
  }
}

/** Who a task belongs to: its principal; where nobody is known the session, and without one whoever has the id (2025-11-25 tasks, "Task Isolation and Access Control"). */
function ownerOf({ principal, session }: Client): string {
  return session && principal === ANONYMOUS ? `session ${session.id}` : `principal ${principal}`;
}

function unfit(why: string): ProtocolError {
  return new ProtocolError(ErrorCode.MethodNotFound, why);
}

function answer(request: InFlight, outcome: Outcome): void {
  request.requests.send({ type: 'answer', request, outcome });
}
