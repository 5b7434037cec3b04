/**
 * Runs a request whose handler needs input from the client. Legacy sessions are asked over the stream; modern clients get
 * `input_required` and retry. The handler runs once and is suspended in between. Governed by
 * `machines/interactive-request.ts`.
 */
import { type InteractiveRequestEvent, interactiveRequestMachine } from '../../../machines/interactive-request.ts';
import { Unanswered } from '../../core/execution/input-errors.ts';
import { type Behaviour, spawn } from '../../core/kernel/actor.ts';
import { counted, factsOf, nameOfOperation } from '../../core/kernel/inspection/display-names.ts';
import type { Charted, Facts, Waits } from '../../core/kernel/inspection/records.ts';
import { fieldsOf } from '../../core/kernel/operator-log.ts';
import { step } from '../../core/kernel/step.ts';
import type { Question, Reply } from '../../core/messages/client-input.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import type { Outcome } from '../../core/messages/results.ts';
import { ErrorCode, toWireError, wireError } from '../../core/protocol/errors.ts';
import { retainedSize } from '../../core/protocol/heap.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { Operation } from '../../core/protocol/operations.ts';
import { abortRequest, respond } from '../../core/requests/active-request.ts';
import type { CarryingMail, InteractiveRequestMail } from './input-messages.ts';
import { failQuestion, type PendingInput, refuseInput, replyTo } from './input-request.ts';
import { PendingInputs } from './input-requests.ts';
import { makeInteractive } from './interactive-mailbox.ts';
import type { InteractiveRequestEntry } from './interactive-request-entry.ts';

/** The initial snapshot, shared by all because snapshots are immutable. */
const INITIAL = interactiveRequestMachine.initial;

/** Starts to track the request of an entry. */
export function spawnInteractiveRequest(entry: InteractiveRequestEntry): void {
  const actor = spawn(
    {
      kind: 'request',
      address: `request/${entry.id.slice(0, 10)}`,
      parent: entry.request.requests.address,
      label: nameOfOperation(entry.request.operation),
    },
    entry.system,
    (self) => new InteractiveRequest(entry, self),
  );
  entry.begin(actor);
}

class InteractiveRequest implements Behaviour<InteractiveRequestMail> {
  readonly #entry: InteractiveRequestEntry;
  readonly #self: Mailbox<InteractiveRequestMail>;
  readonly #open: PendingInputs;
  #snapshot = INITIAL;
  #request: RequestView;
  #round: number;
  /** The outcome of a handler that has ended, until it is sent. */
  #outcome: Outcome | undefined;
  /** The reason why it ended without its handler. */
  #reason: Error | undefined;
  /** The task that the request has become. */
  #task: Mailbox<CarryingMail> | undefined;

  constructor(entry: InteractiveRequestEntry, self: Mailbox<InteractiveRequestMail>) {
    const { request } = entry;
    const { recorded } = request;
    this.#entry = entry;
    this.#self = self;
    this.#request = request;
    this.#round = entry.round;
    this.#open = new PendingInputs(entry, self.address, () => this.#request);
    if (recorded?.waits) this.#step({ type: 'restore' });
    request.signal.addEventListener('abort', () => this.#aborted(request), { once: true });
  }

  state(): string {
    return counted(this.#snapshot.path, this.#open.size);
  }

  chart(): Charted {
    return this.#snapshot.charted();
  }

  facts(): Facts {
    return { ...factsOf(this.#request), round: this.#round };
  }

  waits(): readonly Waits[] {
    return this.#open.waits();
  }

  receive(mail: InteractiveRequestMail): void {
    // Thousands of handlers may end in one turn, and the end of a task takes much longer than that of a request.
    if (mail.type === 'done' && this.#task) return this.#entry.endTaskSoon(mail.outcome);
    if (this.#snapshot.status === 'done') return this.#late(mail);
    switch (mail.type) {
      case 'ask':
        return this.#ask(mail.questions);
      case 'collected':
        return this.#suspend();
      case 'replied':
        this.#replied(mail.key, mail.reply);
        return this.#closed();
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
      case 'task ends':
        return this.#done(mail.outcome);
      case 'stored':
        return this.#stored(mail);
    }
  }

  /** Handles mail after the end: the handler may still run. It can ask nothing more, and its end is still counted. */
  #late(mail: InteractiveRequestMail): void {
    if (mail.type === 'ask') this.#refuse(mail.questions);
    if (mail.type === 'detach') this.#becomeTask(mail.task);
    if (mail.type === 'done' || mail.type === 'task ends') this.#answer(mail.outcome);
  }

  #answer(outcome: Outcome): void {
    if (this.#task) this.#task.send({ type: 'done', outcome });
    else respond(this.#request, outcome);
    this.#entry.handlerEnded();
  }

  #refuse(questions: readonly Question[]): void {
    refuseInput(questions, this.#reason ?? new Unanswered('the handler has ended'), this.#entry.system.clock);
  }

  #ask(questions: readonly Question[]): void {
    // Code that the handler left running may still ask.
    if (this.#snapshot.hasTag('ended')) return this.#refuse(questions);
    for (const question of questions) {
      const { key } = question;
      const recorded = this.#entry.replies.ask(key);
      if (recorded !== undefined) {
        replyTo(question, { ok: true, result: recorded });
        continue;
      }
      const open = this.#open.add(question);
      if (!open) continue;
      this.#audit(question);
      if (this.#task) this.#askByTask(this.#task, key, open);
      else if (!question.model) open.sendTo(this.#request, this.#self);
    }
    this.#await();
  }

  /** Waits for the answers, if any is missing. */
  #await(): void {
    if (this.#open.size === 0) return;
    this.#step({ type: this.#open.streaming ? 'ask' : 'collect' });
    // The user of a session gets the full time from each question on.
    if (this.#snapshot.path === 'asking') this.#open.startTimeout(this.#request, this.#self);
  }

  #detach(task: Mailbox<CarryingMail>): void {
    this.#becomeTask(task);
    // Its handler ended while the request became a task.
    if (this.#outcome) return this.#finish(this.#outcome);
    this.#open.stopTimeout();
    this.#entry.resume();
    this.#step({ type: 'detach' });
    this.#closed();
  }

  /** Answers the current request with the task that it becomes. The task asks the questions that are open and not yet sent. */
  #becomeTask(task: Mailbox<CarryingMail>): void {
    this.#task = task;
    for (const [key, open] of this.#open) this.#askByTask(task, key, open);
    task.send({ type: 'created', request: this.#request });
  }

  /** A task ends once, with the result of its call, so it cannot ask a model. */
  #askByTask(task: Mailbox<CarryingMail>, key: string, { question }: PendingInput): void {
    if (!question.model) return task.send({ type: 'asked', key, request: question.request });
    this.#open.fail([key], question.model.otherwise);
  }

  /**
   * Answers the request with the open questions and waits for the retry (2026-07-28 MRTR, "Basic Workflow"). The model is
   * asked last, when no question to the client is open.
   */
  #suspend(): void {
    // The questions may have been answered in the meantime, or asked in another way.
    if (this.#snapshot.path !== 'collecting') return;
    this.#step({ type: 'suspend' });
    this.#round += 1;
    const open = this.#open.questions;
    const byClient = open.filter(({ model }) => !model);
    const request = this.#request;
    if (byClient.length > 0) return this.#requireInput(byClient, request);
    const result = this.#entry.askModel(this.#round, open, request);
    respond(request, { ok: true, result });
  }

  #requireInput(questions: readonly Question[], request: RequestView): void {
    const requests = Object.fromEntries(questions.map(({ key, request: input }) => [key, input]));
    const state = this.#entry.suspend(this.#round, this.#entry.replies.all, request);
    const outcome: Outcome = { ok: true, result: { kind: 'input', requests, state } };
    const storing = this.#entry.store(this.#round - 1, outcome, false);
    if (storing) this.#reportStored(storing, request, outcome);
    else respond(request, outcome);
  }

  #reportStored(storing: Promise<void>, request: RequestView, outcome: Outcome): void {
    const report = (error?: unknown): void => this.#self.send({ type: 'stored', request, outcome, error });
    storing.then(() => report(), report);
  }

  /**
   * The answer to a request is durable, or could not be stored. In the second case the client does not receive it; the
   * client may send the same request again and finds everything unchanged.
   */
  #stored({ request, outcome, error }: Extract<InteractiveRequestMail, { type: 'stored' }>): void {
    const final = this.#snapshot.path === 'storing result';
    if (error === undefined) return final ? this.#finish(outcome) : respond(request, outcome);
    if (final) this.#step({ type: 'unsaved' });
    // The client has not received these questions.
    else this.#round -= 1;
    if (this.#snapshot.hasTag('suspended')) this.#entry.wait(this.#round, {}, request);
    const incident = this.#entry.system.incident(this.#self.address, error);
    respond(request, { ok: false, error: toWireError(error, incident) });
  }

  #resume(request: RequestView, responses: Readonly<Record<string, unknown>>): void {
    this.#entry.resume();
    this.#request = request;
    makeInteractive(request, this.#self);
    this.#step({ type: 'resume' });
    if (this.#outcome) return this.#deliver(this.#outcome);
    request.signal.addEventListener('abort', () => this.#aborted(request), { once: true });
    this.#entry.run.continueFor(request);
    for (const [key, result] of Object.entries(responses)) this.#replied(key, { ok: true, result });
    for (const [key, why] of this.#open.unaskable(request.client)) this.#open.fail([key], why);
    // Questions that are still open are asked again (2026-07-28 MRTR, "Error Handling").
    this.#await();
  }

  /** A reply to an unknown question is ignored (2026-07-28 MRTR, "Error Handling"). */
  #replied(key: string, reply: Reply): void {
    const open = this.#open.take(key);
    if (!open) return;
    this.#audit(open.question, reply);
    // A task has counted it.
    const full = reply.ok ? this.#entry.replies.add(key, reply.result, this.#task && 'counted') : undefined;
    if (full === undefined) return open.reply(reply);
    open.reply({ ok: false, error: wireError(ErrorCode.Overloaded, `the answer does not fit: ${full}`) });
  }

  /** Records a question, or its answer. */
  #audit({ request: { method }, model }: Question, reply?: Reply): void {
    const { audit } = this.#entry;
    if (!audit) return;
    const { client, operation } = this.#request;
    const from = model ? 'model' : 'client';
    const event = {
      by: client,
      request: this.#request,
      element: elementOf(operation),
      question: method,
      from,
    } as const;
    if (!reply) audit.send({ type: 'asked', ...event });
    else audit.send({ type: 'answered', ...event, outcome: outcomeOf(reply) });
  }

  /** Its handler no longer waits for these questions. */
  #drop(keys: readonly string[], reason: Error): void {
    this.#task?.send({ type: 'dropped', keys });
    this.#open.fail(keys, reason);
    this.#closed();
  }

  /** Continues after a question was closed, once no question is open or only such as are asked together. */
  #closed(): void {
    if (!this.#snapshot.hasTag('awaiting') || this.#open.streaming) return;
    this.#open.stopTimeout();
    if (this.#open.size === 0) this.#step({ type: 'answered' });
    else if (!this.#task) this.#await();
  }

  #aborted({ signal }: RequestView): void {
    const reason: unknown = signal.reason;
    this.#self.send({ type: 'aborted', reason: reason instanceof Error ? reason : new Error(String(reason)) });
  }

  /** Rejects all questions. The handler then ends in its own time. */
  #fail(event: Extract<InteractiveRequestEvent, { type: 'cancel' | 'expire' }>, reason: Error): void {
    const before = this.#snapshot;
    this.#step(event);
    if (this.#snapshot.path === before.path) return;
    this.#open.failAll(reason);
    this.#open.stopTimeout();
    // The client of a session still waits for the result of the handler.
    if (this.#snapshot.status !== 'done') return;
    this.#reason = reason;
    this.#end();
    const { request } = this.#entry;
    if (!request.signal.aborted) abortRequest(request, reason);
    if (before.hasTag('ended')) return this.#entry.handlerEnded();
    // Counts against `maxRunning` until the handler returns, although no response will be sent.
    if (this.#request.settled && !this.#task) this.#request.requests.send({ type: 'detached', request: this.#request });
  }

  #done(outcome: Outcome): void {
    if (outcome.ok) this.#warnOfUnawaited();
    if (!this.#snapshot.hasTag('suspended')) return this.#deliver(outcome);
    // The handler continued without its client's answer. Its result waits for the client.
    this.#outcome = outcome;
    this.#step({ type: 'hold' });
    this.#entry.memory.hold(retainedSize(outcome).bytes, 'forced');
  }

  /** The handler ended although its client has not answered: the author has probably forgotten an `await`. */
  #warnOfUnawaited(): void {
    const { log } = this.#entry.system;
    const name = nameOfOperation(this.#request.operation);
    // The text of a question may contain arguments of the call, which the log must not.
    for (const { request } of this.#open.questions)
      log(
        'warning',
        `${name}: the handler returned before its question (${request.method}) was answered. Await ctx.elicit, ctx.sample, ctx.roots and ctx.ask`,
        { event: 'program', ...fieldsOf(this.#request) },
      );
  }

  /** Sends the outcome of the handler once it is durable. */
  #deliver(outcome: Outcome): void {
    const storing = this.#task ? undefined : this.#entry.store(this.#round, outcome, true);
    if (!storing) return this.#finish(outcome);
    this.#outcome = outcome;
    if (!this.#snapshot.hasTag('ended')) this.#step({ type: 'hold' });
    this.#reportStored(storing, this.#request, outcome);
  }

  #finish(outcome: Outcome): void {
    this.#step({ type: outcome.ok ? 'succeed' : 'fail' });
    this.#end();
    this.#answer(outcome);
  }

  #end(): void {
    // A handler may end without waiting for an answer to its questions.
    this.#open.withdrawAll('the call has ended');
    this.#open.stopTimeout();
    this.#entry.resume();
    this.#entry.end();
  }

  #step(event: InteractiveRequestEvent): void {
    const before = this.#snapshot;
    const recorder = { inspection: this.#entry.system.inspection, actor: this.#self.address };
    this.#snapshot = step(before, event, recorder) ?? before;
    const awaiting = this.#snapshot.hasTag('awaiting');
    if (awaiting !== before.hasTag('awaiting')) this.#entry.run.waits(awaiting);
    // Collects the other questions that the handler asks in the same turn.
    if (this.#snapshot.path === 'collecting' && before.path !== 'collecting')
      this.#entry.system.clock.soon(() => this.#self.send({ type: 'collected' }));
  }

  crashed(mail: InteractiveRequestMail, error: unknown): void {
    const incident = this.#entry.system.incident(`request/${this.#entry.id.slice(0, 10)}`, error);
    const reason = new Error(`the server could not continue this request (incident ${incident})`);
    if (mail.type === 'ask') for (const question of mail.questions) failQuestion(question, reason);
    if (this.#snapshot.status !== 'done') this.#fail({ type: 'cancel' }, reason);
  }
}

/** The element of a request, as its kind and its name. */
function elementOf(operation: Operation): string | undefined {
  if ('name' in operation) return `${operation.method === 'prompts/get' ? 'prompt' : 'tool'} ${operation.name}`;
  return operation.method === 'resources/read' ? 'resource' : undefined;
}

/** The outcome of a question, without its content. */
function outcomeOf(reply: Reply): 'accepted' | 'declined' | 'cancelled' | 'answered' | 'error' {
  if (!reply.ok) return 'error';
  const action = isObject(reply.result) ? reply.result.action : undefined;
  if (action === 'accept') return 'accepted';
  if (action === 'decline') return 'declined';
  return action === 'cancel' ? 'cancelled' : 'answered';
}
