/** An instance in memory and its durable parts: snapshot, timers, steps of its invocations. */

import type { AnyActorRef } from 'xstate';
import { actorAt, actorPath } from '../../core/kernel/charts/system-actors.ts';
import { durationOf } from '../../core/kernel/duration.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import { activeNodes } from '../../core/kernel/xstate-internals.ts';
import { heapBytes } from '../../core/protocol/heap.ts';
import { isObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { TimerRow, Write } from '../../core/store/store.ts';
import { isStepResult, type StepFormat, StepLog, StepStream } from '../asking/step-log.ts';
import { invocationStepLabel, type StepProvider } from './durable-steps.ts';
import { isEvent } from './event-history.ts';
import type { ActedBy, HandleEvent } from './handle-messages.ts';
import { type HandleRecord, handleAddress } from './handle-record.ts';
import { HostedMachine, type Scheduled } from './hosted-machine.ts';
import { type InputsOwner, InstanceInputs } from './instance-inputs.ts';
import { InstanceSchedules, isSlotTimer, planOf } from './instance-schedules.ts';
import type { InstanceServices } from './instance-services.ts';
import type { InstanceSlot } from './instance-slot.ts';
import type { MachineKind } from './machine-definition.ts';
import { EmittedEvents } from './messages/emitted-events.ts';
import { InstanceMessages } from './messages/instance-messages.ts';
import { OUT_TIMER } from './messages/out-message.ts';
import { delaysOf, type Resumption, type StoredInstance, writeStored } from './restore.ts';
import { serializable, serializeSnapshot, TooLarge } from './serializable.ts';

/** The start of an activation: a new instance, or a stored one. */
export type ActivatedFrom =
  | { readonly kind: MachineKind; readonly input: unknown }
  | {
      readonly kind: MachineKind;
      readonly resumption: Resumption;
      readonly stored: StoredInstance;
      readonly timers: readonly TimerRow[];
    };

/** A delay, in milliseconds, and the date at which it ends. */
interface RunningDelay {
  readonly label: string;
  readonly due: number;
  readonly lasts: number;
}

interface KnownTimer {
  readonly mark: object;
  readonly row: TimerRow;
}

/** The messages that an instance may send for each millisecond of its life. Its numbers stay below 2^53. */
const NUMBERS_PER_MS = 1_000;
/** Nesting that XState adds around a context: children and their children. */
const NESTING = 16;

export class Activation implements InputsOwner {
  readonly hosted: HostedMachine;
  readonly inputs: InstanceInputs;
  /** The machine as it was offered when the instance was activated. */
  readonly kind: MachineKind;
  readonly version: string;
  readonly #entry: HandleRecord;
  readonly #host: InstanceServices;
  /** The stored data to resume from. The input of a new instance is not retained here; its machine holds what it needs. */
  readonly #stored: Extract<ActivatedFrom, { readonly stored: unknown }> | undefined;
  /** True once another node owns the instance: its work continues there. */
  movedAway = false;
  /** True once its data is deleted: its work stores nothing any more. */
  erased = false;
  /** Approximate memory of the stored data, as of the last write. */
  bytes = 0;
  #timers = new Map<string, KnownTimer>();
  #closed = new Map<string, string>();
  readonly messages: InstanceMessages;
  readonly schedules: InstanceSchedules;
  /** The schedules of the machine have changed since the instance was stored: its timers are to be written. */
  isReplanned = false;
  /** The streams of the step logs in use, by the path of the invocation. */
  readonly #stepStreams = new Map<string, string>();

  /** @param due receives each slot of a schedule that is due */
  constructor(
    entry: HandleRecord,
    host: InstanceServices,
    from: ActivatedFrom,
    changed: () => void,
    due: (event: HandleEvent, slot: InstanceSlot) => void,
  ) {
    this.#entry = entry;
    this.#host = host;
    this.#stored = 'input' in from ? undefined : from;
    this.kind = from.kind;
    this.version = 'input' in from ? from.kind.version : from.resumption.version;
    this.inputs = new InstanceInputs(this);
    // Another instance of the same key continues above the numbers of the earlier one.
    const { inbox, created } = entry;
    const messages = 'input' in from ? { inbox } : from.stored;
    this.messages = new InstanceMessages(messages, created * NUMBERS_PER_MS, host.limits.maxDepth);
    this.schedules = new InstanceSchedules(entry, host, from.kind, due);
    const machine = 'input' in from ? from.kind.machine : from.resumption.machine;
    const beginning =
      'input' in from ? { input: from.input } : { snapshot: from.resumption.snapshot, entries: from.stored.entries };
    // An instance that finishes on the machine of an earlier version emits nothing: its states may be others.
    const { emits = [] } = this.kind;
    const emitted =
      emits.length > 0 && machine === this.kind.machine
        ? new EmittedEvents(emits, this.messages, entry.principal, host.limits.maxDepth)
        : undefined;
    this.hosted = new HostedMachine(machine, beginning, {
      ...(emitted && { stepped: (step, snapshot) => emitted.stepped(step, snapshot) }),
      timers: host.timers,
      asking: this.inputs,
      steps: (actor) => this.#steps(actor),
      log: (message) =>
        host.log('info', `${entry.id}: ${typeof message === 'string' ? message : messageOf(message)}`, {
          event: 'handle',
        }),
      tells: (action) => this.messages.take(action),
      withoutCall: (step) => host.poisonEvents.runMarked(entry.id, step),
      changed,
    });
    if ('input' in from) emitted?.begins(this.hosted.snapshot);
    else emitted?.resumes(this.hosted.snapshot);
  }

  /** Starts or resumes the machine: restores its timers, and schedules overdue ones for now. Its effects are deferred. */
  start(): void {
    this.hosted.start();
    if (!this.#stored) return;
    const { resumption, timers } = this.#stored;
    const now = this.#host.date();
    const fresh = resumption.migrated ? new Map(delaysOf(resumption.machine, resumption.snapshot)) : undefined;
    for (const row of [...timers].sort((a, b) => a.due - b.due)) {
      if (row.timer === OUT_TIMER || isSlotTimer(row.timer)) continue;
      const scheduled = readTimer(row);
      const known = fresh === undefined || fresh.delete(scheduled.id);
      if (known) this.hosted.schedule(scheduled, Math.max(0, row.due - now));
      // The timer may be obsolete; the next `writes` then deletes it.
      this.#timers.set(row.timer, { mark: row, row });
    }
    for (const [id, ms] of fresh ?? []) this.hosted.schedule({ source: '', target: '', id, event: { type: id } }, ms);
    for (const { key, mark } of this.hosted.scheduled()) {
      const known = this.#timers.get(key);
      if (known) this.#timers.set(key, { mark, row: known.row });
    }
    const isChanged = this.schedules.restore(timers.filter(({ timer }) => isSlotTimer(timer)));
    this.isReplanned = isChanged || this.#entry.plan !== planOf(this.kind);
  }

  /**
   * Returns the data to store.
   *
   * @throws {NotSerializable | Error} for data that cannot be stored
   */
  text(turn: number, failure?: string): string {
    const { limits } = this.#host;
    const snapshot = serializeSnapshot(this.hosted.persisted(), limits.maxDepth + NESTING);
    const { entries } = this.hosted;
    const { used, trace, key } = this.#entry;
    const { sent, inbox } = this.messages;
    const text = writeStored({ snapshot, turn, used, entries, failure, trace, key, sent, inbox });
    if (text.length <= limits.maxHandleLength) {
      this.bytes = bytesOf(text, snapshot);
      return text;
    }
    throw new TooLarge(
      `expected at most ${limits.maxHandleLength} characters of state, got ${text.length} (the server's option is limits.maxHandleLength)`,
    );
  }

  /** Returns the writes for changed timers and for step logs that are no longer needed. */
  writes(): Write[] {
    const { id: actor } = this.#entry;
    const writes: Write[] = [];
    const now = this.#host.date();
    const before = this.#timers;
    this.#timers = new Map();
    for (const timer of this.hosted.scheduled()) {
      const { key, mark, delay } = timer;
      const known = before.get(key);
      before.delete(key);
      if (known?.mark === mark) {
        this.#timers.set(key, known);
        continue;
      }
      const row = { actor, timer: key, due: Math.ceil(now + delay), data: writeTimer(timer) };
      this.#timers.set(key, { mark, row });
      writes.push({ type: 'timer', timer: row });
    }
    for (const timer of before.keys()) writes.push({ type: 'timer off', actor, timer });
    writes.push(...this.schedules.writes());
    for (const [path, stream] of this.#stepStreams) {
      if (isActive(actorAt(this.hosted.actor, path))) continue;
      this.#stepStreams.delete(path);
      this.#entry.footprint.stepsErased(stream);
      writes.push({ type: 'trim', actor, stream, upto: this.#host.limits.maxHandleSteps });
    }
    return writes;
  }

  /** The rows of its timers as last written. */
  timerRows(): readonly TimerRow[] {
    return [...[...this.#timers.values()].map(({ row }) => row), ...this.schedules.rows()];
  }

  /** True if views show the instance. */
  get hasViews(): boolean {
    return this.kind.hasViews === true;
  }

  /** Number of starts of the invocation at a path. */
  startsOf(path: string): number {
    return this.hosted.entries[path] ?? 1;
  }

  /** Notes what happened to a question, for the next change. */
  closed(id: string, what: string): void {
    this.#closed.set(id, what);
  }

  /** Returns what happened to the questions that were closed since the last call, by the id of their invocation. */
  takeClosed(): ReadonlyMap<string, string> {
    const closed = this.#closed;
    if (closed.size > 0) this.#closed = new Map();
    return closed;
  }

  /** Records who answered a question. */
  answered(key: string, by: ActedBy): void {
    const { inspection } = this.#host;
    if (!inspection.on) return;
    const mail = { type: `answer ${key}`, by };
    inspection.record({ type: 'mail', actor: handleAddress(this.#entry), mail });
  }

  /** The delays that are running and the next slots of its schedules, with the dates at which they end, in milliseconds since 1970. */
  delays(): readonly RunningDelay[] {
    const now = this.#host.date();
    const { snapshot } = this.hosted;
    const labels = new Map(
      activeNodes(snapshot).flatMap(({ after }) => after.map(({ delay, eventType }) => [eventType, durationOf(delay)])),
    );
    const delays = this.hosted.scheduled().map(({ key, mark, delay, event, source }) => {
      const known = this.#timers.get(key);
      // A delay that began since the last write has no row.
      const due = known?.mark === mark ? known.row.due : now + delay;
      const label = source === '' ? labels.get(event.type) : undefined;
      return { label: label ?? event.type.replace(/^xstate\.after\.(.+?)\..*$/, '$1'), due, lasts: delay };
    });
    return [...delays, ...this.schedules.next()];
  }

  /** The date at which its next timer is due, in milliseconds since 1970. */
  wakeAt(): number | undefined {
    let earliest = this.schedules.wakeAt();
    for (const { row } of this.#timers.values()) if (earliest === undefined || row.due < earliest) earliest = row.due;
    return earliest;
  }

  /** True while its invocations are running or a call is asking its questions: it then continues without another call. */
  get atWork(): boolean {
    return this.hosted.atWork(this.inputs.isWaiting);
  }

  /** True while something will continue it without a use: a delay, or an invocation, also one that waits for an answer. */
  get pending(): boolean {
    const { hosted } = this;
    return (
      hosted.snapshot.status === 'active' &&
      (hosted.scheduled().length > 0 || hosted.atWork(() => false) || this.kind.schedules !== undefined)
    );
  }

  /**
   * Loads the recorded steps of an invocation.
   *
   * @throws {StoreError} if they cannot be read
   */
  async #steps(invocation: AnyActorRef): Promise<StepProvider> {
    const path = actorPath(invocation);
    const { store, limits } = this.#host;
    const { id: actor, footprint } = this.#entry;
    const stream = `steps/${path}.${this.hosted.entries[path] ?? 1}`;
    this.#stepStreams.set(path, stream);
    const storage = new StepStream({
      store,
      actor,
      stream,
      format: STEP_FORMAT,
      maxSteps: limits.maxHandleSteps,
      maxLength: Number.POSITIVE_INFINITY,
      limit: "invocation (the server's option is limits.maxHandleSteps)",
      label: invocationStepLabel,
      fresh: false,
      movedAway: () => this.movedAway,
      erased: () => this.erased,
    });
    let bytes = 0;
    const memory = {
      hold: (more: number, forced?: 'forced'): string | undefined => {
        const excess = forced
          ? footprint.steps(stream, bytes + more, forced)
          : this.#host.directory.takesSteps(this.#entry, stream, bytes + more);
        if (!excess) bytes += more;
        return excess?.message;
      },
      free: (less: number): void => {
        bytes -= less;
        footprint.steps(stream, bytes, 'forced');
      },
    };
    const { step } = new StepLog({
      remembersFailures: false,
      recorded: Object.fromEntries(await storage.read()),
      storage,
      memory,
      maxLength: Number.POSITIVE_INFINITY,
      label: invocationStepLabel,
      // The result of `serializable` is JSON data.
      copy: (result, label) => serializable(result, label, limits.maxDepth) as JsonValue,
    });
    return { key: sha256(`${actor} ${stream}`), step };
  }
}

/** A step is an event of its name, and its data is its result. */
const STEP_FORMAT: StepFormat = {
  write: (name, result) => ({ kind: name, data: toText(result) }),
  read({ kind, data }) {
    const result = fromText(data, `step "${kind}"`);
    if (isStepResult(result)) return { name: kind, result };
    throw new Error(`step "${kind}": expected the result of the step in a list, got ${data.slice(0, 40)}`);
  },
};

/** Length in characters up to which the memory of a text's values is estimated from the length alone. */
const SHORT = 4_096;
const FACTOR = 5;

/** Approximates the memory of the stored data of an instance, both as text and as values, without the fixed cost of an instance. */
export function bytesOf(text: string, snapshot: unknown): number {
  return text.length <= SHORT ? FACTOR * text.length : heapBytes(text) + heapBytes(snapshot);
}

function writeTimer({ source, target, id, event }: Scheduled): string {
  return toText({ source, target, id, event });
}

/** @throws {StoreError | Error} for text that {@link writeTimer} did not write */
function readTimer({ actor, timer, data }: TimerRow): Omit<Scheduled, 'key' | 'mark' | 'delay'> {
  const value: unknown = fromText(data, `${actor}: timer ${timer}`);
  if (isObject(value)) {
    const { source, target, id, event } = value;
    if (typeof source === 'string' && typeof target === 'string' && typeof id === 'string' && isEvent(event))
      return { source, target, id, event };
  }
  throw new Error(`${actor}: timer ${timer}: expected a stored timer, got ${data.slice(0, 80)}`);
}

function isActive(actor: AnyActorRef | undefined): boolean {
  const snapshot: unknown = actor?.getSnapshot();
  return isObject(snapshot) && snapshot.status === 'active';
}
