/** Pins: the definitions of an upstream's tools, prompts and event types as people approved them, and their differences from those of today. */

import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { digest } from '../../core/store/seal.ts';
import { withoutOwnMeta } from './own-meta.ts';

/** One approved definition. */
export interface Pin {
  readonly name: string;
  /** SHA-256 of the canonical JSON of `definition`, in base64url. */
  readonly sha256: string;
  /** The definition without members of this server's own. */
  readonly definition: JsonObject;
}

/** The pins of one upstream, sorted by name. */
export interface Pins {
  readonly tools: readonly Pin[];
  readonly prompts: readonly Pin[];
  readonly events: readonly Pin[];
}

/** Nothing is approved. */
export const NO_PINS: Pins = { tools: [], prompts: [], events: [] };

/** The definitions of one upstream, as it sent them. */
export interface PinnableDefinitions {
  readonly tools: readonly unknown[];
  readonly prompts: readonly unknown[];
  /** Undefined: none. */
  readonly events?: readonly unknown[] | undefined;
  /** The request that a call of each tool makes, if it is known here. */
  readonly requests?: Readonly<Record<string, JsonObject>> | undefined;
}

interface PinPlace {
  readonly of: 'tool' | 'prompt' | 'event';
  /** The name upstream. */
  readonly name: string;
}

/** One difference between the pins and the definitions of today. */
export type PinChange = PinPlace &
  (
    | { readonly change: 'new'; readonly now: Pin }
    /** `members`: the names of the members that differ. */
    | { readonly change: 'changed'; readonly before: Pin; readonly now: Pin; readonly members: readonly string[] }
    /** Everything but the name is as it was. */
    | { readonly change: 'renamed'; readonly before: Pin; readonly now: Pin }
    | { readonly change: 'removed'; readonly before: Pin }
  );

/**
 * Pins one definition, whole: a member without a meaning today may have one tomorrow, such as another page in an older
 * member of `_meta`. What this server does not pass on is not pinned.
 */
export function pinOf(definition: JsonObject): Pin {
  const members = withoutOwnMeta(definition);
  const pin: Pin = { name: String(definition.name), sha256: digest(members), definition: members };
  made.add(pin);
  return pin;
}

/** The pins that this process has made: no person has edited them. */
const made = new WeakSet<Pin>();

/**
 * Pins all definitions of an upstream. Of two definitions of one name, the first counts. The pin of a tool has its request, which may
 * change while the tool looks as before.
 */
export function pinsOf({ tools, prompts, events = [], requests = {} }: PinnableDefinitions): Pins {
  const whole = tools.map((tool) => {
    const request = isJsonObject(tool) && typeof tool.name === 'string' ? requests[tool.name] : undefined;
    return isJsonObject(tool) && request ? { ...tool, request } : tool;
  });
  return { tools: sortedPins(whole), prompts: sortedPins(prompts), events: sortedPins(events) };
}

function sortedPins(definitions: readonly unknown[]): readonly Pin[] {
  const pins = new Map<string, Pin>();
  for (const pin of definitions.filter(isJsonObject).map(pinOf)) if (!pins.has(pin.name)) pins.set(pin.name, pin);
  return [...pins.values()].sort(byName);
}

function byName({ name: one }: { readonly name: string }, { name: other }: { readonly name: string }): number {
  return one < other ? -1 : Number(one > other);
}

/** True if the digest of a pin belongs to its definition. A pin that was edited by hand approves nothing. */
export function isIntact(pin: Pin): boolean {
  const { name, sha256, definition } = pin;
  return made.has(pin) || (definition.name === name && digest(definition) === sha256);
}

/**
 * Compares the definitions of today with the pins.
 *
 * @param pins a pin that is not intact counts as missing
 * @returns the tools first, then the prompts and the event types, each by name; empty if nothing differs
 */
export function compareWithPins(pins: Pins, now: Pins): readonly PinChange[] {
  return [
    ...changesOf('tool', pins.tools, now.tools),
    ...changesOf('prompt', pins.prompts, now.prompts),
    ...changesOf('event', pins.events, now.events),
  ];
}

function changesOf(of: PinPlace['of'], pinned: readonly Pin[], offered: readonly Pin[]): readonly PinChange[] {
  const before = new Map(pinned.filter(isIntact).map((pin) => [pin.name, pin]));
  const today = new Set(offered.map(({ name }) => name));
  /** The pins of names that are gone, by the digest of all other members. */
  const gone = new Map<string, Pin>();
  for (const pin of before.values()) if (!today.has(pin.name)) gone.set(nameless(pin), pin);
  const changes: PinChange[] = [];
  const taken = new Set<string>();
  for (const now of offered) {
    const pin = before.get(now.name);
    const place = { of, name: now.name };
    if (pin?.sha256 === now.sha256) continue;
    if (pin) {
      changes.push({ ...place, change: 'changed', before: pin, now, members: differing(pin, now) });
      continue;
    }
    const renamed = gone.get(nameless(now));
    if (renamed && !taken.has(renamed.name)) {
      taken.add(renamed.name);
      changes.push({ ...place, change: 'renamed', before: renamed, now });
    } else changes.push({ ...place, change: 'new', now });
  }
  for (const pin of before.values())
    if (!today.has(pin.name) && !taken.has(pin.name))
      changes.push({ of, name: pin.name, change: 'removed', before: pin });
  return changes.sort(byName);
}

function nameless({ definition: { name: _, ...others } }: Pin): string {
  return digest(others);
}

/** The names of the members that differ between two pins. */
function differing({ definition: one }: Pin, { definition: other }: Pin): readonly string[] {
  return [...new Set([...Object.keys(one), ...Object.keys(other)])].filter(
    (member) => digest(one[member] ?? null) !== digest(other[member] ?? null),
  );
}

/** True for a change after which `pins: 'hold'` does not offer the definition until it is approved. */
export function isHeld({ change }: PinChange): boolean {
  return change !== 'removed';
}

/** Describes a change in one line: `tool "add": its description and inputSchema changed`. */
export function describePinChange(change: PinChange): string {
  const place = `${change.of} ${quoted(change.name)}`;
  switch (change.change) {
    case 'new':
      return `${place}: new`;
    case 'changed':
      return `${place}: its ${change.members.join(', ')} changed`;
    case 'renamed':
      return `${place}: renamed, it was ${quoted(change.before.name)}`;
    case 'removed':
      return `${place}: removed`;
  }
}

/** A name of an upstream is text that anybody may have written. */
function quoted(name: string): string {
  return `"${name.replace(/[^\x20-\x7e]/g, '?').slice(0, 128)}"`;
}

/**
 * Approves the definitions of today.
 *
 * @param name the tool, prompt or event type to approve, by its name upstream: also one that was removed. Default: all
 * @returns the new pins; undefined if neither the pins nor the definitions of today have that name
 * @example approvePins(pins, pinsOf(catalogue), 'create_issue');
 */
export function approvePins(pins: Pins, now: Pins, name?: string): Pins | undefined {
  if (name === undefined) return now;
  const has = (list: readonly Pin[]): boolean => list.some((pin) => pin.name === name);
  if (![...Object.values(pins), ...Object.values(now)].some(has)) return undefined;
  const renamed = compareWithPins(pins, now).filter((change) => change.change === 'renamed' && change.name === name);
  const replaced = (of: PinPlace['of'], list: readonly Pin[], today: readonly Pin[]): readonly Pin[] => {
    const old = renamed.flatMap((change) =>
      change.of === of && change.change === 'renamed' ? change.before.name : [],
    );
    const others = list.filter((pin) => pin.name !== name && !old.includes(pin.name));
    return [...others, ...today.filter((pin) => pin.name === name)].sort(byName);
  };
  return {
    tools: replaced('tool', pins.tools, now.tools),
    prompts: replaced('prompt', pins.prompts, now.prompts),
    events: replaced('event', pins.events, now.events),
  };
}
