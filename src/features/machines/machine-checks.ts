/** Checks a machine when it is defined, not when its first client uses it. */

import type { AnyStateMachine } from 'xstate';
import { durationOf } from '../../core/kernel/duration.ts';
import type { Limits } from '../../core/kernel/limits.ts';
import { describe, isObject } from '../../core/protocol/json.ts';
import { foreignCopy } from '../../core/registry/xstate-copy.ts';
import { endlessCycle, MAX_STEPS } from './cycles.ts';
import type { MachineKind } from './machine-definition.ts';
import { fixedDelays } from './machine-references.ts';

/**
 * Checks a machine and bounds the number of steps in its turns.
 *
 * @throws {TypeError} for an invalid machine, with a correction
 */
export function checkKind(kind: MachineKind): MachineKind {
  const { name, version, events, previous } = kind;
  const where = `machine ${quoted(name)}`;
  if (!/^[A-Za-z0-9_.-]{1,100}$/.test(name))
    throw new TypeError(`${where}: name: expected 1 to 100 letters, digits, "_", "-" or ".", got ${describe(name)}`);
  if (typeof version !== 'string' || version === '')
    throw new TypeError(`${where}: version: expected a non-empty string, such as "1", got ${describe(version)}`);
  for (const type of events) {
    if (type.startsWith('xstate.'))
      throw new TypeError(`${where}: event "${type}": clients cannot send XState's own events. Remove it`);
    if (type === '' || type.includes('*'))
      throw new TypeError(`${where}: event "${type}": expected the type of one event, got a wildcard`);
  }
  return {
    ...kind,
    machine: bounded(kind.machine, where),
    previous:
      previous &&
      Object.fromEntries(
        Object.entries(previous).map(([old, machine]) => [old, bounded(machine, `${where}, version ${old}`)]),
      ),
  };
}

/** @throws {TypeError} for an object that is no machine, or one of another copy of XState */
export function checkMachine(machine: AnyStateMachine, where: string): void {
  if (!isObject(machine) || typeof machine.provide !== 'function' || !isObject(machine.root))
    throw new TypeError(`${where}: expected a machine from XState's createMachine, got ${describe(machine)}`);
  const foreign = foreignCopy(machine);
  if (foreign !== undefined) throw new TypeError(`${where}: ${foreign}`);
}

/**
 * Checks the delays of a machine against the lifetime of its instances. A delay that depends on the context is not known
 * here.
 *
 * @throws {TypeError} for a delay that cannot end
 */
export function checkDelays({ name, machine, ttlMs, keyed }: MachineKind, limits: Limits): void {
  if (keyed?.keep) return;
  const life = ttlMs ?? limits.handleTtlMs;
  const never = fixedDelays(machine).filter(({ ms }) => ms > life);
  if (never.length === 0) return;
  const texts = never.map(({ ms, where }) => `${where}: the delay of ${durationOf(ms)}`);
  throw new TypeError(
    `machine ${quoted(name)}: ${texts.join('; ')} never ends, because an instance lives for ${durationOf(life)}. Set ttlMs in the options of the machine, or limits.handleTtlMs, to more than ${longestOf(never)}`,
  );
}

/** Describes what the limit for anonymous clients cuts off: the lifetime that the author sets, or a delay. @returns undefined for nothing */
export function cutLife({ name, machine, ttlMs = 0 }: MachineKind, anonymousMs: number): string | undefined {
  const delays = fixedDelays(machine).map(({ ms, where }) => ({
    ms,
    what: `${where}: the delay of ${durationOf(ms)}`,
  }));
  const asked = [{ ms: ttlMs, what: `its ttlMs of ${durationOf(ttlMs)}` }, ...delays];
  const longer = asked.filter(({ ms }) => ms > anonymousMs);
  if (longer.length === 0) return undefined;
  const cut = longer.map(({ what }) => what).join('; ');
  return `machine ${quoted(name)}: an instance of a client that has not signed in lives for ${durationOf(anonymousMs)}, which cuts off ${cut}. Set limits.handleAnonymousTtlMs to more than ${longestOf(longer)}, or let clients sign in`;
}

/** Copies the machine with a maximum number of steps per turn. */
function bounded(machine: AnyStateMachine, where: string): AnyStateMachine {
  checkMachine(machine, where);
  const cycle = endlessCycle(machine);
  if (cycle)
    throw new TypeError(
      `${where}: its eventless transitions form an endless loop: ${cycle.map((id) => `"${id}"`).join(' → ')}. Give one of them an event, or a guard that ends the loop`,
    );
  const copy = machine.provide({});
  const { maxIterations = Number.POSITIVE_INFINITY } = machine.options;
  copy.options = { ...machine.options, maxIterations: Math.min(maxIterations, MAX_STEPS) };
  return copy;
}

function quoted(name: unknown): string {
  return typeof name === 'string' ? `"${name.slice(0, 40)}"` : describe(name);
}

/** The longest time, as the value of an option and for people. */
function longestOf(times: readonly { readonly ms: number }[]): string {
  const ms = Math.max(...times.map((time) => time.ms));
  return `${ms} (${durationOf(ms)})`;
}
