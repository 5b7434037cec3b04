/** The parts of topics that were read last, bounded in bytes for all topics of a server. */
import type { TopicEvent } from './topic-document.ts';

/** Maximum number of bytes of all parts. */
const MAX_BYTES = 32 * 1024 ** 2;

export class PartCache {
  /** The longest unused first. */
  readonly #parts = new Map<string, { readonly events: readonly TopicEvent[]; readonly bytes: number }>();
  #bytes = 0;

  get(id: string): readonly TopicEvent[] | undefined {
    const part = this.#parts.get(id);
    if (!part) return undefined;
    this.#parts.delete(id);
    this.#parts.set(id, part);
    return part.events;
  }

  set(id: string, events: readonly TopicEvent[]): void {
    this.delete(id);
    const bytes = events.reduce((sum, event) => sum + event.bytes, 0);
    this.#parts.set(id, { events, bytes });
    this.#bytes += bytes;
    for (const oldest of this.#parts.keys()) {
      if (this.#bytes <= MAX_BYTES) return;
      this.delete(oldest);
    }
  }

  delete(id: string): void {
    this.#bytes -= this.#parts.get(id)?.bytes ?? 0;
    this.#parts.delete(id);
  }
}
