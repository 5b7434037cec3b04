/**
 * Runs one script: its engine computes until it needs the results of calls, which the script learns once the journal has them. It
 * outlives the request that began it. Governed by `machines/script-run.ts`.
 */
import { type ScriptRunEvent, type ScriptRunState, scriptRunMachine } from '../../../../machines/script-run.ts';
import { type Actor, type Behaviour, spawn } from '../../../core/kernel/actor.ts';
import { afterAny, type Timer } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import { addresseeOf } from '../../../core/kernel/inspection/display-names.ts';
import type { Charted, Facts, Waits, Watching } from '../../../core/kernel/inspection/records.ts';
import { step } from '../../../core/kernel/step.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import { isProtocolError } from '../../../core/protocol/errors.ts';
import { messageOf } from '../../../core/protocol/json.ts';
import type { Delivery, ScriptCall, ScriptEnd, ScriptSlice } from '../sandbox/script.ts';
import type { CallValue } from './call-value.ts';
import { LearnedResults, type ReadyResult } from './learned-results.ts';
import { endedOf, type OpenCall, reasonOfWait, waitsOfCall } from './open-call.ts';
import { RecordedCalls } from './recorded-calls.ts';
import { callingClient } from './run-caller.ts';
import { RunCalls, type RunOfCalls } from './run-calls.ts';
import { RunClient } from './run-client.ts';
import type { RunEvent } from './run-journal.ts';
import { RunLog } from './run-log.ts';
import type { Attachment, Departure, LettingGo, RunMail, ScriptRunOptions } from './run-messages.ts';
import { lengthOfWhole, type RunEnd, type RunResult, resultOf, resultOfEnd, returnedBlocks } from './run-result.ts';

/** A run as its table sees it. */
export interface ScriptRun {
  readonly actor: Actor<RunMail>;
  /** Its state, for its row. */
  state(): ScriptRunState;
  /** True while a request waits for it, also one that waits for its client. */
  attended(): boolean;
  /** True while a request in flight waits for it. */
  awaited(): boolean;
  /** The time of its end, in milliseconds since 1970. */
  until(): number;
  /** True once it takes no request: it has ended with this result, or left this process. */
  gone(): { readonly isGone: boolean; readonly result: RunResult | undefined };
  /** Resolves when this process has written the last of a run of which it has let go. */
  left(): Promise<void>;
}

/** Milliseconds in which calls that a script does not await may end after it. */
const UNAWAITED_MS = 5_000;
/** Milliseconds of waiting after which only the journal has the run. */
const REST_MS = 30_000;
/** Milliseconds until an engine without room is asked again, and the number of times. */
const REFUSED_MS = 1_000;
const MAX_REFUSED = 60;
/** Lines of logs that are kept. */
const MAX_LOGS = 400;

export function spawnRun(options: ScriptRunOptions): ScriptRun {
  const { core, id, tool, caller } = options;
  let run: Run | undefined;
  const actor = spawn<RunMail>(
    { kind: 'run', address: `run/${id.slice(0, 12)}`, label: `${tool} of ${caller.principal}` },
    core.system,
    (self) => {
      run = new Run(options, self);
      return run;
    },
  );
  const found = (): Run => {
    if (!run) throw new Error('expected a run that was spawned');
    return run;
  };
  return {
    actor,
    state: () => found().state(),
    attended: () => found().attended,
    awaited: () => found().awaited,
    until: () => found().until,
    gone: () => found().gone,
    left: () => found().left,
  };
}

class Run implements Behaviour<RunMail>, RunOfCalls {
  readonly #options: ScriptRunOptions;
  readonly #self: Mailbox<RunMail>;
  readonly #client: RunClient;
  readonly #calls: RunCalls;
  readonly #recorded: RecordedCalls;
  readonly #learned: LearnedResults;
  readonly #log: RunLog;
  readonly #logs: string[] = [];
  #state = scriptRunMachine.initial;
  /** The ends of calls that the script learns next. */
  #ready: ReadyResult[] = [];
  /** The results that the script learns next are being stored. The state stays that of the wait, from which another process continues. */
  #delivers = false;
  /** The highest number of a call so far. */
  #highest = 0;
  #until: number;
  /** The end of a script whose calls have some time. */
  #end: ScriptEnd | undefined;
  #result: RunResult | undefined;
  /** It has left this process. */
  #gone = false;
  /** The timers of the run: its end, the end of calls that are not awaited, its rest, and the next try of an engine without room. */
  #expiry: Timer | undefined;
  #finish: Timer | undefined;
  #rest: Timer | undefined;
  #retry: Timer | undefined;
  /** The number of times that the engine had no room, one after the other. */
  #refused = 0;
  #left = Promise.resolve();

  constructor(options: ScriptRunOptions, self: Mailbox<RunMail>) {
    const { core, script, before, begun } = options;
    this.#options = options;
    this.#self = self;
    this.#client = new RunClient(options, self);
    this.#recorded = new RecordedCalls(before);
    this.#learned = new LearnedResults(script.startedAt, this.#recorded.deliveries);
    this.#calls = new RunCalls(options, self, this, this.#client, this.#recorded);
    this.#log = new RunLog(core.system.inspection, self.address, begun, this.#learned.deliveries);
    for (const event of before) this.#log.event(event, event.type === 'delivered' ? event.at : undefined);
    this.#until = Math.max(script.startedAt, this.#recorded.due) + core.limits.codeOpenMs;
    this.#expire();
  }

  get attended(): boolean {
    return this.#client.request !== undefined;
  }

  get awaited(): boolean {
    return this.#client.isInFlight;
  }

  get until(): number {
    return this.#until;
  }

  get gone(): ReturnType<ScriptRun['gone']> {
    return { isGone: this.#gone, result: this.#gone ? this.#result : undefined };
  }

  get left(): Promise<void> {
    return this.#left;
  }

  state(): ScriptRunState {
    return this.#state.path;
  }

  chart(): Charted {
    return this.#state.charted();
  }

  facts(): Facts {
    const { id, caller, journal, script, begun } = this.#options;
    const { open, denials } = this.#calls;
    return {
      ...{ run: id, principal: caller.principal, begun: script.startedAt, engine: begun.engine, calls: this.#highest },
      ...{ deliveries: this.#learned.deliveries.length, denials },
      ...{ 'in flight': [...open.values()].map(({ call, status }) => `${call.number} ${call.name}: ${status}`) },
      ...{ 'characters of the journal': journal.length, 'a request waits': this.attended, until: this.#until },
    };
  }

  waits(): readonly Waits[] {
    const { caller, core } = this.#options;
    const { clock } = core.system;
    const epoch = clock.date() - clock.now();
    return [...this.#calls.open.values()].flatMap((open) => {
      const { info } = callingClient(caller, open.askedBy, false);
      return waitsOfCall(open, (request) => addresseeOf(request, { info }), epoch);
    });
  }

  watch(): Watching {
    return this.#log.watch();
  }

  receive(mail: RunMail): void {
    if (this.#gone) return;
    if ('number' in mail) return this.#calls.receive(mail);
    switch (mail.type) {
      case 'begin':
        return this.#begin();
      case 'sliced':
        return this.#sliced(mail.slice, mail.whole);
      case 'engine failed':
        return this.#engineFailed(mail.error);
      case 'deliveries stored':
        return this.#proceed(mail.deliveries);
      case 'end stored':
        return this.#conclude();
      case 'store failed':
        return this.#failed(mail.error);
      case 'attach':
        return this.#attach(mail.attachment);
      case 'left':
        return this.#leave(mail.attachment, mail.how, mail.reason);
      case 'not returned':
        return this.#notReturned();
      case 'waited':
        return this.#waited();
      case 'finish':
        return this.#record(this.#end);
      case 'expired':
        return this.stop('dropped', "it was open for too long (the server's option is limits.codeOpenMs)");
      case 'let go':
        return this.#letGo(mail.reason, mail.how);
    }
  }

  crashed(mail: RunMail, error: unknown): void {
    const incident = this.#options.core.system.incident(this.#self.address, error);
    const why = `the server failed while it ran the script (incident ${incident} in its log)`;
    if (mail.type === 'attach' && mail.attachment !== this.#client.request) mail.attachment.reject(new Error(why));
    if (this.#result) return this.#conclude();
    this.stop('engine', why);
  }

  // Computing

  #begin(): void {
    const { engine, id, caller, script } = this.#options;
    this.#compute(() => engine.begin(id, caller.principal, script, this.#learned.deliveries), true);
  }

  #compute(run: () => Promise<ScriptSlice | undefined>, whole: boolean): void {
    run().then(
      (slice) => this.#self.send({ type: 'sliced', slice, whole }),
      (error: unknown) => this.#self.send({ type: 'engine failed', error }),
    );
  }

  /** The engine is busy for a while, or has failed. */
  #engineFailed(error: unknown): void {
    const { clock, incident } = this.#options.core.system;
    this.#refused += 1;
    if (isProtocolError(error) && this.#refused <= MAX_REFUSED) {
      this.#retry = clock.after(REFUSED_MS, () => this.#self.send({ type: 'begin' }));
      return;
    }
    const why = isProtocolError(error)
      ? error.message
      : `its engine failed (incident ${incident(this.#self.address, error)} in the log of the server)`;
    this.stop('engine', why);
  }

  #sliced(slice: ScriptSlice | undefined, whole: boolean): void {
    // It was stopped while it computed.
    if (this.#isEnding) return;
    this.#refused = 0;
    if (!slice) return this.#begin();
    if (whole) {
      const strays = this.#recorded.strays(slice.calls);
      if (strays !== undefined) return this.stop('dropped', strays);
      // They are those of the whole way.
      this.#logs.length = 0;
    }
    if (slice.logs.length > 0)
      this.#log.add({ what: 'logged', date: this.#date(), data: { lines: slice.logs.slice(0, MAX_LOGS), whole } });
    this.#logs.push(...slice.logs.slice(0, MAX_LOGS));
    if (this.#logs.length > MAX_LOGS) this.#logs.splice(MAX_LOGS / 2, this.#logs.length - MAX_LOGS);
    for (const call of slice.calls) {
      // One call too many stops it.
      if (this.#isEnding) return;
      this.#called(call);
      if (!this.#learned.has(call.number) && !this.#calls.open.has(call.number)) this.#calls.take(call);
    }
    if (this.#isEnding) return;
    if (slice.end) return this.#finishes(slice.end);
    // The calls that end at once are delivered together.
    this.#advance();
  }

  /** Logs a call, once. An earlier process made those of which the journal knows, at an unknown time. */
  #called({ number: call, name, line, arguments: args }: ScriptCall): void {
    if (call <= this.#highest) return;
    this.#highest = call;
    const isOld = this.#learned.has(call) || this.#recorded.look(call) !== undefined;
    this.#log.add({ what: 'called', call, name, line, ...(isOld ? {} : { date: this.#date() }) }, args);
  }

  /** The script has ended. */
  get #isEnding(): boolean {
    return this.#state.path === 'finishing' || this.#state.status === 'done';
  }

  // Results and waits

  /** The script learns the end of a call next, unless it has ended: then only its journal says what was done. */
  ended(open: OpenCall, given: CallValue): void {
    if (!this.#isEnding) this.#ready.push({ open, given });
    else {
      this.#learned.ended.push(endedOf(open, given));
      if (this.#calls.open.size === 0) this.#record(this.#end);
    }
  }

  /** A call has ended, or waits for something else. The engine must not be busy when the script learns of it. */
  changed(): void {
    if (this.#gone || this.#delivers || this.#state.path === 'computing' || this.#isEnding) return;
    this.#advance();
  }

  /** Gives the script what it may learn now. Without that, it waits. */
  #advance(): void {
    if (this.#ready.length === 0) return this.#settle();
    const { memory, journal } = this.#options;
    const ready = this.#ready.splice(0);
    this.#delivers = true;
    for (const { open } of ready) this.#recorded.know(open.call.number, open);
    const { deliveries, events, bytes, length } = this.#learned.learn(ready, this.#date());
    const excess = memory.resize(memory.amount + bytes);
    if (excess) return this.stop('output', `what its calls have returned does not fit: ${excess.message}`);
    if (journal.isFull(length)) return this.full();
    this.append(events, { type: 'deliveries stored', deliveries });
  }

  #proceed(deliveries: readonly Delivery[]): void {
    const { engine, id } = this.#options;
    // It has ended meanwhile.
    if (!this.#step('compute')) return;
    this.#delivers = false;
    this.#client.report(this.#learned.ended.at(-1));
    this.#compute(() => engine.proceed(id, deliveries), false);
  }

  /** Finds the state of a run that neither computes nor has anything to deliver. */
  #settle(): void {
    const { open, wait } = this.#calls;
    if (open.size === 0)
      return this.#finishes({
        type: 'threw',
        name: 'Error',
        message: 'the script waits for something that no call will settle, such as a promise of its own',
      });
    if (this.#state.path !== STATE_OF_WAIT[wait]) this.#move(wait);
    if (wait !== 'call') this.#client.ask(open);
    this.#rests();
    this.#client.watch(this.#state.path, this.#state.hasTag('waiting'), open.values());
  }

  /** A run that waits for long needs no memory of the engine: its next delivery begins the script again. */
  #rests(): void {
    this.#rest?.cancel();
    if (!this.#state.hasTag('waiting')) return;
    const { core, engine, id } = this.#options;
    this.#rest = core.system.clock.after(REST_MS, () => {
      this.#rest = undefined;
      if (!this.#delivers && this.#state.hasTag('waiting')) engine.drop(id);
    });
  }

  /** Appends to the journal, and continues when it is durable. */
  append(events: readonly RunEvent[], mail: RunMail): void {
    for (const event of events) this.#log.event(event, this.#date());
    this.#options.journal.append(events).then(
      () => this.#self.send(mail),
      (error: unknown) => this.#self.send({ type: 'store failed', error }),
    );
  }

  lasts(until: number): void {
    this.#until = Math.max(this.#until, until);
    this.#expire();
  }

  // The request that waits

  #attach(attachment: Attachment): void {
    this.#client.attach(attachment);
    this.#client.lastsUntil(this.#until);
    this.#calls.attached();
    this.changed();
  }

  #leave(attachment: Attachment, how: Departure, reason: unknown): void {
    if (this.#client.request !== attachment) return;
    if (how === 'moved') return this.#letGo(messageOf(reason), 'stop');
    this.#client.detach()?.reject(reason);
    if (how === 'cancelled') return this.#record({ type: 'cancelled', message: messageOf(reason) });
    this.#detached();
    this.#client.awaitReturn();
  }

  #notReturned(): void {
    // A script may still continue while its client is away.
    if (this.#client.request || this.#state.path !== 'waiting for client') return;
    this.stop('dropped', `its client has not returned within ${durationOf(this.#options.core.limits.askMs)}`);
  }

  #waited(): void {
    if (!this.#client.mayPause()) return;
    const waits = [...this.#calls.open.values()].slice(0, 10).map(reasonOfWait);
    this.#client.answer(waits, this.#until - this.#date());
    this.#detached();
  }

  #detached(): void {
    this.#calls.detached();
    // The row says that no request waits.
    this.#options.journal.append([]).catch((error: unknown) => this.#self.send({ type: 'store failed', error }));
  }

  // The end

  /** The script has ended. Calls that it does not await have some time. */
  #finishes(end: ScriptEnd): void {
    const { clock } = this.#options.core.system;
    this.#calls.drop((status) => status !== 'running' && status !== 'storing');
    if (this.#calls.open.size === 0 || end.type === 'stopped' || end.type === 'invalid') return this.#record(end);
    this.#end = end;
    this.#move('finish');
    this.#finish = clock.after(UNAWAITED_MS, () => this.#self.send({ type: 'finish' }));
  }

  stop(why: Extract<ScriptEnd, { type: 'stopped' }>['why'], message: string): void {
    this.#record({ type: 'stopped', why, message });
  }

  full(): void {
    const { codeJournalLength } = this.#options.core.limits;
    this.stop(
      'output',
      `its calls have returned more than ${codeJournalLength} characters together (the server's option is limits.codeJournalLength). Ask them for less, or do the work in several scripts`,
    );
  }

  /** Stores the end. */
  #record(end: RunEnd = { type: 'stopped', why: 'engine', message: 'it has ended without a reason' }): void {
    if (this.#gone || this.#state.status === 'done') return;
    const { engine, id, core, journal, keeps } = this.#options;
    const { ended: calls, blocks } = this.#learned;
    engine.drop(id);
    this.#finish?.cancel();
    // The script has not learned of their ends.
    for (const { open, given } of this.#ready.splice(0)) calls.push(endedOf(open, given));
    this.#calls.drop();
    const { codeResultLength: maxLength } = core.limits;
    const length = lengthOfWhole(end, maxLength);
    const report = {
      ...{ calls, logs: this.#logs, unfinished: this.#calls.unfinished, maxLength },
      resource: length > 0 ? keeps(length) : undefined,
    };
    const result = resultOfEnd(end, report, returnedBlocks(end, blocks));
    this.#move(EVENT_OF_END[end.type]);
    this.#result = result;
    this.#until = this.#date() + core.limits.askMs;
    const ended = { type: 'ended', how: this.#state.path, ...result } as const;
    this.#log.event(ended, this.#date());
    journal.append([ended]).then(
      () => this.#self.send({ type: 'end stored' }),
      (error: unknown) => {
        // Its result is known, although no other process will know it.
        core.system.incident(this.#self.address, error);
        this.#self.send({ type: 'end stored' });
      },
    );
  }

  #conclude(): void {
    if (this.#gone || !this.#result) return;
    this.#gone = true;
    this.#silence();
    this.#options.counted('run', this.#state.path);
    this.#client.detach()?.resolve(resultOf(this.#result));
    this.#options.gone(this.#result);
  }

  /** The journal cannot be written: another process has it, or the store fails. Nothing may happen after it. */
  #failed(error: unknown): void {
    const incident = this.#options.core.system.incident(this.#self.address, error);
    this.stop(
      'engine',
      `what it does could not be stored, so that nothing more was done (incident ${incident} in the log of the server)`,
    );
  }

  /** Leaves this process. */
  #letGo(reason: string, how: LettingGo): void {
    const { engine, id, journal } = this.#options;
    if (how === 'end') return this.#record({ type: 'cancelled', message: reason });
    engine.drop(id);
    this.#gone = true;
    this.#silence();
    this.#calls.letGo(reason);
    // Its signal does not end this request, because this node stays.
    const isAnswered = how !== 'stop' && this.#client.isInFlight;
    if (isAnswered) this.#client.answer([reason], this.#until - this.#date());
    else this.#client.moveOn(reason);
    const close = (): void => {
      journal.close(`another process continues the run ${id}`);
      this.#options.gone(undefined);
    };
    if (!isAnswered || how === 'discard') return close();
    // The stored row says that no request waits, so the next node resumes the run. If the write fails, the client's `resume` does that.
    this.#left = journal.append([]).then(close, close);
  }

  #silence(): void {
    this.#client.silence();
    for (const timer of [this.#expiry, this.#finish, this.#rest, this.#retry]) timer?.cancel();
  }

  #expire(): void {
    this.#expiry?.cancel();
    this.#client.lastsUntil(this.#until);
    const { clock } = this.#options.core.system;
    const ms = Math.max(0, this.#until - this.#date());
    this.#expiry = afterAny(clock, ms, () => this.#self.send({ type: 'expired' }));
  }

  #date(): number {
    return this.#options.core.system.clock.date();
  }

  /** @returns false if its state does not accept the event: nothing may follow from it then */
  #step(type: ScriptRunEvent['type']): boolean {
    const recorder = { inspection: this.#options.core.system.inspection, actor: this.#self.address };
    const next = step(this.#state, { type }, recorder);
    if (!next) return false;
    this.#state = next;
    return true;
  }

  /** Takes a step that the chart must have. The run crashes without it: it would do what is not drawn. */
  #move(type: ScriptRunEvent['type']): void {
    const { path } = this.#state;
    if (!this.#step(type)) throw new Error(`script run: expected an event that "${path}" accepts, got "${type}"`);
  }
}

/** The states that last while what the run waits for stays the same. */
const STATE_OF_WAIT: Readonly<Record<RunCalls['wait'], ScriptRunState>> = {
  call: 'calling',
  ask: 'waiting for client',
  hold: 'waiting for approval',
  follow: 'waiting for task',
  sleep: 'waiting for clock',
};

const EVENT_OF_END = {
  returned: 'return',
  threw: 'fail',
  invalid: 'fail',
  stopped: 'stop',
  cancelled: 'cancel',
} as const;
