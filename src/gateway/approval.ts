/** Compares the definitions of configured servers with the lock file, for people, and writes what they approve. */

import { editableJson } from '../core/codec/commented-json.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../core/protocol/json.ts';
import { copyNumbers } from '../core/protocol/json-text.ts';
import { suggestion } from '../core/protocol/near-miss.ts';
import type { ConfiguredServer } from './configuration.ts';
import { lockFileOf } from './configured-gateway.ts';
import { FilePins } from './mounts/pin-record.ts';
import {
  approvePins,
  compareWithPins,
  describePinChange,
  NO_PINS,
  type Pin,
  type PinChange,
  type PinnableDefinitions,
  type Pins,
  pinsOf,
} from './mounts/pins.ts';

/** The definitions of a server today, and their differences from its pins. */
interface ComparedServer {
  readonly now: Pins;
  /** Undefined if nothing of the server was ever approved. */
  readonly pins: Pins | undefined;
  readonly changes: readonly PinChange[];
}

/**
 * Compares the definitions of a server with the lock file of a configuration.
 *
 * @throws {Error} if the lock file cannot be read
 */
export async function compareServer(
  file: string,
  { name }: ConfiguredServer,
  definitions: PinnableDefinitions,
): Promise<ComparedServer> {
  const now = pinsOf(definitions);
  const pins = await new FilePins(lockFileOf(file), name).read();
  return { now, pins, changes: compareWithPins(pins ?? NO_PINS, now) };
}

/**
 * Approves the definitions of a server, or of one of its tools or prompts.
 *
 * @param element the name of the tool or prompt, as its server calls it
 * @returns one sentence for each change that was approved
 * @throws {Error} if there is no such tool or prompt, or the lock file cannot be written
 */
export async function approveServer(
  file: string,
  { name }: ConfiguredServer,
  { pins = NO_PINS, now, changes }: ComparedServer,
  element: string | undefined,
): Promise<readonly string[]> {
  const approved = approvePins(pins, now, element);
  if (!approved) {
    const names = [...Object.values(now), ...Object.values(pins)].flat().map((pin: Pin) => pin.name);
    throw new Error(`${name} has no tool, prompt or event ${element}${suggestion(element ?? '', [...new Set(names)])}`);
  }
  await new FilePins(lockFileOf(file), name).write(approved);
  return changes.filter((change) => element === undefined || change.name === element).map(describePinChange);
}

/** Describes a change in lines: its summary, and each member that differs, before and now. Characters that do not show are escaped. */
export function linesOfChange(change: PinChange): readonly string[] {
  const before = 'before' in change ? change.before.definition : {};
  const now = 'now' in change ? change.now.definition : {};
  const lines = [describePinChange(change)];
  if (change.change === 'removed') return lines;
  for (const member of new Set([...Object.keys(before), ...Object.keys(now)])) {
    const [old, today] = [before[member], now[member]];
    if (text(old) === text(today)) continue;
    lines.push(...linesOf('-', member, old), ...linesOf('+', member, today));
  }
  return lines;
}

function linesOf(sign: string, member: string, value: JsonValue | undefined): readonly string[] {
  return value === undefined ? [] : [`  ${sign} ${member}: ${text(value).replaceAll('\n', `\n  ${sign} `)}`];
}

function text(value: JsonValue | undefined): string {
  return value === undefined ? '' : editableJson(sorted(value)).trimEnd();
}

/** The members in a stable order: a server that reorders them changes nothing. */
function sorted(value: JsonValue): JsonValue {
  if (isJsonObject(value)) {
    const members: JsonObject = Object.fromEntries(
      Object.entries(value)
        .sort(([one], [other]) => (one < other ? -1 : 1))
        .map(([name, member]) => [name, member === undefined ? null : sorted(member)]),
    );
    return copyNumbers(value, members);
  }
  return Array.isArray(value) ? copyNumbers(value, value.map(sorted)) : value;
}
