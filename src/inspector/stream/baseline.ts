/** The result of the dropped records: the live actors and their states. A later viewer receives it first. */
import type { TraceRecord } from '../frames.ts';

/** Maximum number of ended actors in the baseline. */
const MAX_GONE = 2_000;

interface Living {
  readonly created: TraceRecord;
  state?: TraceRecord;
  step?: TraceRecord;
}

/** True if a record describes the lifetime or the state of an actor. */
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
        // A context for every actor would take too much memory. A viewer focuses on an actor to see its context.
        const { context: _, ...step } = record;
        if (living) living.step = step;
      }
    }
  }

  /**
   * The records that replace all dropped ones, in ascending order. Records of an end are only for viewers with older
   * records, from `since` on.
   */
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
