/**
 * The cursor of a subscription: a position in a topic, sealed for the subscriber, the type and the arguments. Every kind of delivery has
 * the same.
 */
import type { JsonObject } from '../../core/protocol/json.ts';
import { digest, type KeyRing } from '../../core/store/seal.ts';

/** A position: the number of the last event that was read, in a topic of this epoch. */
export interface EventPosition {
  readonly epoch: string;
  readonly seq: number;
}

const PURPOSE = 'event cursor 1';

/** The beginning of what each ring seals now: the version, and the id of its first key. */
const CURRENT = new WeakMap<KeyRing, string>();
const BEGINNING = 11;

function currentKey(ring: KeyRing): string {
  const known = CURRENT.get(ring) ?? ring.seal(null, [PURPOSE]).slice(0, BEGINNING);
  CURRENT.set(ring, known);
  return known;
}

/** Seals and opens the cursors of one subscription. */
export class EventCursors {
  readonly #ring: KeyRing;
  readonly #bound: readonly string[];
  #last: { readonly position: EventPosition; readonly text: string } | undefined;

  /** @param args the arguments as the client sends them; their order does not matter */
  constructor(ring: KeyRing, principal: string, name: string, args: JsonObject) {
    this.#ring = ring;
    this.#bound = [PURPOSE, principal, name, digest(args)];
  }

  seal(position: EventPosition): string {
    const { epoch, seq } = position;
    if (this.#last?.position.seq === seq && this.#last.position.epoch === epoch) return this.#last.text;
    const text = this.#ring.seal([epoch, seq], this.#bound);
    this.#last = { position, text };
    return text;
  }

  /** @returns undefined for a cursor of another subscription, server or key: the reader has a gap */
  open(text: string): EventPosition | undefined {
    const opened = this.#ring.open(text, this.#bound);
    if (!opened.ok) return undefined;
    const [epoch, seq]: readonly unknown[] = Array.isArray(opened.payload) ? opened.payload : [];
    if (typeof epoch !== 'string' || typeof seq !== 'number') return undefined;
    const position = { epoch, seq };
    // While nothing happens, a poll returns the cursor that it got, unless its key is about to leave.
    if (text.startsWith(currentKey(this.#ring))) this.#last = { position, text };
    return position;
  }
}
