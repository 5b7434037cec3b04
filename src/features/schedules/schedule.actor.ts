/**
 * The actor of one schedule of a server. A slot and its successor become durable before the handler begins, and its result before
 * the next slot. Slots never overlap. See docs/schedules.md.
 */
import { type ScheduleEvent, scheduleMachine } from '../../../machines/schedule.ts';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../../core/kernel/actor.ts';
import { delayAfter } from '../../core/kernel/back-off.ts';
import { afterAny, isoOf, type Timer } from '../../core/kernel/clock.ts';
import type { Charted, Facts, Waits } from '../../core/kernel/inspection/records.ts';
import { errorFields } from '../../core/kernel/operator-log.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { step } from '../../core/kernel/step.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { running } from '../../core/requests/running.ts';
import type { Attempts } from '../../core/store/attempts.ts';
import type { Store, Stored, Write } from '../../core/store/store.ts';
import type { MissedSlots, ScheduleContext, ScheduleSlot } from './schedule-definition.ts';
import type { LastRun, ScheduleDefinition, ScheduleMail } from './schedule-messages.ts';
import { type RunningSlot, readSchedule, type StoredSchedule, writesOfSchedule } from './schedule-row.ts';
import { continuedFrom, dueSlot, nextDue, offsetOf } from './schedule-slots.ts';

/** Number of times that a slot begins, if the process ends each time. */
const MOST_ATTEMPTS = 3;
/** Milliseconds between two looks at a wall clock. */
const LOOK_MS = 30_000;
/** Delays of a store that rejects. */
const BACK_OFF = { fromMs: 100, toMs: 60_000 };

interface ScheduleServices {
  readonly system: ActorSystem;
  readonly store: Store;
  /** Milliseconds since 1970. */
  date(): number;
  /** Milliseconds for which a handler may go on when this process lets go of the schedule. */
  readonly graceMs: number;
  /** Counts a run that begins, late by so many milliseconds. */
  began(lateMs: number): void;
  readonly attempts: Attempts;
}

/** A schedule as its table sees it. */
export interface LiveSchedule extends Actor<ScheduleMail> {
  /** The date of the next slot in milliseconds since 1970, if this process runs the schedule. */
  next(): number | undefined;
  /** True while its handler runs. */
  readonly busy: boolean;
  /** True if this process runs it. */
  readonly here: boolean;
  status(): ScheduleStatus;
  facts(): Facts;
}

/** A schedule as an operator sees it. Dates are milliseconds since 1970. */
export interface ScheduleStatus {
  readonly name: string;
  readonly state: string;
  /** Its pattern as a text. */
  readonly dates: string;
  readonly missed: MissedSlots;
  readonly next: number | undefined;
  /** The slot that runs. */
  readonly running: RunningSlot | undefined;
  readonly result: LastRun | undefined;
}

export function spawnSchedule(id: string, definition: ScheduleDefinition, services: ScheduleServices): LiveSchedule {
  const identity = { kind: 'schedule', address: id, label: definition.name } as const;
  let behaviour: Schedule | undefined;
  const actor = spawn<ScheduleMail>(identity, services.system, (self) => {
    behaviour = new Schedule(id, definition, services, self);
    return behaviour;
  });
  return {
    mailbox: actor.mailbox,
    stop: (why) => actor.stop(why),
    next: () => behaviour?.next(),
    get busy() {
      return behaviour?.busy ?? false;
    },
    get here() {
      return behaviour?.here ?? false;
    },
    status() {
      if (!behaviour) throw new Error('expected a schedule that was spawned');
      return behaviour.status();
    },
    facts: () => behaviour?.facts() ?? {},
  };
}

/** A run of the handler. */
interface Run {
  readonly number: number;
  readonly slot: RunningSlot;
  readonly abort: AbortController;
  readonly began: number;
  deadline: Timer | undefined;
}

class Schedule implements Behaviour<ScheduleMail> {
  readonly #id: string;
  readonly #services: ScheduleServices;
  readonly #self: Mailbox<ScheduleMail>;
  #definition: ScheduleDefinition;
  #state = scheduleMachine.initial;
  #term = 0;
  #stored: StoredSchedule | undefined;
  /** The write that is on its way, or that is tried again. */
  #writes: readonly Write[] = [];
  #failures = 0;
  /** Waits for the next slot, or until the store is tried again. */
  #timer: Timer | undefined;
  #run: Run | undefined;
  #runs = 0;
  /** A run that an operator or the program has asked for. */
  #asked = false;
  #left: (() => void)[] = [];

  constructor(id: string, definition: ScheduleDefinition, services: ScheduleServices, self: Mailbox<ScheduleMail>) {
    this.#id = id;
    this.#definition = definition;
    this.#services = services;
    this.#self = self;
  }

  get busy(): boolean {
    return this.#state.hasTag('busy');
  }

  get here(): boolean {
    return this.#state.path !== 'live.away' && this.#state.status === 'active';
  }

  next(): number | undefined {
    return this.here && this.#stored ? nextDue(this.#definition.plan, this.#stored, this.#offset) : undefined;
  }

  state(): string {
    return this.#state.path.replace(/^live\./, '');
  }

  chart(): Charted {
    return this.#state.charted();
  }

  status(): ScheduleStatus {
    const { name, plan } = this.#definition;
    const { result, running: slot } = this.#stored ?? {};
    const about = { name, state: this.state(), dates: plan.pattern.text, missed: plan.missed };
    return { ...about, next: this.next(), running: slot, result };
  }

  facts(): Facts {
    const { dates, missed, next, running: slot, result } = this.status();
    return {
      ...{ dates, 'missed slots': missed },
      ...(next !== undefined && { next: isoOf(next) }),
      ...(slot && { running: isoOf(slot.at), attempt: slot.attempt }),
      ...(result && { 'last slot': result.scheduledFor, 'last run': isoOf(result.began), 'took ms': result.tookMs }),
      ...(result?.manual && { 'started by': 'hand' }),
      ...(result?.incident !== undefined && { 'failed with incident': result.incident }),
    };
  }

  waits(): readonly Waits[] {
    const { clock } = this.#services.system;
    const next = this.next();
    if (next === undefined) return [];
    return [{ what: 'its next slot', until: clock.now() + next - this.#services.date() }];
  }

  receive(mail: ScheduleMail): void {
    switch (mail.type) {
      case 'take':
        return this.#take();
      case 'loaded':
        return mail.term === this.#term ? this.#loaded(mail.stored) : undefined;
      case 'stored':
        return mail.term === this.#term ? this.#durable() : undefined;
      case 'failed':
        return mail.term === this.#term ? this.#failed(mail.error) : undefined;
      case 'again':
        return mail.term === this.#term ? this.#again() : undefined;
      case 'due':
        return mail.term === this.#term ? this.#begin() : undefined;
      case 'run':
        this.#asked = true;
        return this.#begin();
      case 'deadline':
        return mail.run === this.#run?.number ? this.#late(this.#run) : undefined;
      case 'ended':
        return mail.run === this.#run?.number ? this.#ended(this.#run, mail.failure) : undefined;
      case 'leave':
        return this.#leave(mail.flush, () => mail.left());
      case 'given up':
        if (mail.run === this.#run?.number && this.#step('leave')) this.#handOver();
        return;
      case 'redefine':
        return this.#redefine(mail.definition);
      case 'remove':
        return this.#remove();
    }
  }

  crashed(mail: ScheduleMail, error: unknown): void {
    this.#services.system.incident(`${this.#id} (${mail.type})`, error);
    if (mail.type === 'leave') mail.left();
  }

  get #offset(): number {
    return offsetOf(this.#definition.plan, this.#id);
  }

  /** Takes an event. @returns false if the chart does not accept it now */
  #step(type: ScheduleEvent['type']): boolean {
    const { inspection } = this.#services.system;
    const next = step(this.#state, { type }, { inspection, actor: this.#id });
    if (next) this.#state = next;
    return next !== undefined;
  }

  #take(): void {
    if (!this.#step('take')) return;
    this.#term += 1;
    this.#failures = 0;
    this.#load();
  }

  #load(): void {
    const { store } = this.#services;
    const term = this.#term;
    store.load(this.#id).then(
      (stored) => this.#self.send({ type: 'loaded', term, stored }),
      (error: unknown) => this.#self.send({ type: 'failed', term, error }),
    );
  }

  #loaded(row: Stored | undefined): void {
    const { plan, name } = this.#definition;
    const now = this.#services.date();
    let found: StoredSchedule | undefined;
    try {
      found = readSchedule(this.#id, row);
    } catch (error) {
      return this.#failed(error);
    }
    this.#failures = 0;
    if (found?.running) return this.#resume(found, found.running);
    if (found?.timing !== plan.pattern.text) return this.#plan(found);
    this.#stored = { ...found, ...continuedFrom(found, now) };
    if (this.#stored.last !== found.last)
      this.#services.system.log(
        'warning',
        `schedule "${name}": its last slot was ${isoOf(found.last)}, and it is ${isoOf(now)}: the clock was wrong before. Its slots count from now on`,
        { event: 'program' },
      );
    this.#step('read');
    this.#wait();
  }

  /** The process ended while a slot ran: it runs again, unless it was the cause too often. */
  #resume(found: StoredSchedule, slot: RunningSlot): void {
    const { name } = this.#definition;
    const { system } = this.#services;
    this.#stored = found;
    this.#step('due');
    const at = isoOf(slot.at);
    if (slot.attempt < MOST_ATTEMPTS) {
      system.log('warning', `schedule "${name}": the slot of ${at} was interrupted, and runs again`, {
        event: 'program',
      });
      return this.#claim({ ...slot, attempt: slot.attempt + 1 });
    }
    const error = new Error(`the process ended ${slot.attempt} times during the slot of ${at}: it is given up`);
    const incident = this.#services.attempts.dead(`schedule "${name}"`, error);
    const letter = { actor: this.#id, mail: `slot ${at}`, error: error.message, attempts: slot.attempt };
    const now = Math.round(this.#services.date());
    this.#write({ ...found, running: undefined, result: { scheduledFor: at, began: now, tookMs: 0, incident } }, [
      { type: 'dead letter', letter: { ...letter, at: now, incident } },
    ]);
  }

  /** Stores from which date its slots count: a slot that passes while the process is down is then known as missed. */
  #plan(before: StoredSchedule | undefined): void {
    const now = Math.floor(this.#services.date());
    this.#step('plan');
    const timing = this.#definition.plan.pattern.text;
    this.#write({ ...before, anchor: before?.anchor ?? now, timing, last: now });
    if (!before && this.next() === undefined)
      this.#services.system.log('warning', `schedule "${this.#definition.name}": its dates are all in the past`, {
        event: 'program',
      });
  }

  #write(stored: StoredSchedule, more: readonly Write[] = []): void {
    this.#stored = stored;
    const { name } = this.#definition;
    this.#writes = [...writesOfSchedule(this.#id, name, stored, this.#services.date(), this.next()), ...more];
    this.#commit();
  }

  #commit(): void {
    const term = this.#term;
    this.#services.store.commit(this.#writes).then(
      () => this.#self.send({ type: 'stored', term }),
      (error: unknown) => this.#self.send({ type: 'failed', term, error }),
    );
  }

  /** The store is tried again: a result is not lost, and no slot runs that is not stored. */
  #failed(error: unknown): void {
    const { system } = this.#services;
    this.#failures += 1;
    const ms = delayAfter(BACK_OFF, this.#failures);
    // Once, and each time that the delay is the longest.
    if (this.#failures === 1 || ms === BACK_OFF.toMs)
      system.log('warning', `schedule "${this.#definition.name}" waits for the store: ${messageOf(error)}`, {
        ...errorFields('store', error),
      });
    const term = this.#term;
    this.#timer?.cancel();
    this.#timer = system.clock.after(ms, () => this.#self.send({ type: 'again', term }));
  }

  #again(): void {
    if (this.#state.hasTag('storing')) this.#commit();
    else this.#load();
  }

  #durable(): void {
    this.#failures = 0;
    const slot = this.#stored?.running;
    switch (this.#state.path) {
      case 'live.claiming':
        this.#step(slot ? 'stored' : 'pass');
        return slot ? this.#runSlot(slot) : this.#wait();
      case 'live.handing':
        this.#step('stored');
        return this.#gone();
      default:
        this.#step('stored');
        return this.#wait();
    }
  }

  /** Waits for the next slot. It begins at once if it is due, such as after a long run. */
  #wait(): void {
    const { plan } = this.#definition;
    if (this.#state.path !== 'live.waiting' || !this.#stored) return;
    if (this.#stored.timing !== plan.pattern.text) return this.#plan(this.#stored);
    this.#timer?.cancel();
    this.#timer = undefined;
    const next = this.next();
    if (this.#asked || (next !== undefined && next <= this.#services.date())) return this.#begin();
    if (next === undefined) return;
    const { clock } = this.#services.system;
    const term = this.#term;
    const ms = Math.ceil(next - this.#services.date());
    // The time of a timer does not pass while the machine is suspended, and the wall clock may be set.
    const most = clock.wall && !clock.dateIsSteady ? LOOK_MS : ms;
    this.#timer = afterAny(clock, Math.min(ms, most), () => this.#self.send({ type: 'due', term }));
  }

  #begin(): void {
    if (this.#state.path !== 'live.waiting' || !this.#stored) return;
    const now = this.#services.date();
    const due = dueSlot(this.#definition.plan, this.#stored, this.#offset, now);
    const asked = this.#asked;
    this.#asked = false;
    if (!due && !asked) return this.#wait();
    this.#timer?.cancel();
    this.#step('due');
    if (!due) return this.#claim({ at: Math.floor(now), missed: 0, attempt: 1, manual: true });
    this.#stored = { ...this.#stored, last: due.at };
    if (due.skipped && !asked) return this.#write(this.#stored);
    this.#claim({ at: due.at, missed: due.missed, attempt: 1 });
  }

  #claim(slot: RunningSlot): void {
    if (this.#stored) this.#write({ ...this.#stored, running: slot });
  }

  #runSlot(slot: RunningSlot): void {
    const { name, handler, timeoutMs } = this.#definition;
    const { system, began } = this.#services;
    const { clock, log } = system;
    const abort = new AbortController();
    this.#runs += 1;
    const number = this.#runs;
    const deadline = clock.after(timeoutMs, () => this.#self.send({ type: 'deadline', run: number }));
    const now = this.#services.date();
    this.#run = { number, slot, abort, began: Math.round(now), deadline };
    began(Math.max(0, now - slot.at - this.#offset));
    const scheduledFor = isoOf(slot.at);
    const given: ScheduleSlot = {
      ...{ schedule: name, scheduledFor, missed: slot.missed, attempt: slot.attempt },
      ...(slot.manual && { manual: slot.manual }),
      key: sha256(`${this.#id} ${slot.at}`),
    };
    const ctx: ScheduleContext = {
      signal: abort.signal,
      log: (level, message) => log(level, `schedule "${name}": ${message}`, { event: 'program' }),
    };
    const end = (failure: { readonly error: unknown } | undefined): void =>
      this.#self.send({ type: 'ended', run: number, failure });
    running
      .run({ label: `schedule "${name}"`, request: undefined }, async () => {
        await handler(given, ctx);
      })
      .then(
        () => end(undefined),
        (error: unknown) => end({ error }),
      );
  }

  /** The handler may ignore its signal: its next slot waits all the same. */
  #late({ abort, slot }: Run): void {
    const { name, timeoutMs } = this.#definition;
    const error = new Error(
      `the slot of ${isoOf(slot.at)} has run for ${timeoutMs} ms (its timeoutMs). Its signal aborts, and the next slot waits until the handler ends`,
    );
    this.#services.system.incident(`schedule "${name}"`, error);
    abort.abort(error);
  }

  #ended({ slot, began, deadline, abort }: Run, failure: { readonly error: unknown } | undefined): void {
    deadline?.cancel();
    const leaves = this.#state.path === 'live.leaving';
    // It stopped because this process lets go: another one begins it again.
    const isInterrupted = leaves && failure !== undefined && abort.signal.aborted;
    const { name } = this.#definition;
    const { system, attempts } = this.#services;
    const incident = failure && !isInterrupted ? system.incident(`schedule "${name}"`, failure.error) : undefined;
    this.#run = undefined;
    this.#step('end');
    if (!isInterrupted) attempts.count(failure ? 'failed' : 'done');
    if (this.#state.status === 'done') return this.#forget();
    if (isInterrupted) return this.#handOver();
    const now = Math.round(this.#services.date());
    const times = { scheduledFor: isoOf(slot.at), began, tookMs: Math.max(0, now - began) };
    const result = { ...times, incident, ...(slot.manual && { manual: slot.manual }) };
    if (this.#stored) this.#write({ ...this.#stored, running: undefined, result });
  }

  #leave(flush: boolean, left: () => void): void {
    this.#left.push(left);
    this.#timer?.cancel();
    this.#run?.abort.abort(new Error('this process lets go of the schedule'));
    const { graceMs, system } = this.#services;
    const isRunning = this.#state.path === 'live.running';
    if (!flush || this.#state.path === 'live.away') {
      this.#run?.deadline?.cancel();
      this.#run = undefined;
      this.#step('lose');
      return this.#gone();
    }
    if (this.#state.hasTag('busy') && !isRunning) return;
    this.#step('leave');
    if (!isRunning) return this.#gone();
    const run = this.#run?.number ?? 0;
    system.clock.after(graceMs, () => this.#self.send({ type: 'given up', run }));
  }

  /** The attempt does not count: nothing has crashed. */
  #handOver(): void {
    const { slot } = this.#run ?? {};
    this.#run?.deadline?.cancel();
    this.#run = undefined;
    const stored = this.#stored;
    const begun = slot ?? stored?.running;
    if (stored && begun) this.#write({ ...stored, running: { ...begun, attempt: begun.attempt - 1 } });
  }

  #gone(): void {
    this.#term += 1;
    this.#timer?.cancel();
    for (const left of this.#left.splice(0)) left();
  }

  /** A run that has begun ends as the handler of its time. */
  #redefine(definition: ScheduleDefinition): void {
    this.#definition = definition;
    this.#wait();
  }

  #remove(): void {
    if (!this.#step('remove')) return;
    this.#timer?.cancel();
    if (this.#state.status === 'done') this.#forget();
  }

  #forget(): void {
    this.#gone();
    this.#services.store.commit([{ type: 'forget', actor: this.#id }]).catch((error: unknown) =>
      this.#services.system.log('warning', `${this.#id} stays in the store: ${messageOf(error)}`, {
        ...errorFields('store', error),
      }),
    );
  }
}
