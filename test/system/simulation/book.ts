/** What the clients of a simulated world have been told, and may rely on: tasks, recorded steps, entries of the ledger. */
import type { Era } from './roster.ts';

/** Statuses that a task does not leave (I6). */
const TERMINAL: ReadonlySet<unknown> = new Set(['completed', 'failed', 'cancelled']);

/** What is to happen in simulated worlds, again and again: where it does not, they prove nothing. */
export const HAPPENINGS = [
  'answered',
  'asked',
  'became a task',
  'busy',
  'crash',
  'ended for good',
  'entry kept',
  'failed with the disk',
  'handle',
  'handle in another process',
  'kept from others',
  'repeat refused',
  'resumed',
  'resumed in another process',
  'sent again',
  'state refused',
  'step not run again',
  'storm',
  'stream resumed',
  'task ended',
  'task ended in another process',
  'told of a change',
  'zombie',
] as const;

export type Happening = (typeof HAPPENINGS)[number];

/** A task that a client has been told of. */
export interface KnownTask {
  readonly id: string;
  /** Who may reach it: an owner of the roster, or one session of somebody who has no name. */
  readonly reach: string;
  readonly nonce: string;
  /** In the time of the world. */
  readonly until: number;
  /** The number of the process that told of it. */
  readonly generation: number;
  /** The last status that somebody was told. */
  status: unknown;
  /** How it looked when it had ended, in each era. */
  readonly ended: Map<Era, string>;
  /** Keys of questions that the server has acknowledged the answers to. */
  readonly answered: Set<string>;
  /** Keys that are open, as far as its clients know, and what they ask. */
  inputs: ReadonlyMap<string, unknown>;
}

export class Book {
  readonly #violated: (what: string) => void;
  /** Told tasks, in the order in which they were told. */
  readonly tasks = new Map<string, KnownTask>();
  /** Entries of the ledger that were acknowledged: number and nonce. */
  readonly ledger = new Map<number, string>();
  /** Steps that have been recorded, by nonce. */
  readonly #recorded = new Map<string, Set<string>>();
  /** Steps that must not run any more. */
  readonly #owed = new Map<string, Set<string>>();

  constructor(violated: (what: string) => void) {
    this.#violated = violated;
  }

  created(task: Omit<KnownTask, 'ended' | 'answered' | 'inputs'>): void {
    if (this.tasks.has(task.id)) this.#violated(`I4: the id of the task of ${task.nonce} was handed out twice`);
    this.tasks.set(task.id, { ...task, ended: new Map(), answered: new Set(), inputs: new Map() });
  }

  /** Somebody was shown a task. @param whole everything that was shown, but what says nothing of the task itself */
  looked(task: KnownTask, era: Era, status: unknown, whole: string): void {
    const before = task.ended.get(era);
    if (before !== undefined && before !== whole)
      this.#violated(`I6: the task of ${task.nonce} had ended, and changed: ${before} became ${whole}`);
    if (TERMINAL.has(status)) task.ended.set(era, whole);
    else if (task.ended.size > 0) this.#violated(`I6: the task of ${task.nonce} had ended, and is ${String(status)}`);
    task.status = status;
  }

  /** The keys of the questions that a task was shown to have open. */
  asks(task: KnownTask, inputs: ReadonlyMap<string, unknown>): void {
    for (const key of inputs.keys())
      if (task.answered.has(key)) this.#violated(`I1: the task of ${task.nonce} asks again what was answered: ${key}`);
    task.inputs = inputs;
  }

  deposited(seq: number, nonce: string): void {
    const before = this.ledger.get(seq);
    if (before !== undefined && before !== nonce)
      this.#violated(`I1: entry ${seq} was acknowledged to ${before}, and to ${nonce}`);
    this.ledger.set(seq, nonce);
  }

  /** @returns whether it was recorded before */
  recorded(nonce: string, step: string): boolean {
    const steps = this.#recorded.get(nonce) ?? new Set();
    const before = steps.has(step);
    this.#recorded.set(nonce, steps.add(step));
    return before;
  }

  /** What has been recorded of a call by now. */
  steps(nonce: string): ReadonlySet<string> {
    return new Set(this.#recorded.get(nonce));
  }

  /** From now on these steps of a call must not run again. */
  owe(nonce: string, steps: ReadonlySet<string>): void {
    this.#owed.set(nonce, new Set([...(this.#owed.get(nonce) ?? []), ...steps]));
  }

  ran(nonce: string, step: string): void {
    if (this.#owed.get(nonce)?.has(step)) this.#violated(`steps: "${step}" of ${nonce} ran although it was recorded`);
  }

  /** The process is gone, and with it whatever is not kept: nobody relies on it any more. */
  forgetTasks(): void {
    this.tasks.clear();
  }
}

export function isTerminal(status: unknown): boolean {
  return TERMINAL.has(status);
}
