/** What is left of the records that are no longer kept: who lives, and in which state. Whoever comes later is told this first. */
import type { TraceRecord } from '../frames.ts';

/** Actors that have gone, and for how many it is remembered. */
const MAX_GONE = 2_000;

interface Living {
  readonly created: TraceRecord;
  state?: TraceRecord;
  step?: TraceRecord;
}

/** Whether a record tells who lives, and in which state. */
export function isOfTree({ type }: TraceRecord): boolean {
  return type === 'created' || type === 'state' || type === 'step' || type === 'gone';
}

export class Baseline {
  readonly #living = new Map<string, Living>();
  #gone: TraceRecord[] = [];

  add(record: TraceRecord): void {
    switch (record.type) {
      case 'created':
        this.#living.set(record.actor, { created: record });
        return;
      case 'gone':
        this.#living.delete(record.actor);
        this.#gone.push(record);
        if (this.#gone.length > 2 * MAX_GONE) this.#gone = this.#gone.slice(-MAX_GONE);
        return;
      case 'state': {
        const living = this.#living.get(record.actor);
        if (living) living.state = record;
        return;
      }
      case 'step': {
        const living = this.#living.get(record.actor);
        // What it holds would be kept for every actor; whoever wants to see that looks at the actor.
        const { context: _, ...step } = record;
        if (living) living.step = step;
      }
    }
  }

  /** The records that make up for all that came before, ascending by place; of what went, for whoever knew it until `since`. */
  records(since: number): readonly TraceRecord[] {
    const records: TraceRecord[] = this.#gone.filter(({ seq }) => since > 0 && seq > since);
    for (const { created, state, step } of this.#living.values())
      for (const record of [created, state, step]) if (record && record.seq > since) records.push(record);
    return records.sort((a, b) => a.seq - b.seq);
  }

  clear(): void {
    this.#living.clear();
    this.#gone = [];
  }
}
