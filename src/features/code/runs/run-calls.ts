/** The calls of a run without an end: sends them, records what they begin, and waits for clients, people, tasks and times. */
import { CannotAsk } from '../../../core/execution/input-errors.ts';
import { requestContextOf } from '../../../core/execution/request-context.ts';
import { afterAny } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import type { Reply } from '../../../core/messages/client-input.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { Outcome } from '../../../core/messages/results.ts';
import { ErrorCode } from '../../../core/protocol/errors.ts';
import { isJsonObject, isObject, type JsonValue, messageOf, shortened } from '../../../core/protocol/json.ts';
import type { Operation } from '../../../core/protocol/operations.ts';
import { toText } from '../../../core/store/serialize.ts';
import { isRepeatable } from '../../durability/tool-hints.ts';
import type { CallableFunctions } from '../functions/code-functions.ts';
import type { ScriptCall, ScriptEnd, ScriptFault } from '../sandbox/script.ts';
import { type CallValue, type NamedCall, valueOfOutcome } from './call-value.ts';
import { hasEffect } from './effects.ts';
import { InnerCall } from './inner-call.ts';
import { approvalIn, type OpenCall, openCall, unknownOutcome } from './open-call.ts';
import type { RecordedCalls } from './recorded-calls.ts';
import { callingAuth, callingClient, callingOwner } from './run-caller.ts';
import type { RunClient } from './run-client.ts';
import type { RunEvent } from './run-journal.ts';
import type { CallMail, RunMail, ScriptRunOptions } from './run-messages.ts';
import { argumentsIn, isArguments, type RunReport } from './run-result.ts';

/** The run, as its calls need it. */
export interface RunOfCalls {
  /** Appends to the journal, and continues when it is durable. */
  append(events: readonly RunEvent[], mail: RunMail): void;
  /** The script learns the end of a call next. */
  ended(open: OpenCall, given: CallValue): void;
  /** A call has ended, or waits for something else now. */
  changed(): void;
  /** A call may last until this time, in milliseconds since 1970. */
  lasts(until: number): void;
  stop(why: Extract<ScriptEnd, { type: 'stopped' }>['why'], message: string): void;
  full(): void;
}

/** Milliseconds until functions that could not be listed are asked for again, and the number of times. */
const UNLISTED_MS = 1_000;
const MAX_UNLISTED = 60;

/** The statuses of calls that need no person, no task and no time. */
const RUNNING: ReadonlySet<OpenCall['status']> = new Set(['queued', 'storing', 'running']);
/** The states of approvals about which people may still decide. */
const WAITS: ReadonlySet<string> = new Set(['asked', 'partly approved']);

export class RunCalls {
  /** By number. */
  readonly open = new Map<number, OpenCall>();
  /** The calls without a result when the script ended. */
  readonly unfinished: RunReport['unfinished'][number][] = [];
  denials = 0;
  readonly #options: ScriptRunOptions;
  readonly #self: Mailbox<RunMail>;
  readonly #run: RunOfCalls;
  readonly #client: RunClient;
  readonly #recorded: RecordedCalls;
  /** The functions of the caller, while no request waits. */
  #functions: CallableFunctions | undefined;
  /** The list of functions that is on its way. */
  #listing: Promise<CallableFunctions> | undefined;

  constructor(
    options: ScriptRunOptions,
    self: Mailbox<RunMail>,
    run: RunOfCalls,
    client: RunClient,
    recorded: RecordedCalls,
  ) {
    this.#options = options;
    this.#self = self;
    this.#run = run;
    this.#client = client;
    this.#recorded = recorded;
  }

  /** The event by which a run begins to wait for its calls. */
  get wait(): 'call' | 'ask' | 'hold' | 'follow' | 'sleep' {
    const statuses = new Set([...this.open.values()].map(({ status }) => status));
    if ([...statuses].some((status) => RUNNING.has(status))) return 'call';
    if (statuses.has('asked') || statuses.has('unsigned')) return 'ask';
    return statuses.has('held') ? 'hold' : statuses.has('following') ? 'follow' : 'sleep';
  }

  receive(mail: CallMail): void {
    const open = this.open.get(mail.number);
    // It has ended.
    if (!open) return;
    switch (mail.type) {
      case 'start stored':
        return this.#send(open);
      case 'listed':
        this.#callTool(open, argumentsIn(open.call.arguments) ?? []);
        return this.#run.changed();
      case 'not listed':
        return this.#notListed(open, mail.error);
      case 'question stored':
        return this.#asks(open);
      case 'answers stored':
        return this.#continue(open, mail.responses);
      case 'wait stored':
        return this.#wait(open);
      case 'outcome':
        return this.#outcome(open, mail.attempt, mail.outcome);
      case 'replied':
        return this.#replied(open, mail.round, mail.replies);
      case 'unanswered':
        return this.#unanswered(open, mail);
      case 'decided':
        return this.#decided(open, mail.state);
      case 'poll':
        return this.#poll(open);
      case 'polled':
        return this.#polled(open, mail.outcome);
      case 'due':
        return this.#end(open, { value: '', json: undefined });
    }
  }

  /** Begins a call of the script, or continues that of an earlier process. */
  take(call: ScriptCall): void {
    const { core } = this.#options;
    const { number, name } = call;
    if (number > core.limits.codeCalls)
      return this.#run.stop(
        'calls',
        `it made more than ${core.limits.codeCalls} calls (the server's option is limits.codeCalls). Use a function that takes many items, or do the work in several scripts`,
      );
    const open = openCall(call, core.limits.taskPollMs);
    this.open.set(number, open);
    const args = argumentsIn(call.arguments);
    if (!args) return this.#fault(open, { message: `${name}: expected arguments that are JSON` });
    switch (name) {
      case 'sleep':
        return this.#sleep(open, args[0]);
      case 'progress':
        return this.#progress(open, args);
      case 'ask':
        return this.#askSelf(open, args);
      case 'resource':
        return this.#read(open, args[0]);
      default:
        return this.#callTool(open, args);
    }
  }

  // Calls of tools

  #callTool(open: OpenCall, args: readonly JsonValue[]): void {
    const { core, settings } = this.#options;
    const { of } = open;
    const functions = this.#client.request?.functions ?? this.#functions;
    if (!functions) return this.#list(open);
    const found = functions.find(of);
    if (!found) {
      const near = functions.near(of);
      const hint = near.length === 0 ? 'Find functions with search_functions' : `Did you mean ${near.join(' or ')}?`;
      return this.#fault(open, { message: `there is no function ${of}. ${hint}`, tool: of, carriedOut: false });
    }
    const [given = {}, ...more] = args;
    if (!isArguments(given) || more.length > 0)
      return this.#fault(open, {
        message: `${of}: expected one object with its arguments, such as ${of}({ … }). ${functions.declared(of) ?? ''}`,
        ...{ tool: of, carriedOut: false },
      });
    const element = core.elements.catalogues.tools.get(found.key);
    const effect = !element || hasEffect(element);
    if (effect && settings.effects === 'deny')
      return this.#fault(open, {
        message: `${of} may change something, and scripts of this server may not (its option is code.effects). Call it without a script`,
        ...{ tool: of, code: 'denied', carriedOut: false },
      });
    const operation: Operation = {
      ...{ method: 'tools/call', name: found.key, arguments: given, input: undefined, task: undefined },
    };
    const repeatable = !effect || (element !== undefined && isRepeatable(element)) || hasKey(element, given);
    const asTask = found.definition.execution?.taskSupport === 'required';
    Object.assign(open, { operation, effect, repeatable, asTask });
    this.#enter(open);
  }

  /** A run that continues without a request needs the functions of its caller first. */
  #list(open: OpenCall): void {
    const { number } = open.call;
    open.status = 'storing';
    this.#listing ??= this.#options.functions().finally(() => {
      this.#listing = undefined;
    });
    this.#listing.then(
      (found) => {
        this.#functions = found;
        this.#self.send({ type: 'listed', number });
      },
      (error: unknown) => this.#self.send({ type: 'not listed', number, error }),
    );
  }

  /** The lists of mounts may come later. */
  #notListed(open: OpenCall, error: unknown): void {
    const { clock, incident } = this.#options.core.system;
    const { number } = open.call;
    open.unlisted += 1;
    if (open.unlisted <= MAX_UNLISTED) {
      open.timer = clock.after(UNLISTED_MS, () => this.#self.send({ type: 'listed', number }));
      return;
    }
    const found = incident(this.#self.address, error);
    this.#run.stop(
      'engine',
      `the functions of its caller could not be listed (incident ${found} in the log of the server)`,
    );
  }

  /** Continues a call of an earlier process, or begins one. */
  #enter(open: OpenCall): void {
    const restored = this.#recorded.take(open.call.number);
    open.task = restored?.following?.task;
    // Its task has the questions, and the answers that it has got.
    if (open.task !== undefined) return this.#wait(open);
    if (restored?.asked) {
      const { round, requests, state } = restored.asked;
      Object.assign(open, { round, requests, requestState: state, status: 'storing' });
      return restored.answered ? this.#continue(open, restored.answered.responses) : this.#asks(open);
    }
    if (restored?.held) {
      Object.assign(open, { approval: restored.held.approval, text: restored.held.text });
      if (restored.resumed === undefined || open.repeatable) return this.#wait(open);
      return this.#lookAgain(open, restored.held.approval);
    }
    if (restored?.started && !open.repeatable) return this.#fault(open, unknownOutcome(open.of));
    this.#queue(open);
  }

  /** The call was about to be sent with an approval, which is used if it was. */
  #lookAgain(open: OpenCall, approval: string): void {
    open.status = 'storing';
    const { number } = open.call;
    const found = (state: string | undefined): void =>
      this.#self.send({ type: 'decided', number, state: state === 'approved' ? state : 'unknown' });
    this.#options.approvals.get(approval).then(
      (now) => found(now?.state),
      () => found(undefined),
    );
  }

  #queue(open: OpenCall): void {
    open.status = 'queued';
    const inFlight = [...this.open.values()].filter(({ status }) => status !== 'queued' && status !== 'unsigned');
    if (inFlight.length >= this.#options.core.limits.codeCallsInFlight) return;
    if (this.#isSignedOut()) {
      Object.assign(open, { status: 'unsigned', text: 'the sign-in of its caller has ended' });
      return;
    }
    if (!open.effect) return this.#send(open);
    this.#record(open, { type: 'started' }, 'start stored');
  }

  /** Records what a call begins to do or to wait for, and continues it then. */
  #record(
    open: OpenCall,
    what: BegunEvent,
    then: 'start stored' | 'question stored' | 'wait stored',
    status: 'storing' | 'sleeping' = 'storing',
  ): void {
    const { name, digest, call } = open;
    const { number } = call;
    open.status = status;
    this.#recorded.know(number, open);
    this.#run.append([{ ...what, number, name, digest }], { type: then, number });
  }

  /** Starts the calls that waited for their turn. */
  #next(): void {
    for (const open of this.open.values()) {
      if (open.status === 'queued') this.#queue(open);
      if (open.status === 'queued') return;
    }
  }

  #isSignedOut(): boolean {
    const expiresAt = this.#options.caller.auth?.expiresAt;
    return !this.#client.request && expiresAt !== undefined && expiresAt <= this.#date();
  }

  #send(open: OpenCall): void {
    if (open.operation) this.#attempt(open, open.operation);
  }

  #attempt(open: OpenCall, operation: Operation): void {
    const { number } = open.call;
    open.status = 'running';
    open.attempt += 1;
    const { attempt } = open;
    const inner = this.#inner(open, operation, (outcome) =>
      this.#self.send({ type: 'outcome', number, attempt, outcome }),
    );
    open.inner.push(inner);
    this.#run.changed();
    inner.start();
  }

  /** A request on behalf of a call. */
  #inner(open: OpenCall, operation: Operation, ended: (outcome: Outcome) => void): InnerCall {
    const { core, id, tool, caller } = this.#options;
    const { request } = this.#client;
    return new InnerCall({
      ...{ core, operation, auth: callingAuth(caller, request), label: open.of, ended },
      client: callingClient(caller, request, open.asTask),
      address: this.#self.address,
      owner: callingOwner(caller, request),
      via: { run: id, call: open.call.number, tool },
      traceparent: request && requestContextOf(request.ctx).current.span?.traceparent,
    });
  }

  #outcome(open: OpenCall, attempt: number, outcome: Outcome): void {
    if (open.attempt !== attempt) return;
    if (outcome.ok && outcome.result.kind === 'input') {
      const { requests, state } = outcome.result;
      open.requestState = state;
      return this.#question(open, requests);
    }
    if (outcome.ok && outcome.result.kind === 'task created') {
      const { id: task, pollMs } = outcome.result.task;
      Object.assign(open, { task, pollMs });
      return this.#record(open, { type: 'following', task }, 'wait stored');
    }
    const pending = approvalIn(outcome);
    if (pending && WAITS.has(pending.state)) {
      const { id: approval, text } = pending;
      Object.assign(open, { approval, text });
      return this.#record(open, { type: 'held', approval, text }, 'wait stored');
    }
    const isDenied = pending?.state === 'denied' || (!outcome.ok && outcome.error.code === ErrorCode.Forbidden);
    if (isDenied) this.denials += 1;
    this.#end(open, valueOfOutcome(this.#named(open), outcome));
    if (this.denials >= this.#options.core.limits.codeDenials)
      this.#run.stop('calls', `${this.denials} of its calls were denied. Do not call what is denied again`);
  }

  #named({ of, raw, call }: OpenCall): NamedCall {
    return { name: of, raw, number: call.number, declared: this.#client.request?.functions.declared(of) };
  }

  #fault(open: OpenCall, error: ScriptFault): void {
    this.#end(open, { error });
  }

  #end(open: OpenCall, given: CallValue): void {
    this.open.delete(open.call.number);
    open.timer?.cancel();
    open.waiting?.abort(new Error('the call has ended'));
    this.#options.counted('call', 'error' in given ? 'failed' : 'succeeded');
    if (!('error' in given) && given.json !== undefined && open.operation?.method === 'tools/call')
      this.#client.request?.functions.learn(open.of, given.json);
    this.#run.ended(open, given);
    this.#next();
    // After this turn's calls, so that all that end in it are delivered together.
    this.#run.changed();
  }

  // Helpers of scripts

  #sleep(open: OpenCall, ms: JsonValue | undefined): void {
    const { limits } = this.#options.core;
    if (typeof ms !== 'number' || !(ms >= 0) || ms > limits.codeSleepMs)
      return this.#fault(open, {
        message: `sleep: expected milliseconds from 0 to ${limits.codeSleepMs} (${durationOf(limits.codeSleepMs)}), got ${shortened(String(ms), 40)}`,
      });
    const restored = this.#recorded.take(open.call.number)?.sleeping;
    const due = restored?.due ?? this.#date() + Math.ceil(ms);
    open.due = due;
    this.#run.lasts(due + limits.codeOpenMs);
    if (!restored) return this.#record(open, { type: 'sleeping', due }, 'wait stored', 'sleeping');
    open.status = 'sleeping';
    this.#wait(open);
  }

  #progress(open: OpenCall, [done, total, message]: readonly JsonValue[]): void {
    try {
      const text = message === undefined || message === null ? undefined : shortened(String(message), 1_000);
      if (typeof done !== 'number') throw new TypeError('progress: expected a number for what is done');
      this.#client.progress(done, typeof total === 'number' ? total : undefined, text);
      this.#end(open, { value: '', json: undefined });
    } catch (error) {
      this.#fault(open, { message: messageOf(error) });
    }
  }

  /** A question of the script itself. */
  #askSelf(open: OpenCall, [message, schema]: readonly JsonValue[]): void {
    if (typeof message !== 'string' || message === '' || (schema !== undefined && !isJsonObject(schema)))
      return this.#fault(open, {
        message:
          'ask: expected a message and a JSON Schema of an object, such as ask("Which one?", { type: "object", properties: { name: { type: "string" } } })',
      });
    if (this.#recorded.look(open.call.number)?.asked) return this.#enter(open);
    const requestedSchema = schema ?? { type: 'object', properties: {} };
    this.#question(open, { ask: { method: 'elicitation/create', params: { message, requestedSchema } } });
  }

  #answerSelf(open: OpenCall, answer: unknown): void {
    const { action, content } = isObject(answer) ? answer : {};
    if (action === 'accept') return this.#end(open, { value: toText(content ?? {}), json: undefined });
    const what = action === 'decline' ? 'declined to answer' : 'did not answer';
    this.#fault(open, {
      message: `ask: the user ${what}`,
      code: action === 'decline' ? 'declined' : 'cancelled',
      carriedOut: false,
    });
  }

  #read(open: OpenCall, uri: JsonValue | undefined): void {
    if (typeof uri !== 'string')
      return this.#fault(open, {
        message: 'resource: expected the URI of a resource, such as resource("file:///a.txt")',
      });
    Object.assign(open, { operation: { method: 'resources/read', uri, input: undefined } satisfies Operation });
    this.#enter(open);
  }

  // Questions

  /** A call asks the client: also one that has answered the call before. */
  #question(open: OpenCall, requests: OpenCall['requests']): void {
    if (this.#options.journal.isFull(0)) return this.#run.full();
    const round = open.round + 1;
    Object.assign(open, { askedBy: undefined, waiting: undefined, round, requests });
    const state = open.requestState === undefined ? {} : { state: open.requestState };
    this.#record(open, { type: 'asked', round, requests, ...state }, 'question stored');
  }

  #asks(open: OpenCall): void {
    open.status = 'asked';
    this.#run.changed();
  }

  #replied(open: OpenCall, round: number, replies: Readonly<Record<string, Reply>>): void {
    if (open.round !== round || open.status !== 'asked') return;
    const responses: Record<string, unknown> = {};
    for (const [key, reply] of Object.entries(replies)) {
      if (!reply.ok) return this.#abandon(open, `${reply.error.message} (${reply.error.code})`);
      responses[key] = reply.result;
    }
    open.status = 'storing';
    const { number } = open.call;
    this.#run.append([{ type: 'answered', number, round, responses }], { type: 'answers stored', number, responses });
  }

  #unanswered(open: OpenCall, { round, by, error }: Extract<CallMail, { type: 'unanswered' }>): void {
    if (open.round !== round || open.status !== 'asked' || open.askedBy !== by) return;
    // The request has left, and its client may return.
    if (by !== this.#client.request || by.ctx.signal.aborted) return;
    // Another client of the caller may be able to show it.
    open.waiting = undefined;
    if (error instanceof CannotAsk) return this.#run.changed();
    this.#abandon(open, messageOf(error));
  }

  /** Ends a call that waits for an answer that will not come. */
  #abandon(open: OpenCall, why: string): void {
    const message = `the client did not answer a question: ${why}`;
    for (const inner of open.inner) inner.cancel(message);
    const hasBegun = open.requestState !== undefined || open.task !== undefined;
    const carriedOut = open.effect && hasBegun ? ('unknown' as const) : false;
    this.#fault(open, { message, tool: open.of, carriedOut });
  }

  /** Continues a call with the answers of the client. */
  #continue(open: OpenCall, responses: Readonly<Record<string, unknown>>): void {
    const { operation, requestState, task } = open;
    if (task !== undefined) {
      open.status = 'following';
      this.#lookAtTask(open, { method: 'tasks/update', taskId: task, responses });
      return this.#run.changed();
    }
    if (!operation) return this.#answerSelf(open, responses.ask);
    if ('input' in operation) this.#attempt(open, { ...operation, input: { responses, state: requestState } });
  }

  // Approvals, tasks and times

  #wait(open: OpenCall): void {
    const { number } = open.call;
    if (open.task !== undefined) {
      open.status = 'following';
      this.#watchTask(open, 0);
    } else if (open.due !== undefined) {
      const { clock } = this.#options.core.system;
      open.timer = afterAny(clock, Math.max(0, open.due - this.#date()), () =>
        this.#self.send({ type: 'due', number }),
      );
    } else if (open.approval !== undefined) {
      open.status = 'held';
      open.waiting = new AbortController();
      this.#options.approvals.wait(open.approval, open.waiting.signal).then(
        ({ state }) => this.#self.send({ type: 'decided', number, state }),
        () => this.#self.send({ type: 'decided', number, state: undefined }),
      );
    }
    this.#run.changed();
  }

  #decided(open: OpenCall, state: string | undefined): void {
    if (open.status !== 'held' && open.status !== 'storing') return;
    open.waiting = undefined;
    if (state === 'unknown') return this.#fault(open, unknownOutcome(open.of));
    // The call finds its approval, or its denial with the reason.
    if (state === 'approved' || state === 'denied')
      return this.#record(open, { type: 'started', approval: open.approval }, 'start stored');
    const why = state === undefined ? 'is gone' : `is ${state}`;
    this.#fault(open, {
      message: `${open.of} was not carried out: its approval ${why}. Call it again to ask again`,
      ...{ tool: open.of, carriedOut: false },
    });
  }

  #watchTask(open: OpenCall, ms: number): void {
    const { number } = open.call;
    open.timer?.cancel();
    open.timer = this.#options.core.system.clock.after(ms, () => this.#self.send({ type: 'poll', number }));
  }

  #poll(open: OpenCall): void {
    if (open.task === undefined || open.status !== 'following') return;
    // It looks again with the next sign-in.
    if (this.#isSignedOut()) return this.#watchTask(open, open.pollMs);
    this.#lookAtTask(open, { method: 'tasks/get', taskId: open.task });
  }

  #lookAtTask(open: OpenCall, operation: Operation): void {
    const { number } = open.call;
    this.#inner(open, operation, (outcome) => this.#self.send({ type: 'polled', number, outcome })).start();
  }

  #polled(open: OpenCall, outcome: Outcome): void {
    if (open.status !== 'following') return;
    if (!outcome.ok) return this.#end(open, valueOfOutcome(this.#named(open), outcome));
    // The answers were taken.
    if (outcome.result.kind !== 'task') return this.#watchTask(open, open.pollMs);
    const { task } = outcome.result;
    if (task.outcome) return this.#end(open, valueOfOutcome(this.#named(open), task.outcome));
    if (task.status === 'cancelled')
      return this.#fault(open, {
        message: `the task of ${open.of} was cancelled`,
        tool: open.of,
        carriedOut: 'unknown',
      });
    open.text = task.message ?? '';
    const isAsked = task.status === 'input_required' && Object.keys(task.inputs).length > 0;
    if (!isAsked) return this.#watchTask(open, open.pollMs);
    this.#question(open, task.inputs);
  }

  // The request that waits, and the end

  /** A request waits: its client is asked what is open, and calls that need a sign-in are sent. */
  attached(): void {
    for (const open of this.open.values()) {
      open.askedBy = undefined;
      if (open.status === 'unsigned') open.status = 'queued';
    }
    this.#next();
  }

  detached(): void {
    for (const open of this.open.values()) {
      open.askedBy = undefined;
      if (open.status === 'asked') open.waiting = undefined;
    }
    this.#functions = undefined;
  }

  /** The script has ended. */
  drop(isDropped: (status: OpenCall['status']) => boolean = () => true): void {
    for (const open of [...this.open.values()]) if (isDropped(open.status)) this.#drop(open);
  }

  #drop(open: OpenCall): void {
    this.open.delete(open.call.number);
    open.timer?.cancel();
    open.waiting?.abort(new Error('the script has ended'));
    for (const inner of open.inner) inner.cancel('the script that made this call has ended');
    if (open.approval !== undefined && open.status === 'held') this.#withdraw(open.approval);
    if (open.task !== undefined) this.#inner(open, { method: 'tasks/cancel', taskId: open.task }, () => {}).start();
    this.unfinished.push({ name: open.of, effect: open.effect && open.inner.length > 0 });
  }

  /** A call that waits for other people will not be made. */
  #withdraw(approval: string): void {
    const { approvals, caller } = this.#options;
    const by = { principal: caller.principal, reason: 'the script that made the call has ended' };
    // It may be decided meanwhile.
    approvals.revoke(approval, by).catch(() => {});
  }

  /** Leaves this process. The next one finds what waits for answers, and asks no question again. */
  letGo(reason: string): void {
    for (const open of this.open.values()) {
      open.timer?.cancel();
      if (open.status === 'held') open.waiting?.abort(new Error(reason));
      if (open.status === 'running') for (const inner of open.inner) inner.cancel(reason);
    }
  }

  #date(): number {
    return this.#options.core.system.clock.date();
  }
}

/** An event of a call that begins something, without the call. */
type BegunEvent = Without<Extract<RunEvent, { type: 'started' | 'asked' | 'held' | 'following' | 'sleeping' }>>;
type Without<Event> = Event extends unknown ? Omit<Event, 'number' | 'name' | 'digest'> : never;

/** Machines take a key by which an event happens once. */
function hasKey(
  element: { readonly access?: { readonly machine?: unknown } | undefined } | undefined,
  args: Readonly<Record<string, JsonValue>>,
): boolean {
  return element?.access?.machine !== undefined && typeof args.idempotencyKey === 'string';
}
