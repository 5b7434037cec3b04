/**
 * The cursor of a subscription: a position in a topic, sealed for the subscriber, the type and the arguments. Every kind of delivery has
 * the same.
 */
import type { JsonObject } from '../../core/protocol/json.ts';
import { digest, type KeyRing } from '../../core/store/seal.ts';
import { toText } from '../../core/store/serialize.ts';

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

/** Maximum number of cursors that a ring remembers as opened, and of the characters of each with its subscription. */
const MAX_OPENED = 4_096;
const MAX_OPENED_LENGTH = 512;

/** The cursors that were opened last, each with its subscription: a poll without news brings the same one again. The longest unused first. */
const OPENED = new WeakMap<KeyRing, Map<string, EventPosition>>();

function openedBy(ring: KeyRing): Map<string, EventPosition> {
  const opened = OPENED.get(ring) ?? new Map<string, EventPosition>();
  OPENED.set(ring, opened);
  return opened;
}

/** Seals and opens the cursors of one subscription. */
export class EventCursors {
  readonly #ring: KeyRing;
  readonly #principal: string;
  readonly #name: string;
  readonly #args: JsonObject;
  #bound: readonly string[] | undefined;
  #last: { readonly position: EventPosition; readonly text: string } | undefined;

  /** @param args the arguments as the client sends them; their order does not matter */
  constructor(ring: KeyRing, principal: string, name: string, args: JsonObject) {
    this.#ring = ring;
    this.#principal = principal;
    this.#name = name;
    this.#args = args;
  }

  seal(position: EventPosition): string {
    const { epoch, seq } = position;
    if (this.#last?.position.seq === seq && this.#last.position.epoch === epoch) return this.#last.text;
    const text = this.#ring.seal([epoch, seq], this.#boundTo());
    this.#last = { position, text };
    return text;
  }

  /** @returns undefined for a cursor of another subscription, server or key: the reader has a gap */
  open(text: string): EventPosition | undefined {
    // A cursor whose key is about to leave is sealed again, and none to remember.
    const isCurrent = text.startsWith(currentKey(this.#ring));
    const whole = isCurrent ? toText([text, this.#principal, this.#name, this.#args]) : '';
    const opened = openedBy(this.#ring);
    const known = isCurrent ? opened.get(whole) : undefined;
    const position = known ?? this.#read(text);
    if (!position || !isCurrent) return position;
    // While nothing happens, a poll returns the cursor that it got.
    this.#last = { position, text };
    if (known) opened.delete(whole);
    if (known || whole.length <= MAX_OPENED_LENGTH) opened.set(whole, position);
    const [oldest] = opened.size > MAX_OPENED ? opened.keys() : [];
    if (oldest !== undefined) opened.delete(oldest);
    return position;
  }

  #read(text: string): EventPosition | undefined {
    const opened = this.#ring.open(text, this.#boundTo());
    if (!opened.ok) return undefined;
    const [epoch, seq]: readonly unknown[] = Array.isArray(opened.payload) ? opened.payload : [];
    return typeof epoch === 'string' && typeof seq === 'number' ? { epoch, seq } : undefined;
  }

  #boundTo(): readonly string[] {
    this.#bound ??= [PURPOSE, this.#principal, this.#name, digest(this.#args)];
    return this.#bound;
  }
}
