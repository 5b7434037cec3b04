/** The calls that the journal of a run has: their identities, and the last events of those without an end. */
import type { Delivery, ScriptCall } from '../sandbox/script.ts';
import type { ReturnableBlocks } from './call-value.ts';
import { digestOfArguments } from './open-call.ts';
import type { CallIdentity, RunEvent } from './run-journal.ts';

/** The last events of a call without an end, as the journal has them. */
export interface RecordedCall {
  started: boolean;
  resumed: string | undefined;
  asked: Extract<RunEvent, { type: 'asked' }> | undefined;
  answered: Extract<RunEvent, { type: 'answered' }> | undefined;
  held: Extract<RunEvent, { type: 'held' }> | undefined;
  following: Extract<RunEvent, { type: 'following' }> | undefined;
  sleeping: Extract<RunEvent, { type: 'sleeping' }> | undefined;
}

/** A result that the script has learned. */
export interface RecordedDelivery {
  readonly delivery: Delivery;
  readonly name: string;
  readonly effect: boolean;
  readonly blocks: ReturnableBlocks | undefined;
}

export class RecordedCalls {
  readonly deliveries: readonly RecordedDelivery[];
  /** The latest end of a sleep, in milliseconds since 1970. */
  readonly due: number;
  readonly #known = new Map<number, CallIdentity>();
  readonly #open = new Map<number, RecordedCall>();

  constructor(events: readonly RunEvent[]) {
    const deliveries: RecordedDelivery[] = [];
    let due = 0;
    for (const event of events) {
      if (event.type === 'sleeping') due = Math.max(due, event.due);
      if (event.type !== 'delivered') this.#add(event);
      else {
        const { number, name, digest, effect, blocks, type: _, ...given } = event;
        this.know(number, { name, digest });
        this.#open.delete(number);
        deliveries.push({ delivery: { number, ...given }, name, effect: effect === true, blocks });
      }
    }
    this.deliveries = deliveries;
    this.due = due;
  }

  #add(event: Exclude<RunEvent, { type: 'delivered' }>): void {
    switch (event.type) {
      case 'begun':
      case 'ended':
        return;
      case 'answered':
        this.#of(event.number).answered = event;
        return;
      case 'started':
        Object.assign(this.#of(event.number), { started: true, resumed: event.approval });
        break;
      case 'asked':
        Object.assign(this.#of(event.number), { asked: event, answered: undefined });
        break;
      case 'held':
        Object.assign(this.#of(event.number), { held: event, resumed: undefined });
        break;
      case 'following':
        Object.assign(this.#of(event.number), { following: event, asked: undefined });
        break;
      case 'sleeping':
        this.#of(event.number).sleeping = event;
    }
    this.know(event.number, event);
  }

  #of(number: number): RecordedCall {
    const found = this.#open.get(number);
    if (found) return found;
    const created: RecordedCall = {
      ...{ started: false, resumed: undefined, asked: undefined, answered: undefined },
      ...{ held: undefined, following: undefined, sleeping: undefined },
    };
    this.#open.set(number, created);
    return created;
  }

  /** The journal has this call from now on. */
  know(number: number, { name, digest }: CallIdentity): void {
    this.#known.set(number, { name, digest });
  }

  /** The record of a call that an earlier process began; undefined for a new one. */
  look(number: number): RecordedCall | undefined {
    return this.#open.get(number);
  }

  /** The same, once. */
  take(number: number): RecordedCall | undefined {
    const found = this.#open.get(number);
    this.#open.delete(number);
    return found;
  }

  /** Compares the calls of a script that runs again with those of the journal. @returns the first difference */
  strays(calls: readonly ScriptCall[]): string | undefined {
    const now = new Map(calls.map((call) => [call.number, call]));
    let last = 0;
    for (const [number, { name, digest }] of [...this.#known].sort(([a], [b]) => a - b)) {
      const call = now.get(number);
      const same = call !== undefined && call.name === name && digestOfArguments(call) === digest;
      if (!same) return `it took another way after call ${last}, when it ran again; nothing after it was done`;
      last = number;
    }
    return undefined;
  }
}
