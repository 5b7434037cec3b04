/**
 * Runs one script: passes what its engine asks for to inner calls, records what happens before the script learns it, and waits for
 * clients, people and times. It outlives the request that began it. Governed by `machines/script-run.ts`.
 */
import { type ScriptRunEvent, type ScriptRunState, scriptRunMachine } from '../../../../machines/script-run.ts';
import { CannotAsk, Unanswered } from '../../../core/execution/input-errors.ts';
import { becomeTask, isTask, requestContextOf } from '../../../core/execution/request-context.ts';
import { type Actor, type Behaviour, spawn } from '../../../core/kernel/actor.ts';
import { afterAny, type Timer } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import { addresseeOf, nameOfQuestion } from '../../../core/kernel/inspection/display-names.ts';
import type { Charted, Facts, Waits, Watching } from '../../../core/kernel/inspection/records.ts';
import type { Reservation } from '../../../core/kernel/quota.ts';
import { step } from '../../../core/kernel/step.ts';
import type { Reply } from '../../../core/messages/client-input.ts';
import type { Mailbox } from '../../../core/messages/mailbox.ts';
import type { Outcome } from '../../../core/messages/results.ts';
import { ErrorCode, isProtocolError } from '../../../core/protocol/errors.ts';
import { heapBytes } from '../../../core/protocol/heap.ts';
import { isJsonObject, isObject, type JsonValue, messageOf, shortened } from '../../../core/protocol/json.ts';
import type { Operation } from '../../../core/protocol/operations.ts';
import type { ContentBlock } from '../../../core/protocol/types.ts';
import type { Core } from '../../../core/server/feature.ts';
import { toText } from '../../../core/store/serialize.ts';
import type { ApprovalService } from '../../approvals/approvals.feature.ts';
import { askVerbatim } from '../../asking/asking-context.ts';
import { isRepeatable } from '../../durability/tool-hints.ts';
import type { CodeOptions } from '../code-options.ts';
import type { CallableFunctions } from '../functions/code-functions.ts';
import type { Delivery, Script, ScriptCall, ScriptEnd, ScriptFault, ScriptSlice } from '../sandbox/script.ts';
import { type CallValue, type NamedCall, type ReturnableBlocks, valueOfOutcome } from './call-value.ts';
import { hasEffect } from './effects.ts';
import { InnerCall } from './inner-call.ts';
import { approvalIn, endedOf, type OpenCall, openCall, reasonOfWait, unknownOutcome } from './open-call.ts';
import { RecordedCalls } from './recorded-calls.ts';
import { callingAuth, callingClient, callingOwner } from './run-caller.ts';
import type { RunEvent, RunJournal, StoredCaller } from './run-journal.ts';
import { RunLog } from './run-log.ts';
import type { Attachment, Departure, LettingGo, RunMail, ScriptEngine } from './run-messages.ts';
import {
  argumentsIn,
  type EndedCall,
  isArguments,
  lengthOfWhole,
  pausedResult,
  type RunEnd,
  type RunResult,
  resultOf,
  resultOfEnd,
  returnedBlocks,
  type WholeResult,
} from './run-result.ts';

export interface ScriptRunOptions {
  readonly core: Core;
  readonly engine: ScriptEngine;
  readonly approvals: Pick<ApprovalService, 'wait' | 'get' | 'revoke'>;
  readonly id: string;
  /** The first event of its journal. */
  readonly begun: Extract<RunEvent, { type: 'begun' }>;
  readonly script: Script;
  /** The tool that runs scripts. */
  readonly tool: string;
  readonly caller: StoredCaller;
  readonly journal: RunJournal;
  /** The events after its beginning; empty for a new run. */
  readonly before: readonly RunEvent[];
  readonly memory: Reservation;
  readonly settings: { readonly effects: NonNullable<CodeOptions['effects']>; readonly waitMs: number };
  /** The functions of its caller while no request waits for it. */
  functions(): Promise<CallableFunctions>;
  /** Counts a call by its outcome, and a run by its end. */
  counted(what: 'call' | 'run', how: string): void;
  /** Reserves memory for its whole result, if it is too long to be sent. @returns where it can be read; undefined without room */
  keeps(length: number): WholeResult | undefined;
  /** It has ended, or left this process. */
  gone(result: RunResult | undefined): void;
}

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
  /** Resolves when this process has written the last of a run of which it has let go. */
  left(): Promise<void>;
}

/** Milliseconds in which calls that a script does not await may end after it. */
const UNAWAITED_MS = 5_000;
/** Milliseconds before the deadline of a request at which it is answered although calls of its run are in flight. */
const MARGIN_MS = 5_000;
/** Milliseconds of waiting after which only the journal has the run. */
const REST_MS = 30_000;
/** Milliseconds until an engine without room is asked again, and the number of times. */
const REFUSED_MS = 1_000;
const MAX_REFUSED = 60;
/** Maximum number of questions that are open at once: that of one round. */
const MAX_QUESTIONS = 32;
/** Progress must increase: that of a script itself is higher than the parts of this number. */
const MAX_REPORTED = 1_000_000;
/** Lines of logs that are kept. */
const MAX_LOGS = 400;

/** The statuses of calls that need no person, no task and no time. */
const RUNNING: readonly OpenCall['status'][] = ['queued', 'storing', 'running'];
/** The states of approvals about which people may still decide. */
const WAITS: ReadonlySet<string> = new Set(['asked', 'partly approved']);

/** The end of a call that the script has not learned. */
interface Ready {
  readonly open: OpenCall;
  readonly given: CallValue;
}

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
    state: () => found().path,
    attended: () => found().attended,
    awaited: () => found().awaited,
    until: () => found().until,
    left: () => found().left,
  };
}

class Run implements Behaviour<RunMail> {
  readonly #options: ScriptRunOptions;
  readonly #self: Mailbox<RunMail>;
  #state = scriptRunMachine.initial;
  #busy: 'computing' | 'storing' | undefined;
  #attachment: Attachment | undefined;
  #functions: CallableFunctions | undefined;
  /** The list of functions that is on its way. */
  #listing: Promise<CallableFunctions> | undefined;
  /** The calls without an end, by number. */
  readonly #open = new Map<number, OpenCall>();
  readonly #recorded: RecordedCalls;
  readonly #delivered = new Set<number>();
  readonly #deliveries: Delivery[] = [];
  #ready: Ready[] = [];
  readonly #ended: EndedCall[] = [];
  /** The blocks that the script can return, by their handles. */
  readonly #blocks = new Map<string, ContentBlock>();
  /** The calls without a result when the script ended. */
  readonly #unfinished: { readonly name: string; readonly effect: boolean }[] = [];
  /** The highest number of a call so far. */
  #highest = 0;
  #denials = 0;
  /** The script reports its progress itself. */
  #reports = false;
  #at: number;
  #until: number;
  readonly #logs: string[] = [];
  readonly #log: RunLog;
  /** The highest number of a call in the log. */
  #logged = 0;
  /** Milliseconds since 1970 at the start of the server's clock. */
  readonly #epoch: number;
  #end: RunEnd | undefined;
  #result: RunResult | undefined;
  #over = false;
  /** The timers of the run: its end, its pause, the end of calls that are not awaited, and the return of its client. */
  #expiry: Timer | undefined;
  #pause: Timer | undefined;
  #finish: Timer | undefined;
  #lost: Timer | undefined;
  #rest: Timer | undefined;
  #retry: Timer | undefined;
  /** The number of times that the engine had no room, one after the other. */
  #refused = 0;
  #left = Promise.resolve();

  constructor(options: ScriptRunOptions, self: Mailbox<RunMail>) {
    const { core, script, before, begun } = options;
    this.#options = options;
    this.#self = self;
    this.#epoch = core.system.clock.date() - core.system.clock.now();
    this.#log = new RunLog(core.system.inspection, self.address, begun, this.#deliveries);
    for (const event of before) this.#log.event(event, event.type === 'delivered' ? event.at : undefined);
    this.#at = script.startedAt;
    this.#until = script.startedAt + core.limits.codeOpenMs;
    this.#recorded = new RecordedCalls(before);
    for (const { delivery, name, effect, blocks } of this.#recorded.deliveries)
      this.#took(delivery, name, effect, blocks);
    this.#until = Math.max(this.#until, this.#recorded.due + core.limits.codeOpenMs);
    this.#expire();
  }

  get path(): ScriptRunState {
    return this.#state.path;
  }

  get attended(): boolean {
    return this.#attachment !== undefined;
  }

  get awaited(): boolean {
    return this.#attachment !== undefined && isInFlight(this.#attachment);
  }

  get until(): number {
    return this.#until;
  }

  get left(): Promise<void> {
    return this.#left;
  }

  state(): string {
    return this.#state.path;
  }

  chart(): Charted {
    return this.#state.charted();
  }

  facts(): Facts {
    const { id, caller, journal, script, begun } = this.#options;
    return {
      ...{ run: id, principal: caller.principal, begun: script.startedAt, engine: begun.engine, calls: this.#highest },
      ...{ deliveries: this.#deliveries.length, denials: this.#denials },
      ...{ 'in flight': [...this.#open.values()].map(({ call, status }) => `${call.number} ${call.name}: ${status}`) },
      ...{ 'characters of the journal': journal.length, 'a request waits': this.attended, until: this.#until },
    };
  }

  waits(): readonly Waits[] {
    return [...this.#open.values()].flatMap((open) => this.#waitsOf(open));
  }

  #waitsOf({ call, of, status, requests, approval, task, due, askedBy }: OpenCall): readonly Waits[] {
    const which = `${of} (call ${call.number})`;
    switch (status) {
      case 'asked': {
        const { info } = callingClient(this.#options.caller, askedBy, false);
        return Object.values(requests).map((request) => ({
          what: nameOfQuestion(request),
          whom: `${askedBy ? addresseeOf(request, { info }) : 'the client that continues the run'}, for ${which}`,
        }));
      }
      case 'held':
        return [{ what: `the approval ${approval} of ${which}` }];
      case 'following':
        return [{ what: `the task ${task} of ${which}` }];
      case 'sleeping':
        return [{ what: `the end of ${which}`, until: due === undefined ? undefined : due - this.#epoch }];
      case 'unsigned':
        return [{ what: `a new sign-in, for ${which}` }];
      default:
        return [{ what: `the result of ${which}` }];
    }
  }

  watch(): Watching {
    return this.#log.watch();
  }

  receive(mail: RunMail): void {
    if (this.#over) return this.#late(mail);
    switch (mail.type) {
      case 'begin':
        return this.#begin();
      case 'sliced':
        return this.#sliced(mail.slice, mail.whole);
      case 'engine failed':
        return this.#engineFailed(mail.error);
      case 'start stored':
        return this.#send(mail.number);
      case 'listed':
        return this.#again(mail.number);
      case 'not listed':
        return this.#notListed(mail.number, mail.error);
      case 'question stored':
        return this.#asks(mail.number);
      case 'answers stored':
        return this.#continue(mail.number, mail.responses);
      case 'wait stored':
        return this.#wait(mail.number);
      case 'deliveries stored':
        return this.#proceed(mail.deliveries);
      case 'end stored':
        return this.#conclude();
      case 'store failed':
        return this.#failed(mail.error);
      case 'outcome':
        return this.#outcome(mail.number, mail.attempt, mail.outcome);
      case 'replied':
        return this.#replied(mail.number, mail.round, mail.replies);
      case 'unanswered':
        return this.#unanswered(mail);
      case 'decided':
        return this.#decided(mail.number, mail.state);
      case 'poll':
        return this.#poll(mail.number);
      case 'polled':
        return this.#polled(mail.number, mail.outcome);
      case 'due':
        return this.#due(mail.number);
      case 'attach':
        return this.#attach(mail.attachment);
      case 'left':
        return this.#leave(mail.attachment, mail.how, mail.reason);
      case 'waited':
        return this.#waited();
      case 'finish':
        return this.#record();
      case 'expired':
        return this.#stop('dropped', mail.why);
      case 'let go':
        return this.#letGo(mail.reason, mail.how);
    }
  }

  /** Handles mail after its end. */
  #late(mail: RunMail): void {
    if (mail.type !== 'attach') return;
    if (this.#result) mail.attachment.resolve(resultOf(this.#result));
    else mail.attachment.reject(new Error('this process has let go of the run of the script. Retry'));
  }

  crashed(mail: RunMail, error: unknown): void {
    const incident = this.#options.core.system.incident(this.#self.address, error);
    const why = `the server failed while it ran the script (incident ${incident} in its log)`;
    if (mail.type === 'attach' && mail.attachment !== this.#attachment) mail.attachment.reject(new Error(why));
    if (this.#over) return;
    this.#end = { type: 'stopped', why: 'engine', message: why };
    this.#conclude();
  }

  // Computing

  #begin(): void {
    if (this.#busy) this.#step('compute');
    this.#run(() => {
      const { engine, id, caller, script } = this.#options;
      return engine.begin(id, caller.principal, script, this.#deliveries);
    }, true);
  }

  #run(run: () => Promise<ScriptSlice | undefined>, whole: boolean): void {
    this.#busy = 'computing';
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
    this.#stop('engine', why);
  }

  #sliced(slice: ScriptSlice | undefined, whole: boolean): void {
    // It was stopped while it computed.
    if (this.#end) return;
    this.#refused = 0;
    if (!slice) return this.#begin();
    if (whole) {
      const strays = this.#recorded.strays(slice.calls);
      if (strays !== undefined) return this.#stop('dropped', strays);
      // They are those of the whole way.
      this.#logs.length = 0;
    }
    if (slice.logs.length > 0)
      this.#log.add({ what: 'logged', date: this.#date(), data: { lines: slice.logs.slice(0, MAX_LOGS), whole } });
    this.#logs.push(...slice.logs.slice(0, MAX_LOGS));
    if (this.#logs.length > MAX_LOGS) this.#logs.splice(MAX_LOGS / 2, this.#logs.length - MAX_LOGS);
    for (const call of slice.calls) {
      if (this.#isEnding()) break;
      this.#highest = Math.max(this.#highest, call.number);
      this.#called(call);
      if (!this.#delivered.has(call.number) && !this.#open.has(call.number)) this.#take(call);
    }
    // One call too many stops it.
    if (this.#isEnding()) return;
    // The calls that end at once are delivered together.
    this.#busy = undefined;
    if (slice.end) return this.#finishes(slice.end);
    this.#pump();
  }

  /** Logs a call, once. An earlier process made those of which the journal knows, at an unknown time. */
  #called({ number: call, name, line, arguments: args }: ScriptCall): void {
    if (call <= this.#logged) return;
    this.#logged = call;
    const isOld = this.#delivered.has(call) || this.#recorded.look(call) !== undefined;
    this.#log.add({ what: 'called', call, name, line, ...(isOld ? {} : { date: this.#date() }) }, args);
  }

  #isEnding(): boolean {
    return this.#end !== undefined;
  }

  /** Gives the script what it may learn now, if its engine is free. */
  #pump(): void {
    if (this.#over || this.#busy || this.#end) return;
    if (this.#ready.length === 0) return this.#settle();
    const ready = this.#ready;
    this.#ready = [];
    this.#busy = 'storing';
    const deliveries: Delivery[] = [];
    const events: RunEvent[] = [];
    let bytes = 0;
    let length = 0;
    for (const { open, given } of ready) {
      this.#at = Math.max(this.#at, this.#date());
      const { number } = open.call;
      const delivery: Delivery = { number, at: this.#at, ...('error' in given ? given : { value: given.value }) };
      deliveries.push(delivery);
      const { name, digest, effect } = open;
      const blocks = 'error' in given ? undefined : given.blocks;
      if (blocks) {
        bytes += heapBytes(blocks);
        length += toText(blocks).length;
      }
      const more = { ...(effect ? { effect: true as const } : {}), ...(blocks ? { blocks } : {}) };
      events.push({ type: 'delivered', name, digest, ...more, ...delivery });
      this.#recorded.know(number, open);
      this.#took(delivery, open.of, effect, blocks);
    }
    bytes += deliveries.reduce((sum, delivery) => sum + heapBytes(delivery), 0);
    const { memory, journal } = this.#options;
    const excess = memory.resize(memory.amount + bytes);
    if (excess) return this.#stop('output', `what its calls have returned does not fit: ${excess.message}`);
    length += deliveries.reduce((sum, each) => sum + ('value' in each ? each.value.length : 0), 0);
    if (journal.isFull(length)) return this.#full();
    this.#append(events, { type: 'deliveries stored', deliveries });
  }

  #took(delivery: Delivery, of: string, effect: boolean, blocks: ReturnableBlocks | undefined): void {
    const { number } = delivery;
    for (const [handle, block] of Object.entries(blocks ?? {})) this.#blocks.set(handle, block);
    this.#at = Math.max(this.#at, delivery.at);
    this.#delivered.add(number);
    this.#deliveries.push(delivery);
    this.#ended.push({ number, name: of, effect, fault: 'error' in delivery ? delivery.error : undefined });
  }

  #proceed(deliveries: readonly Delivery[]): void {
    const { engine, id } = this.#options;
    // It has ended meanwhile.
    if (!this.#step('compute')) return;
    this.#report();
    this.#run(() => engine.proceed(id, deliveries), false);
  }

  /** Reports progress, so that a host does not take a long script for one that hangs, until the script reports it itself. */
  #report(): void {
    const last = this.#ended.at(-1);
    if (this.#reports || !last) return;
    this.#attachment?.ctx.progress(last.number / MAX_REPORTED, undefined, `call ${last.number}: ${last.name}`);
  }

  /** Appends to the journal, and continues when it is durable. */
  #append(events: readonly RunEvent[], mail: RunMail): void {
    for (const event of events) this.#log.event(event, this.#date());
    this.#options.journal.append(events).then(
      () => this.#self.send(mail),
      (error: unknown) => this.#self.send({ type: 'store failed', error }),
    );
  }

  // Calls

  #take(call: ScriptCall): void {
    const { core } = this.#options;
    const { number, name } = call;
    if (number > core.limits.codeCalls)
      return this.#stop(
        'calls',
        `it made more than ${core.limits.codeCalls} calls (the server's option is limits.codeCalls). Use a function that takes many items, or do the work in several scripts`,
      );
    const open = openCall(call, core.limits.taskPollMs);
    this.#open.set(number, open);
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

  #callTool(open: OpenCall, args: readonly JsonValue[]): void {
    const { core, settings } = this.#options;
    const { of } = open;
    const functions = this.#attachment?.functions ?? this.#functions;
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
  #notListed(number: number, error: unknown): void {
    const open = this.#open.get(number);
    if (!open) return;
    const { clock, incident } = this.#options.core.system;
    open.unlisted += 1;
    if (open.unlisted <= MAX_REFUSED) {
      open.timer = clock.after(REFUSED_MS, () => this.#self.send({ type: 'listed', number }));
      return;
    }
    const found = incident(this.#self.address, error);
    this.#stop(
      'engine',
      `the functions of its caller could not be listed (incident ${found} in the log of the server)`,
    );
  }

  /** Continues a call of an earlier process, or begins one. */
  #enter(open: OpenCall): void {
    const { number } = open.call;
    const restored = this.#recorded.take(number);
    open.task = restored?.following?.task;
    // Its task has the questions, and the answers that it has got.
    if (open.task !== undefined) return this.#wait(number);
    if (restored?.answered && restored.asked) {
      Object.assign(open, { round: restored.asked.round, requestState: restored.asked.state, status: 'storing' });
      return this.#continue(number, restored.answered.responses);
    }
    if (restored?.asked) {
      const { round, requests, state } = restored.asked;
      Object.assign(open, { round, requests, requestState: state, status: 'storing' });
      return this.#asks(number);
    }
    if (restored?.held) {
      Object.assign(open, { approval: restored.held.approval, text: restored.held.text });
      if (restored.resumed === undefined || open.repeatable) return this.#wait(number);
      return this.#lookAgain(open, restored.held.approval);
    }
    if (restored?.started && !open.repeatable) return this.#fault(open, unknownOutcome(open.of));
    this.#queue(open);
  }

  /** The call was about to be sent with an approval, which is used if it was. */
  #lookAgain(open: OpenCall, approval: string): void {
    open.status = 'storing';
    const { approvals } = this.#options;
    const { number } = open.call;
    const found = (state: string | undefined): void =>
      this.#self.send({ type: 'decided', number, state: state === 'approved' ? state : 'unknown' });
    approvals.get(approval).then(
      (now) => found(now?.state),
      () => found(undefined),
    );
  }

  #queue(open: OpenCall): void {
    open.status = 'queued';
    const inFlight = [...this.#open.values()].filter(({ status }) => status !== 'queued' && status !== 'unsigned');
    if (inFlight.length >= this.#options.core.limits.codeCallsInFlight) return;
    if (this.#isSignedOut()) {
      open.status = 'unsigned';
      open.text = 'the sign-in of its caller has ended';
      return;
    }
    open.status = 'storing';
    if (!open.effect) return this.#send(open.call.number);
    const { name, digest, call } = open;
    this.#recorded.know(call.number, open);
    this.#append([{ type: 'started', number: call.number, name, digest }], {
      type: 'start stored',
      number: call.number,
    });
  }

  /** Starts the calls that waited for their turn. */
  #next(): void {
    for (const open of this.#open.values()) {
      if (open.status === 'queued') this.#queue(open);
      if (open.status === 'queued') return;
    }
  }

  #isSignedOut(): boolean {
    const expiresAt = this.#options.caller.auth?.expiresAt;
    return !this.#attachment && expiresAt !== undefined && expiresAt <= this.#date();
  }

  #send(number: number): void {
    const open = this.#open.get(number);
    if (open?.operation) this.#attempt(open, open.operation);
  }

  /** Takes a call again: its functions are here, or are asked for once more. */
  #again(number: number): void {
    const open = this.#open.get(number);
    if (!open) return;
    this.#callTool(open, argumentsIn(open.call.arguments) ?? []);
    this.#pump();
  }

  /** A request on behalf of a call. */
  #inner(open: OpenCall, operation: Operation, ended: (outcome: Outcome) => void): InnerCall {
    const { core, id, tool, caller } = this.#options;
    return new InnerCall({
      ...{ core, operation, auth: callingAuth(caller, this.#attachment), label: open.of, ended },
      client: callingClient(caller, this.#attachment, open.asTask),
      address: this.#self.address,
      owner: callingOwner(caller, this.#attachment),
      via: { run: id, call: open.call.number, tool },
      traceparent: this.#attachment && requestContextOf(this.#attachment.ctx).current.span?.traceparent,
    });
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
    if (!this.#busy) this.#settle();
    inner.start();
  }

  #outcome(number: number, attempt: number, outcome: Outcome): void {
    const open = this.#open.get(number);
    if (!open || open.attempt !== attempt) return;
    if (outcome.ok && outcome.result.kind === 'input') {
      const { requests, state } = outcome.result;
      // The client that has answered is asked again.
      const asks = { askedBy: undefined, waiting: undefined, round: open.round + 1, status: 'storing' } as const;
      Object.assign(open, asks, { requests, requestState: state });
      return this.#storeQuestion(open);
    }
    if (outcome.ok && outcome.result.kind === 'task created') {
      const { id, pollMs } = outcome.result.task;
      Object.assign(open, { task: id, pollMs, status: 'storing' });
      const { name, digest } = open;
      this.#recorded.know(number, open);
      return this.#append([{ type: 'following', number, name, digest, task: id }], { type: 'wait stored', number });
    }
    const pending = approvalIn(outcome);
    if (pending && WAITS.has(pending.state)) {
      Object.assign(open, { approval: pending.id, text: pending.text, status: 'storing' });
      const { name, digest } = open;
      const held = { type: 'held', number, name, digest, approval: pending.id, text: pending.text } as const;
      return this.#append([held], { type: 'wait stored', number });
    }
    const given = valueOfOutcome(this.#named(open), outcome);
    const isDenied = pending?.state === 'denied' || (!outcome.ok && outcome.error.code === ErrorCode.Forbidden);
    if (isDenied) this.#denials += 1;
    const { codeDenials } = this.#options.core.limits;
    this.#endCall(open, given);
    if (this.#denials >= codeDenials)
      this.#stop('calls', `${this.#denials} of its calls were denied. Do not call what is denied again`);
  }

  #named({ of, raw, call }: OpenCall): NamedCall {
    return { name: of, raw, number: call.number, declared: this.#attachment?.functions.declared(of) };
  }

  #fault(open: OpenCall, error: ScriptFault): void {
    this.#endCall(open, { error });
  }

  #endCall(open: OpenCall, given: CallValue): void {
    const { number } = open.call;
    this.#open.delete(number);
    open.timer?.cancel();
    open.waiting?.abort(new Error('the call has ended'));
    this.#options.counted('call', 'error' in given ? 'failed' : 'succeeded');
    if (this.#end) {
      // The script has ended. Its journal says what was done.
      this.#ended.push(endedOf(open, given));
      if (this.#open.size === 0) this.#record();
      return;
    }
    if (!('error' in given) && given.json !== undefined && open.operation?.method === 'tools/call')
      this.#attachment?.functions.learn(open.of, given.json);
    this.#ready.push({ open, given });
    this.#next();
    // After this turn's calls, so that all that end in it are delivered together.
    if (!this.#busy) this.#pump();
  }

  // Helpers of scripts

  #sleep(open: OpenCall, ms: JsonValue | undefined): void {
    const { limits } = this.#options.core;
    if (typeof ms !== 'number' || !(ms >= 0) || ms > limits.codeSleepMs)
      return this.#fault(open, {
        message: `sleep: expected milliseconds from 0 to ${limits.codeSleepMs} (${durationOf(limits.codeSleepMs)}), got ${shortened(String(ms), 40)}`,
      });
    const { number } = open.call;
    const { name, digest } = open;
    const restored = this.#recorded.take(number)?.sleeping;
    open.due = restored?.due ?? this.#date() + Math.ceil(ms);
    this.#until = Math.max(this.#until, open.due + limits.codeOpenMs);
    this.#expire();
    open.status = 'sleeping';
    if (restored) return this.#wait(number);
    this.#recorded.know(number, open);
    this.#append([{ type: 'sleeping', number, name, digest, due: open.due }], { type: 'wait stored', number });
  }

  #progress(open: OpenCall, [done, total, message]: readonly JsonValue[]): void {
    try {
      const { ctx } = this.#attachment ?? {};
      const text = message === undefined || message === null ? undefined : shortened(String(message), 1_000);
      if (typeof done !== 'number') throw new TypeError('progress: expected a number for what is done');
      this.#reports = true;
      ctx?.progress(done, typeof total === 'number' ? total : undefined, text);
      this.#endCall(open, { value: '', json: undefined });
    } catch (error) {
      this.#fault(open, { message: messageOf(error) });
    }
  }

  /** A question of the script itself. */
  #askSelf(open: OpenCall, [message, schema]: readonly JsonValue[]): void {
    const { number } = open.call;
    const restored = this.#recorded.look(number);
    if (typeof message !== 'string' || message === '' || (schema !== undefined && !isJsonObject(schema)))
      return this.#fault(open, {
        message:
          'ask: expected a message and a JSON Schema of an object, such as ask("Which one?", { type: "object", properties: { name: { type: "string" } } })',
      });
    const requestedSchema = schema ?? { type: 'object', properties: {} };
    const requests = { ask: { method: 'elicitation/create', params: { message, requestedSchema } } } as const;
    Object.assign(open, { requests, round: 1, status: 'storing' });
    if (restored?.answered || restored?.asked) return this.#enter(open);
    this.#storeQuestion(open);
  }

  #read(open: OpenCall, uri: JsonValue | undefined): void {
    if (typeof uri !== 'string')
      return this.#fault(open, {
        message: 'resource: expected the URI of a resource, such as resource("file:///a.txt")',
      });
    Object.assign(open, { operation: { method: 'resources/read', uri, input: undefined } satisfies Operation });
    this.#enter(open);
  }

  // Waiting

  #storeQuestion(open: OpenCall): void {
    if (this.#options.journal.isFull(0)) return this.#full();
    const { name, digest, round, requests, requestState: state } = open;
    const { number } = open.call;
    this.#recorded.know(number, open);
    const asked = {
      type: 'asked',
      number,
      name,
      digest,
      round,
      requests,
      ...(state === undefined ? {} : { state }),
    } as const;
    this.#append([asked], { type: 'question stored', number });
  }

  #asks(number: number): void {
    const open = this.#open.get(number);
    if (!open) return;
    open.status = 'asked';
    if (!this.#busy) this.#settle();
  }

  /** Asks the client that waits, if there is one: all questions that are open now together. */
  #askClient(): void {
    const attachment = this.#attachment;
    if (!attachment) return;
    let asked = 0;
    for (const open of this.#open.values()) if (open.askedBy === attachment) asked += Object.keys(open.requests).length;
    for (const open of this.#open.values()) {
      if (open.status !== 'asked' || open.askedBy === attachment) continue;
      asked += Object.keys(open.requests).length;
      if (asked > MAX_QUESTIONS && asked > Object.keys(open.requests).length) return;
      this.#askFor(open, attachment);
    }
  }

  #askFor(open: OpenCall, attachment: Attachment): void {
    const { number } = open.call;
    const { round, requests } = open;
    open.askedBy = attachment;
    const prefix = `${number}.${round}.`;
    const named = Object.fromEntries(Object.entries(requests).map(([key, request]) => [prefix + key, request]));
    open.waiting = new AbortController();
    askVerbatim(attachment.ctx, named, open.waiting.signal).then(
      (given) => {
        const replies = Object.fromEntries(
          Object.entries(given).map(([key, reply]) => [key.slice(prefix.length), reply]),
        );
        this.#self.send({ type: 'replied', number, round, replies });
      },
      (error: unknown) => this.#self.send({ type: 'unanswered', number, round, by: attachment, error }),
    );
  }

  #replied(number: number, round: number, replies: Readonly<Record<string, Reply>>): void {
    const open = this.#open.get(number);
    if (!open || open.round !== round || open.status !== 'asked') return;
    const responses: Record<string, unknown> = {};
    for (const [key, reply] of Object.entries(replies)) {
      if (!reply.ok)
        return this.#abandon(
          open,
          `the client did not answer a question: ${reply.error.message} (${reply.error.code})`,
        );
      responses[key] = reply.result;
    }
    open.status = 'storing';
    this.#append([{ type: 'answered', number, round, responses }], { type: 'answers stored', number, responses });
  }

  #unanswered({ number, round, by, error }: Extract<RunMail, { type: 'unanswered' }>): void {
    const open = this.#open.get(number);
    if (!open || open.round !== round || open.status !== 'asked' || open.askedBy !== by) return;
    // The request has left, and its client may return.
    if (by !== this.#attachment || by.ctx.signal.aborted) return;
    // Another client of the caller may be able to show it.
    open.waiting = undefined;
    if (error instanceof CannotAsk) return this.#settle();
    this.#abandon(open, `the client did not answer a question: ${messageOf(error)}`);
  }

  /** Ends a call that waits for an answer that will not come. */
  #abandon(open: OpenCall, message: string): void {
    for (const inner of open.inner) inner.cancel(message);
    const hasBegun = open.requestState !== undefined || open.task !== undefined;
    const carriedOut = open.effect && hasBegun ? ('unknown' as const) : false;
    this.#fault(open, { message, tool: open.of, carriedOut });
  }

  /** Continues a call with the answers of the client. */
  #continue(number: number, responses: Readonly<Record<string, unknown>>): void {
    const open = this.#open.get(number);
    if (!open) return;
    const { operation, requestState } = open;
    if (open.task !== undefined) return this.#updateTask(open, open.task, responses);
    if (!operation) return this.#answerSelf(open, responses.ask);
    if (!('input' in operation)) return;
    this.#attempt(open, { ...operation, input: { responses, state: requestState } });
  }

  #answerSelf(open: OpenCall, answer: unknown): void {
    const { action, content } = isObject(answer) ? answer : {};
    if (action === 'accept') return this.#endCall(open, { value: toText(content ?? {}), json: undefined });
    const what = action === 'decline' ? 'declined to answer' : 'did not answer';
    this.#fault(open, {
      message: `ask: the user ${what}`,
      code: action === 'decline' ? 'declined' : 'cancelled',
      carriedOut: false,
    });
  }

  /** Waits for an approval, or for a time. */
  #wait(number: number): void {
    const open = this.#open.get(number);
    if (!open) return;
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
    if (!this.#busy) this.#settle();
  }

  // Tasks

  #watchTask(open: OpenCall, ms: number): void {
    const { number } = open.call;
    open.timer?.cancel();
    open.timer = this.#options.core.system.clock.after(ms, () => this.#self.send({ type: 'poll', number }));
  }

  #poll(number: number): void {
    const open = this.#open.get(number);
    if (open?.task === undefined || open.status !== 'following') return;
    // It looks again with the next sign-in.
    if (this.#isSignedOut()) return this.#watchTask(open, open.pollMs);
    this.#lookAtTask(open, { method: 'tasks/get', taskId: open.task });
  }

  #lookAtTask(open: OpenCall, operation: Operation): void {
    const { number } = open.call;
    this.#inner(open, operation, (outcome) => this.#self.send({ type: 'polled', number, outcome })).start();
  }

  #polled(number: number, outcome: Outcome): void {
    const open = this.#open.get(number);
    if (open?.task === undefined || open.status !== 'following') return;
    if (!outcome.ok || outcome.result.kind !== 'task') {
      // The answers were taken.
      if (outcome.ok) return this.#watchTask(open, open.pollMs);
      return this.#endCall(open, valueOfOutcome(this.#named(open), outcome));
    }
    const { task } = outcome.result;
    if (task.outcome) {
      return this.#endCall(open, valueOfOutcome(this.#named(open), task.outcome));
    }
    if (task.status === 'cancelled')
      return this.#fault(open, {
        message: `the task of ${open.of} was cancelled`,
        tool: open.of,
        carriedOut: 'unknown',
      });
    open.text = task.message ?? '';
    const isAsked = task.status === 'input_required' && Object.keys(task.inputs).length > 0;
    if (!isAsked) return this.#watchTask(open, open.pollMs);
    const asks = { askedBy: undefined, waiting: undefined, round: open.round + 1, status: 'storing' } as const;
    Object.assign(open, asks, { requests: task.inputs });
    this.#storeQuestion(open);
  }

  #updateTask(open: OpenCall, taskId: string, responses: Readonly<Record<string, unknown>>): void {
    open.status = 'following';
    this.#lookAtTask(open, { method: 'tasks/update', taskId, responses });
    if (!this.#busy) this.#settle();
  }

  #decided(number: number, state: string | undefined): void {
    const open = this.#open.get(number);
    if (!open || (open.status !== 'held' && open.status !== 'storing')) return;
    open.waiting = undefined;
    if (state === 'unknown') return this.#fault(open, unknownOutcome(open.of));
    // The call finds its approval, or its denial with the reason.
    if (state === 'approved' || state === 'denied') {
      open.status = 'storing';
      const { name, digest, approval } = open;
      const event = { type: 'started', number, name, digest, approval } as const;
      return this.#append([event], { type: 'start stored', number });
    }
    const why = state === undefined ? 'is gone' : `is ${state}`;
    this.#fault(open, {
      message: `${open.of} was not carried out: its approval ${why}. Call it again to ask again`,
      ...{ tool: open.of, carriedOut: false },
    });
  }

  #due(number: number): void {
    const open = this.#open.get(number);
    if (open) this.#endCall(open, { value: '', json: undefined });
  }

  /** Finds the state of a run that neither computes nor has anything to deliver. */
  #settle(): void {
    if (this.#over || this.#busy || this.#end) return;
    const statuses = new Set([...this.#open.values()].map(({ status }) => status));
    const runs = RUNNING.some((status) => statuses.has(status));
    if (statuses.size === 0 && this.#ready.length === 0)
      return this.#finishes({
        type: 'threw',
        name: 'Error',
        message: 'the script waits for something that no call will settle, such as a promise of its own',
      });
    this.#move(waitIn(statuses, runs || this.#ready.length > 0));
    if (!runs) this.#askClient();
    this.#rests();
    this.#watch();
  }

  /** A run that waits for long needs no memory of the engine: its next delivery begins the script again. */
  #rests(): void {
    this.#rest?.cancel();
    if (!this.#state.hasTag('waiting')) return;
    const { core, engine, id } = this.#options;
    this.#rest = core.system.clock.after(REST_MS, () => {
      if (!this.#busy && this.#state.hasTag('waiting')) engine.drop(id);
    });
  }

  // The request that waits

  #attach(attachment: Attachment): void {
    const { id, tool } = this.#options;
    this.#lost?.cancel();
    const before = this.#attachment;
    this.#attachment = attachment;
    before?.resolve(pausedResult(id, ['another call waits for it now'], tool, undefined));
    const { ctx } = attachment;
    requestContextOf(ctx).allow(this.#options.core.limits.maxTimeoutMs);
    for (const open of this.#open.values()) {
      open.askedBy = undefined;
      if (open.status === 'unsigned') open.status = 'queued';
    }
    this.#next();
    if (!this.#busy) this.#settle();
  }

  #leave(attachment: Attachment, how: Departure, reason: unknown): void {
    if (this.#attachment !== attachment) return;
    if (how === 'moved') return this.#letGo(messageOf(reason), 'stop');
    if (how === 'cancelled') {
      this.#end = { type: 'cancelled', message: messageOf(reason) };
      attachment.reject(reason);
      this.#attachment = undefined;
      return this.#record();
    }
    attachment.reject(reason);
    this.#detach();
    const { core } = this.#options;
    const { askMs } = core.limits;
    this.#lost = core.system.clock.after(askMs, () => {
      // It may still continue by itself.
      if (this.#attachment || this.#state.path !== 'waiting for client') return;
      this.#self.send({ type: 'expired', why: `its client has not returned within ${durationOf(askMs)}` });
    });
  }

  #detach(): void {
    this.#attachment = undefined;
    this.#pause?.cancel();
    this.#pause = undefined;
    for (const open of this.#open.values()) {
      open.askedBy = undefined;
      if (open.status === 'asked') open.waiting = undefined;
    }
    this.#functions = undefined;
    // The row says that no request waits.
    this.#options.journal.append([]).catch((error: unknown) => this.#self.send({ type: 'store failed', error }));
  }

  /** Answers the request that waits if the run waits for long, and its client need not do anything. */
  #watch(): void {
    this.#pause?.cancel();
    this.#pause = undefined;
    const attachment = this.#attachment;
    if (!attachment || isTask(attachment.ctx)) return;
    const { core, settings } = this.#options;
    const { clock } = core.system;
    if (this.#isAsking()) return;
    const waits = this.#state.hasTag('waiting');
    const { deadline } = requestContextOf(attachment.ctx).current;
    const left = Math.max(0, deadline - clock.now() - MARGIN_MS);
    // Waiting does not help if this client cannot do what is missing.
    const longest = this.#state.path === 'waiting for client' ? 0 : settings.waitMs;
    const ms = waits ? Math.min(longest, left) : left;
    if (deadline > 0) this.#pause = clock.after(Math.max(0, Math.ceil(ms)), () => this.#self.send({ type: 'waited' }));
  }

  /** True while the client that waits is asked something. */
  #isAsking(): boolean {
    return [...this.#open.values()].some(({ status, waiting }) => status === 'asked' && waiting !== undefined);
  }

  #waited(): void {
    const attachment = this.#attachment;
    if (!attachment) return;
    // The task waits in its place.
    if (becomeTask(attachment.ctx)) return;
    const { id, tool } = this.#options;
    const waits = [...this.#open.values()].slice(0, 10).map((open) => reasonOfWait(open));
    attachment.resolve(pausedResult(id, waits, tool, this.#until - this.#date()));
    this.#detach();
  }

  // The end

  /** The script has ended. Calls that it does not await have some time. */
  #finishes(end: ScriptEnd): void {
    this.#end = end;
    const { clock } = this.#options.core.system;
    for (const open of [...this.#open.values()])
      if (open.status !== 'running' && open.status !== 'storing') this.#drop(open);
    if (this.#open.size === 0 || end.type === 'stopped' || end.type === 'invalid') return this.#record();
    this.#move('finish');
    this.#finish = clock.after(UNAWAITED_MS, () => this.#self.send({ type: 'finish' }));
  }

  #drop(open: OpenCall): void {
    this.#open.delete(open.call.number);
    open.timer?.cancel();
    open.waiting?.abort(new Error('the script has ended'));
    for (const inner of open.inner) inner.cancel('the script that made this call has ended');
    if (open.approval !== undefined && open.status === 'held') this.#withdraw(open.approval);
    if (open.task !== undefined) this.#inner(open, { method: 'tasks/cancel', taskId: open.task }, () => {}).start();
    const began = open.inner.length > 0;
    this.#unfinished.push({ name: open.of, effect: open.effect && began });
  }

  /** A call that waits for other people will not be made. */
  #withdraw(approval: string): void {
    const { approvals, caller } = this.#options;
    const by = { principal: caller.principal, reason: 'the script that made the call has ended' };
    // It may be decided meanwhile.
    approvals.revoke(approval, by).catch(() => {});
  }

  #stop(why: Extract<ScriptEnd, { type: 'stopped' }>['why'], message: string): void {
    if (this.#over) return;
    this.#end = { type: 'stopped', why, message };
    this.#record();
  }

  #full(): void {
    const { codeJournalLength } = this.#options.core.limits;
    this.#stop(
      'output',
      `its calls have returned more than ${codeJournalLength} characters together (the server's option is limits.codeJournalLength). Ask them for less, or do the work in several scripts`,
    );
  }

  /** Stores the end. */
  #record(): void {
    if (this.#result || this.#over) return;
    const end = this.#end ?? { type: 'stopped', why: 'engine', message: 'it has ended without a reason' };
    const { engine, id, core } = this.#options;
    engine.drop(id);
    this.#finish?.cancel();
    // The script has not learned of their ends.
    for (const { open, given } of this.#ready.splice(0)) this.#ended.push(endedOf(open, given));
    for (const open of [...this.#open.values()]) this.#drop(open);
    const { codeResultLength: maxLength } = core.limits;
    const length = lengthOfWhole(end, maxLength);
    const report = {
      ...{ calls: this.#ended, logs: this.#logs, unfinished: this.#unfinished, maxLength },
      resource: length > 0 ? this.#options.keeps(length) : undefined,
    };
    this.#move(EVENT_OF_END[end.type]);
    this.#result = resultOfEnd(end, report, returnedBlocks(end, this.#blocks));
    this.#until = this.#date() + core.limits.askMs;
    const ended = { type: 'ended', how: this.#state.path, ...this.#result } as const;
    this.#log.event(ended, this.#date());
    this.#options.journal.append([ended]).then(
      () => this.#self.send({ type: 'end stored' }),
      (error: unknown) => {
        // Its result is known, although no other process will know it.
        core.system.incident(this.#self.address, error);
        this.#self.send({ type: 'end stored' });
      },
    );
  }

  #conclude(): void {
    if (this.#over) return;
    if (!this.#result) {
      this.#record();
      return;
    }
    const attachment = this.#attachment;
    this.#over = true;
    this.#attachment = undefined;
    this.#silence();
    this.#options.counted('run', this.#state.path);
    attachment?.resolve(resultOf(this.#result));
    this.#options.gone(this.#result);
  }

  /** The journal cannot be written: another process has it, or the store fails. Nothing may happen after it. */
  #failed(error: unknown): void {
    if (this.#over) return;
    const incident = this.#options.core.system.incident(this.#self.address, error);
    this.#end = {
      type: 'stopped',
      why: 'engine',
      message: `what it does could not be stored, so that nothing more was done (incident ${incident} in the log of the server)`,
    };
    this.#record();
  }

  /** Leaves this process. */
  #letGo(reason: string, how: LettingGo): void {
    const { engine, id, journal, tool } = this.#options;
    if (how === 'end') {
      this.#end = { type: 'cancelled', message: reason };
      return this.#record();
    }
    engine.drop(id);
    this.#over = true;
    this.#silence();
    for (const open of this.#open.values()) {
      open.timer?.cancel();
      // The next process finds what waits for answers, and asks no question again. What runs ends with this process.
      if (open.status === 'held') open.waiting?.abort(new Error(reason));
      if (open.status === 'running') for (const inner of open.inner) inner.cancel(reason);
    }
    const attachment = this.#attachment;
    this.#attachment = undefined;
    // Its signal does not end this request, because this node stays.
    const isAnswered = attachment !== undefined && how !== 'stop' && isInFlight(attachment);
    if (isAnswered) attachment.resolve(pausedResult(id, [reason], tool, this.#until - this.#date()));
    else if (attachment) leave(attachment, reason);
    const close = (): void => {
      journal.close(`another process continues the run ${id}`);
      this.#options.gone(undefined);
    };
    if (!isAnswered || how === 'discard') return close();
    // The stored row says that no request waits, so the next node resumes the run. If the write fails, the client's `resume` does that.
    this.#left = journal.append([]).then(close, close);
  }

  #silence(): void {
    for (const timer of [this.#expiry, this.#pause, this.#finish, this.#lost, this.#rest, this.#retry]) timer?.cancel();
  }

  #expire(): void {
    this.#expiry?.cancel();
    const { clock } = this.#options.core.system;
    const why = "it was open for too long (the server's option is limits.codeOpenMs)";
    this.#expiry = afterAny(clock, Math.max(0, this.#until - this.#date()), () =>
      this.#self.send({ type: 'expired', why }),
    );
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
    if (path === STATE_OF_WAIT.get(type)) return;
    if (!this.#step(type)) throw new Error(`script run: expected an event that "${path}" accepts, got "${type}"`);
  }
}

/** The states that last while what the run waits for stays the same. */
const STATE_OF_WAIT: ReadonlyMap<ScriptRunEvent['type'], ScriptRunState> = new Map([
  ['call', 'calling'],
  ['ask', 'waiting for client'],
  ['hold', 'waiting for approval'],
  ['follow', 'waiting for task'],
  ['sleep', 'waiting for clock'],
]);

/** The event by which a run begins to wait for calls in these states. */
function waitIn(statuses: ReadonlySet<OpenCall['status']>, runs: boolean): ScriptRunEvent['type'] {
  if (runs) return 'call';
  if (statuses.has('asked') || statuses.has('unsigned')) return 'ask';
  return statuses.has('held') ? 'hold' : statuses.has('following') ? 'follow' : 'sleep';
}

/** True while the client of a request waits for its response. A task, or a question to the client, has answered the request. */
function isInFlight({ ctx }: Attachment): boolean {
  return !ctx.signal.aborted && !requestContextOf(ctx).current.settled;
}

/** The next process continues the request, which ends here by its signal: an error before that would be its outcome. */
function leave({ ctx: { signal }, reject }: Attachment, reason: string): void {
  const left = (): void => reject(new Unanswered(reason));
  if (signal.aborted) left();
  else signal.addEventListener('abort', left, { once: true });
}

const EVENT_OF_END = {
  returned: 'return',
  threw: 'fail',
  invalid: 'fail',
  stopped: 'stop',
  cancelled: 'cancel',
} as const;

/** Machines take a key by which an event happens once. */
function hasKey(
  element: { readonly access?: { readonly machine?: unknown } | undefined } | undefined,
  args: Readonly<Record<string, JsonValue>>,
): boolean {
  return element?.access?.machine !== undefined && typeof args.idempotencyKey === 'string';
}
