/** Checks a machine when it is defined, not when its first client uses it. */
import type { AnyStateMachine } from 'xstate';
import { describe, isObject } from '../protocol/json.ts';
import { foreignCopy } from '../registry/xstate-copy.ts';
import { endlessCycle, MAX_STEPS } from './cycles.ts';
import type { MachineKind } from './machine-definition.ts';

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

/** Copies the machine with a maximum number of steps per turn. */
function bounded(machine: AnyStateMachine, where: string): AnyStateMachine {
  if (!isObject(machine) || typeof machine.provide !== 'function' || !isObject(machine.root))
    throw new TypeError(`${where}: expected a machine from XState's createMachine, got ${describe(machine)}`);
  const foreign = foreignCopy(machine);
  if (foreign !== undefined) throw new TypeError(`${where}: ${foreign}`);
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
