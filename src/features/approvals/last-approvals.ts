/** The calls that were approved last, one for each caller and tool: people see what differs in the next. */

import { sha256 } from '../../core/kernel/sha256.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { visibleJson, visibleLine } from '../../core/protocol/visible-text.ts';
import type { Core } from '../../core/server/feature.ts';
import { digest } from '../../core/store/seal.ts';
import { fromText, toText } from '../../core/store/serialize.ts';
import type { Store } from '../../core/store/store.ts';
import type { StoredApproval } from './approval-record.ts';
import type { ShownCall, ShownData } from './approval-text.ts';

/** The calls of which one is compared with the next. */
export interface LastKey {
  readonly principal: string;
  readonly tool: string;
  /** The part of its handler; undefined for the call itself. */
  readonly part: string | undefined;
}

const ACTOR = 'server/approved/';
/** Milliseconds for which a call is compared with later ones. */
const KEPT_MS = 30 * 86_400_000;
/** Longest name and value that are stored and shown, in characters of JSON; of a longer value only its digest. */
const MAX_VALUE = 100;
/** Stored members, and lines of differences. */
const MAX_MEMBERS = 30;
const MAX_LINES = 20;
/** Calls that a server without a durable store compares. */
const MAX_REMEMBERED = 500;

/** A value as JSON, or the digest of a long one. */
interface LastValue {
  readonly json?: string;
  readonly digest?: string;
}

interface LastCall {
  readonly at: number;
  readonly members: Readonly<Record<string, LastValue>>;
  readonly pin: Readonly<Record<string, string>>;
}

export class LastApprovals {
  readonly #store: Store;
  readonly #system: Core['system'];
  readonly #date: () => number;
  /** In place of a store that ends with the process, and has no bound for them. The oldest is first. */
  readonly #memory = new Map<string, LastCall>();

  /** @param date milliseconds since 1970, which do not go back */
  constructor({ store, system }: Core, date: () => number) {
    this.#store = store;
    this.#system = system;
    this.#date = date;
  }

  /** A call has used its approval. Without the record the next call is only not compared, so a failure of the store does not stop it. */
  record(key: LastKey | undefined, { pin }: StoredApproval, shown: ShownData): void {
    if (!key) return;
    const last: LastCall = { at: this.#date(), members: keptOf(shown), pin };
    const [actor, request] = placeOf(key);
    if (!this.#store.durable) return this.#remember(actor + request, last);
    this.#store
      .commit([{ type: 'reply', actor, request, data: toText(last), expires: last.at + KEPT_MS }])
      .catch((error: unknown) => this.#system.incident('storing what was approved', error));
  }

  /** Compares a call with the one that was approved last. @returns undefined if there was none */
  async compare(key: LastKey | undefined, pin: StoredApproval['pin'], shown: ShownData): Promise<ShownCall['last']> {
    const last = key && (await this.#read(key));
    if (!last) return undefined;
    const members = keptOf(shown);
    const lines = [
      ...namesOf(last.members, members).flatMap((name) => difference(name, last.members[name], members[name])),
      ...namesOf(last.pin, pin).flatMap((name) =>
        last.pin[name] === pin[name] ? [] : [`the definition of the tool: ${visibleLine(name)} has changed`],
      ),
    ];
    const more = lines.length - MAX_LINES;
    return {
      at: last.at,
      differences: more > 0 ? [...lines.slice(0, MAX_LINES), `and ${more} more`] : lines,
    };
  }

  #remember(name: string, last: LastCall): void {
    this.#memory.delete(name);
    this.#memory.set(name, last);
    if (this.#memory.size > MAX_REMEMBERED) this.#memory.delete([...this.#memory.keys()][0] ?? '');
  }

  async #read(key: LastKey): Promise<LastCall | undefined> {
    const [actor, request] = placeOf(key);
    if (!this.#store.durable) return this.#memory.get(actor + request);
    try {
      const data = await this.#store.reply(actor, request);
      const value: unknown = data ? fromText(data, 'an approved call') : undefined;
      return isLast(value) && value.at + KEPT_MS > this.#date() ? value : undefined;
    } catch (error) {
      // The approval is asked without a comparison.
      this.#system.incident('reading what was approved', error);
      return undefined;
    }
  }
}

/** Neither the principal nor the tool is readable in the store. */
function placeOf({ principal, tool, part }: LastKey): readonly [actor: string, request: string] {
  return [`${ACTOR}${sha256(principal)}`, digest([tool, part ?? null])];
}

/** The arguments, and what a handler shows beside them. */
function keptOf({ arguments: args, details }: ShownData): Readonly<Record<string, LastValue>> {
  const given: JsonObject = { ...(isJsonObject(args) ? args : {}), ...details };
  const names = Object.keys(given)
    .filter((name) => name.length <= MAX_VALUE)
    .sort();
  return Object.fromEntries(names.slice(0, MAX_MEMBERS).map((name) => [name, keep(given[name] ?? null)]));
}

function keep(value: JsonValue): LastValue {
  const json = visibleJson(value).trimEnd();
  return json.length <= MAX_VALUE ? { json } : { digest: digest(value) };
}

function namesOf(before: object, after: object): readonly string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].sort();
}

function difference(name: string, before: LastValue | undefined, after: LastValue | undefined): readonly string[] {
  if (before && after && before.json === after.json && before.digest === after.digest) return [];
  return [`${visibleLine(name)}: ${shownValue(before)} → ${shownValue(after)}`];
}

function shownValue(value: LastValue | undefined): string {
  return value === undefined ? 'absent' : (value.json ?? 'a longer value');
}

function isLast(value: unknown): value is LastCall {
  return (
    isObject(value) &&
    typeof value.at === 'number' &&
    isObject(value.members) &&
    Object.values(value.members).every(isLastValue) &&
    isObject(value.pin)
  );
}

function isLastValue(value: unknown): value is LastValue {
  return isObject(value) && (typeof value.json === 'string' || typeof value.digest === 'string');
}
