/** What a machine must be to be offered: found when it is defined, and not by its first client. */
import type { AnyStateMachine } from 'xstate';
import { describe, isObject } from '../protocol/json.ts';
import { foreignCopy } from '../registry/xstate-copy.ts';
import { endlessCycle, MAX_STEPS } from './cycles.ts';
import type { MachineKind } from './machine-definition.ts';

/**
 * The kind as it is run: no turn of it goes on for ever.
 *
 * @throws {TypeError} for one that cannot be offered, with how to mend it
 */
export function checkKind(kind: MachineKind): MachineKind {
  const { name, version, events, previous } = kind;
  const where = `machine ${quoted(name)}`;
  if (!/^[A-Za-z0-9_.-]{1,100}$/.test(name))
    throw new TypeError(`${where}: name: expected 1 to 100 letters, digits, "_", "-" or ".", got ${describe(name)}`);
  if (typeof version !== 'string' || version === '')
    throw new TypeError(
      `${where}: version: expected a string that is not empty, such as "1", got ${describe(version)}`,
    );
  for (const type of events) {
    if (type.startsWith('xstate.'))
      throw new TypeError(`${where}: event "${type}": events of XState's own cannot come from clients: leave it out`);
    if (type === '' || type.includes('*'))
      throw new TypeError(`${where}: event "${type}": expected the type of one event, written out, got a wildcard`);
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

/** The same machine, which stops where it goes round for ever. */
function bounded(machine: AnyStateMachine, where: string): AnyStateMachine {
  if (!isObject(machine) || typeof machine.provide !== 'function' || !isObject(machine.root))
    throw new TypeError(`${where}: expected a machine of XState's createMachine, got ${describe(machine)}`);
  const foreign = foreignCopy(machine);
  if (foreign !== undefined) throw new TypeError(`${where}: ${foreign}`);
  const cycle = endlessCycle(machine);
  if (cycle)
    throw new TypeError(
      `${where}: its eventless transitions go round for ever: ${cycle.map((id) => `"${id}"`).join(' → ')}. Give one of them a guard that ends it, or an event`,
    );
  const copy = machine.provide({});
  const { maxIterations = Number.POSITIVE_INFINITY } = machine.options;
  copy.options = { ...machine.options, maxIterations: Math.min(maxIterations, MAX_STEPS) };
  return copy;
}

function quoted(name: unknown): string {
  return typeof name === 'string' ? `"${name.slice(0, 40)}"` : describe(name);
}
