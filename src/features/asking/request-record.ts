/** The durable record of one request: its steps, the checkpoint of its statechart, and the call. Each result is committed before it is used. */
import type { Limits } from '../../core/kernel/limits.ts';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { JsonObject, JsonValue } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { ActorRow, Store, Write } from '../../core/store/store.ts';
import { type StepFormat, type StepResult, type StepStorage, StepStream } from './step-log.ts';

/** Stores the steps of a request and the checkpoint of its statechart. */
export interface RequestStorage extends StepStorage {
  /** An external name of the request, the same in every run. */
  readonly key: string;
  /**
   * Replaces the checkpoint of a statechart. Resolves when it is durable.
   *
   * @param due due date of its first timer, in milliseconds since 1970
   * @throws {Error} if it cannot be persisted
   */
  saveCheckpoint(checkpoint: string, due: number | undefined): Promise<void>;
}

interface RequestRecordOptions {
  readonly store: Store;
  readonly limits: Pick<Limits, 'maxSteps' | 'maxStepsLength'>;
  readonly actor: string;
  readonly principal: string;
  /** Returns the row of its actor. */
  row(): ActorRow;
  /** Returns the data to run the request again; undefined if it is stored elsewhere. */
  call(): string | undefined;
  /** No earlier run can have recorded anything. */
  readonly fresh: boolean;
}

/** The event stream with the steps of an actor. */
export const STEPS = 'steps';
/** The event stream whose last event is the checkpoint of a statechart. */
const CHECKPOINTS = 'places';
/** The stream of one event: the data to run a request again whose client has not returned. */
const CALL = 'call';
/** The only timer of a request: the first one of its statechart. */
const CHECKPOINT_TIMER = 'place';
/** More than a stream of checkpoints ever holds, because each commit deletes the previous one. */
const MOST_CHECKPOINTS = 8;

/** Names a step of a request in errors. */
export function stepLabel(name: string): string {
  return `ctx.step("${name}")`;
}

/** A step is a list: its name, then its result. */
const FORMAT: StepFormat = {
  write: (name, result) => ({ kind: 'step', data: toText([name, ...result]) }),
  read({ data }) {
    const read = fromText(data, 'a step');
    if (!Array.isArray(read)) return undefined;
    const [name, ...result]: readonly JsonValue[] = read;
    return typeof name === 'string' ? { name, result } : undefined;
  },
};

export class RequestRecord implements RequestStorage {
  readonly #options: RequestRecordOptions;
  readonly #steps: StepStream;
  #ended = false;
  /** Another process continues the request. */
  #continuedElsewhere = false;
  #begun = false;
  /** The number of the last checkpoint; undefined until it is known. */
  #lastCheckpoint: number | undefined;
  #timed = true;

  constructor(options: RequestRecordOptions) {
    this.#options = options;
    const { store, limits, actor, fresh, row } = options;
    this.#steps = new StepStream({
      store,
      actor,
      stream: STEPS,
      format: FORMAT,
      maxSteps: limits.maxSteps,
      maxLength: limits.maxStepsLength,
      limit: "request, got one more. Combine several steps into one (the server's option is limits.maxSteps)",
      label: stepLabel,
      fresh,
      more: () => (this.begun ? [] : [{ type: 'actor', actor: row() }]),
    });
    if (!fresh) return;
    this.#lastCheckpoint = 0;
    this.#timed = false;
  }

  /** Reads the recorded steps from the store. */
  static async steps(store: Store, actor: string, limit: number): Promise<JsonObject> {
    const steps: Record<string, JsonValue> = Object.create(null);
    for (const event of await store.events(actor, STEPS, 0, limit)) {
      const step = FORMAT.read(event);
      if (step) steps[step.name] = step.result;
    }
    return steps;
  }

  /** Reads the last checkpoint of a request's statechart from the store; undefined if there is none. */
  static async checkpoint(store: Store, actor: string): Promise<string | undefined> {
    return (await store.events(actor, CHECKPOINTS, 0, MOST_CHECKPOINTS)).at(-1)?.data;
  }

  /** Reads the stored call of the request. */
  static async call(store: Store, actor: string): Promise<JsonValue | undefined> {
    const [event] = await store.events(actor, CALL, 0, 1);
    return event && fromText(event.data, `${actor}, its call`);
  }

  /** The principal of its caller. */
  get principal(): string {
    return this.#options.principal;
  }

  get key(): string {
    return sha256(this.#options.actor);
  }

  /** True if the store holds anything of this run, as far as this process knows. */
  get begun(): boolean {
    return this.#begun || this.#steps.begun;
  }

  /**
   * Ends the record: steps that still run are no longer recorded.
   *
   * @param continuedElsewhere another process runs the request again, so no step may start here or return its result
   */
  end(continuedElsewhere = false): void {
    this.#ended = true;
    this.#continuedElsewhere ||= continuedElsewhere;
  }

  async before(name: string): Promise<StepResult | undefined> {
    if (!this.#continuedElsewhere) return this.#steps.before(name);
    throw new Error(`${stepLabel(name)} was not run: this server is stopping, and the next process continues the call`);
  }

  async record(name: string, result: StepResult): Promise<void> {
    if (this.#continuedElsewhere)
      throw new Error(
        `${stepLabel(name)} has run, but its result could not be persisted: this server is stopping, and the next process continues the call`,
      );
    if (!this.#ended) await this.#steps.record(name, result);
  }

  failed(name: string): void {
    this.#steps.failed(name);
  }

  bytesOf(result: StepResult): number {
    return this.#steps.bytesOf(result);
  }

  /** One at a time: the caller waits for the previous one. Each commit includes the row, which extends its lifetime. */
  async saveCheckpoint(checkpoint: string, due: number | undefined): Promise<void> {
    if (this.#ended) return;
    const { actor, store, row, call } = this.#options;
    this.#lastCheckpoint ??= (await store.streams(actor)).find(({ stream }) => stream === CHECKPOINTS)?.last ?? 0;
    const seq = this.#lastCheckpoint + 1;
    const writes: Write[] = [
      { type: 'actor', actor: row() },
      { type: 'event', actor, stream: CHECKPOINTS, seq, kind: 'place', data: checkpoint },
    ];
    const data = seq === 1 ? call() : undefined;
    if (data !== undefined) writes.push({ type: 'event', actor, stream: CALL, seq: 1, kind: CALL, data });
    if (seq > 1) writes.push({ type: 'trim', actor, stream: CHECKPOINTS, upto: seq - 1 });
    if (due !== undefined) writes.push({ type: 'timer', timer: { actor, timer: CHECKPOINT_TIMER, due, data: 'null' } });
    else if (this.#timed) writes.push({ type: 'timer off', actor, timer: CHECKPOINT_TIMER });
    this.#timed = due !== undefined;
    // No later commit may use this number, whether or not this one succeeds.
    this.#lastCheckpoint = undefined;
    this.#begun = true;
    await store.commit(writes);
    this.#lastCheckpoint = seq;
  }
}
