/**
 * Runs a request whose handler needs input from the client. Legacy sessions are asked over the stream; modern clients get
 * `input_required` and retry. The handler runs once and is suspended in between.
 */
import { initialTransition } from 'xstate';
import { type RequestEvent, requestMachine } from '../../machines/request.ts';
import { type Actor, type Behaviour, spawn } from '../actor/actor.ts';
import { counted, factsOf, nameOfOperation } from '../inspection/display-names.ts';
import type { Charted, Facts, Waits } from '../inspection/records.ts';
import { step } from '../inspection/stepping.ts';
import type { ActiveRequest } from '../messages/active-request.ts';
import type { InteractiveRequestMail, Question, Reply } from '../messages/input-messages.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Outcome } from '../messages/results.ts';
import type { TaskMail } from '../messages/task-messages.ts';
import { ErrorCode, toWireError, wireError } from '../protocol/errors.ts';
import { respond } from '../requests/respond.ts';
import { type PendingInput, refuseInput } from './input-request.ts';
import { PendingInputs } from './input-requests.ts';
import type { InteractiveRequestOptions } from './interactive-request-options.ts';
import { RecordedReplies } from './recorded-replies.ts';
import { retainedSize } from './request-memory.ts';

/** The initial snapshot, shared by all because snapshots are immutable. */
const INITIAL = initialTransition(requestMachine)[0];

export function spawnInteractiveRequest(options: InteractiveRequestOptions): Actor<InteractiveRequestMail> {
  return spawn(
    {
      kind: 'request',
      address: `request/${options.id.slice(0, 8)}`,
      parent: options.request.requests.address,
      label: nameOfOperation(options.request.operation),
    },
    options.system,
    (self) => new Conversation(options, self),
  );
}

class Conversation implements Behaviour<InteractiveRequestMail> {
  readonly #options: InteractiveRequestOptions;
  readonly #self: Mailbox<InteractiveRequestMail>;
  readonly #open: PendingInputs;
  readonly #replies: RecordedReplies;
  #snapshot = INITIAL;
  #request: ActiveRequest;
  #round: number;
  #waiting = false;
  /** The result of a handler that ended while no request was waiting. */
  #outcome: Outcome | undefined;
  /** Set at the end: makes the error for later questions. Most calls ask none, and an error costs 10 µs. */
  #over: (() => Error) | undefined;
  /** The task that the request has become, if it has. */
  #task: Mailbox<TaskMail> | undefined;

  constructor(options: InteractiveRequestOptions, self: Mailbox<InteractiveRequestMail>) {
    this.#options = options;
    this.#self = self;
    this.#request = options.request;
    this.#round = options.recorded?.round ?? 0;
    this.#replies = new RecordedReplies(options.recorded?.replies ?? {}, options.memory);
    this.#open = new PendingInputs(options, self.address, () => this.#request.client);
    options.request.signal.addEventListener('abort', () => this.#aborted(options.request), { once: true });
  }

  state(): string {
    return counted(this.#snapshot.value, this.#open.size);
  }

  chart(): Charted {
    return { machine: requestMachine, snapshot: this.#snapshot };
  }

  facts(): Facts {
    return { ...factsOf(this.#request), round: this.#round };
  }

  waits(): readonly Waits[] {
    return this.#open.waits();
  }

  receive(mail: InteractiveRequestMail): void {
    if (this.#over) return this.#late(mail, this.#over);
    switch (mail.type) {
      case 'ask':
        return this.#ask(mail.questions);
      case 'put':
        this.#waiting = false;
        return this.#park();
      case 'replied':
        return this.#replied(mail.key, mail.reply);
      case 'resumed':
        return this.#resume(mail.request, mail.responses);
      case 'dropped':
        return this.#drop(mail.keys, mail.reason);
      case 'detach':
        return this.#detach(mail.task);
      case 'progressed':
        return this.#task?.send(mail);
      case 'aborted':
        return this.#fail({ type: 'cancel' }, mail.reason);
      case 'expired':
        return this.#fail({ type: 'expire' }, mail.reason);
      case 'done':
        return this.#done(mail.outcome);
      case 'kept':
        return this.#kept(mail);
    }
  }

  /** Handles mail after the end: the handler may still run. It can ask nothing more, and its end is still counted. */
  #late(mail: InteractiveRequestMail, why: () => Error): void {
    if (mail.type === 'ask') refuseInput(mail.questions, why(), this.#options.system.clock);
    if (mail.type === 'detach') this.#detach(mail.task);
    if (mail.type === 'done') this.#answer(mail.outcome);
  }

  #answer(outcome: Outcome): void {
    if (this.#task) this.#task.send({ type: 'done', outcome });
    else respond(this.#request, outcome);
    this.#options.gone();
  }

  #ask(questions: readonly Question[]): void {
    this.#step({ type: 'ask' });
    for (const question of questions) {
      const { key } = question;
      const given = this.#replies.ask(key);
      if (given !== undefined) {
        question.reply({ ok: true, result: given });
        continue;
      }
      const open = this.#open.add(question);
      if (!open) continue;
      if (this.#task) this.#askByTask(this.#task, key, open);
      else if (!question.model) open.putTo(this.#request, (reply) => this.#self.send({ type: 'replied', key, reply }));
    }
    if (this.#open.size === 0) return this.#step({ type: 'answered' });
    // A task waits as long as it lives.
    if (this.#task) return;
    if (!this.#open.streaming) return this.#soon();
    // The user of a session gets the full time from each question on.
    this.#open.allow(this.#request, () => this.#self.send({ type: 'expired', reason: this.#options.expired() }));
  }

  /** Answers the current request with the task that it becomes. The task asks the questions that are open and not yet sent. */
  #detach(task: Mailbox<TaskMail>): void {
    this.#task = task;
    for (const [key, open] of this.#open) this.#askByTask(task, key, open);
    task.send({ type: 'created', request: this.#request });
  }

  /** A task ends once, with the result of its call, so it cannot ask a model. */
  #askByTask(task: Mailbox<TaskMail>, key: string, { question }: PendingInput): void {
    if (!question.model) return task.send({ type: 'asked', key, request: question.request });
    this.#open.fail([key], question.model.otherwise);
  }

  /** Collects the other questions that the handler asks in the same turn. */
  #soon(): void {
    if (this.#waiting) return;
    this.#waiting = true;
    this.#options.system.clock.soon(() => this.#self.send({ type: 'put' }));
  }

  /**
   * Answers the request with the open questions and waits for the retry (2026-07-28 MRTR, "Basic Workflow"). The model is
   * asked last, when no question to the client is open.
   */
  #park(): void {
    if (this.#open.size === 0 || this.#request.settled || this.#open.streaming) return;
    this.#round += 1;
    const open = this.#open.questions;
    const byClient = open.filter(({ model }) => !model);
    const request = this.#request;
    if (byClient.length > 0) return this.#input(byClient, request);
    const result = this.#options.askModel(this.#round, open, request);
    respond(request, { ok: true, result });
  }

  #input(questions: readonly Question[], request: ActiveRequest): void {
    const requests = Object.fromEntries(questions.map(({ key, request: asked }) => [key, asked]));
    const state = this.#options.park(this.#round, this.#replies.all, request);
    const outcome: Outcome = { ok: true, result: { kind: 'input', requests, state } };
    this.#answerOnce(this.#options.keep(this.#round - 1, outcome, false), request, outcome);
  }

  /** Answers a request once its answer is durable. */
  #answerOnce(kept: Promise<void> | undefined, request: ActiveRequest, outcome: Outcome): void {
    if (!kept) return respond(request, outcome);
    const tell = (error?: unknown): void => this.#self.send({ type: 'kept', request, outcome, error });
    kept.then(() => tell(), tell);
  }

  /** Handles a failed commit. The client does not receive the answer; it may send the same request again and finds everything unchanged. */
  #kept({ request, outcome, error }: Extract<InteractiveRequestMail, { type: 'kept' }>): void {
    const ends = outcome === this.#outcome;
    if (error === undefined && ends) return this.#finish(outcome);
    if (error === undefined) return respond(request, outcome);
    // The client has not received these questions.
    if (!ends) this.#round -= 1;
    this.#options.parkAgain(this.#round, request);
    const incident = this.#options.system.incident(this.#self.address, error);
    respond(request, { ok: false, error: toWireError(error, incident) });
  }

  #resume(request: ActiveRequest, responses: Readonly<Record<string, unknown>>): void {
    this.#options.unpark();
    this.#request = request;
    request.conversation = this.#self;
    if (this.#outcome) return this.#done(this.#outcome);
    request.signal.addEventListener('abort', () => this.#aborted(request), { once: true });
    this.#options.carrier.carryOn(request);
    for (const [key, result] of Object.entries(responses)) this.#replied(key, { ok: true, result });
    for (const [key, why] of this.#open.unaskable(request.client)) this.#drop([key], why);
    // Questions that are still open are asked again (2026-07-28 MRTR, "Error Handling").
    if (this.#open.size > 0) this.#soon();
  }

  /** A reply to an unknown question is ignored (2026-07-28 MRTR, "Error Handling"). */
  #replied(key: string, reply: Reply): void {
    const open = this.#open.take(key);
    if (!open) return;
    // A task has counted it.
    const full = reply.ok ? this.#replies.add(key, reply.result, this.#task && 'counted') : undefined;
    this.#closed();
    if (full === undefined) return open.reply(reply);
    open.reply({ ok: false, error: wireError(ErrorCode.Overloaded, `the answer does not fit: ${full}`) });
  }

  /** Its handler no longer waits for these questions. */
  #drop(keys: readonly string[], reason: Error): void {
    this.#task?.send({ type: 'dropped', keys });
    this.#open.fail(keys, reason);
    this.#closed();
  }

  /** Continues after a question was closed, once no question is open or only such as are asked together. */
  #closed(): void {
    if (this.#open.streaming) return;
    this.#open.allowed();
    if (this.#open.size === 0) this.#step({ type: 'answered' });
    else if (!this.#task) this.#soon();
  }

  #aborted({ signal }: ActiveRequest): void {
    const reason: unknown = signal.reason;
    this.#self.send({ type: 'aborted', reason: reason instanceof Error ? reason : new Error(String(reason)) });
  }

  /** Rejects all questions. The handler then ends in its own time. */
  #fail(event: RequestEvent, reason: Error): void {
    // The client of a session still waits for the result of the handler.
    const goesOn = event.type === 'expire' && !this.#request.settled;
    this.#step(goesOn ? { type: 'answered' } : event);
    this.#open.failAll(reason);
    this.#open.allowed();
    this.#options.unpark();
    if (goesOn) return;
    const { request } = this.#options;
    this.#end(() => reason);
    if (!request.signal.aborted) request.abort(reason);
    if (this.#outcome) return this.#options.gone();
    // Counts against `maxRunning` until the handler returns, although no response will be sent.
    if (this.#request.settled && !this.#task) this.#request.requests.send({ type: 'runs on', request: this.#request });
  }

  #done(outcome: Outcome): void {
    // The handler continued without its client's answer. Its result waits for the client.
    if (this.#request.settled && !this.#task) {
      this.#outcome = outcome;
      this.#options.memory.hold(retainedSize(outcome).bytes, 'forced');
      return;
    }
    const kept = this.#task ? undefined : this.#options.keep(this.#round, outcome, true);
    if (!kept) return this.#finish(outcome);
    this.#outcome = outcome;
    this.#answerOnce(kept, this.#request, outcome);
  }

  #finish(outcome: Outcome): void {
    this.#step({ type: outcome.ok ? 'succeed' : 'fail' });
    this.#end(this.#options.expired);
    this.#answer(outcome);
  }

  #end(why: () => Error): void {
    if (this.#over) return;
    this.#over = why;
    // A handler may end without waiting for an answer to its questions.
    this.#open.withdrawAll('the call has ended');
    this.#open.allowed();
    this.#options.unpark();
    this.#options.over();
  }

  #step(event: RequestEvent): void {
    this.#snapshot = step(this.#options.system.inspection, this.#self.address, requestMachine, this.#snapshot, event);
    if (event.type === 'ask' || event.type === 'answered') this.#options.carrier.waits(event.type === 'ask');
  }

  crashed(mail: InteractiveRequestMail, error: unknown): void {
    const incident = this.#options.system.incident(`request/${this.#options.id.slice(0, 8)}`, error);
    const reason = new Error(`the server could not continue this request (incident ${incident})`);
    if (mail.type === 'ask') for (const question of mail.questions) question.fail(reason);
    if (!this.#over) this.#fail({ type: 'cancel' }, reason);
  }
}
