/** Finds the statecharts of a program without serving it: those of its servers, and those that its modules export. */
import { basename, extname } from 'node:path';
import type { AnyStateMachine } from 'xstate';
import { isObject } from '../../core/protocol/json.ts';
import type { Target } from './target.ts';
import { loadUnserved } from './unserved-program.ts';

/** Loads the modules of a target. @returns the machines by name, those of servers first @throws the error of a module that fails to load */
export async function machinesOf(target: Target): Promise<ReadonlyMap<string, AnyStateMachine>> {
  const { servers, exported } = await loadUnserved(target, (value) => machineIn(value) !== undefined);
  const found = new MachineTable();
  for (const { machines, tools } of servers)
    for (const definition of [...machines.definitions(), ...tools.definitions()])
      found.add(definition, definition.name);
  for (const [file, name, value] of exported)
    for (const item of Array.isArray(value) ? value : [value]) found.add(item, nameOf(item, name, file));
  return found.machines;
}

/** Machines by unique names. */
class MachineTable {
  readonly machines = new Map<string, AnyStateMachine>();

  /** Adds a machine once. If another machine has the name, appends a number. */
  add(value: unknown, name: string): void {
    const machine = machineIn(value);
    if (!machine || [...this.machines.values()].includes(machine)) return;
    let free = name;
    for (let count = 2; this.machines.has(free); count += 1) free = `${name}-${count}`;
    this.machines.set(free, machine);
  }
}

/** Returns a machine itself, or the machine of a `defineMachine` or `defineTool` definition. */
function machineIn(value: unknown): AnyStateMachine | undefined {
  if (isMachine(value)) return value;
  return isObject(value) && isMachine(value.machine) ? value.machine : undefined;
}

/** Recognises machines of any copy of XState. */
function isMachine(value: unknown): value is AnyStateMachine {
  return isObject(value) && isObject(value.root) && isObject(value.states) && typeof value.transition === 'function';
}

/** Returns the name of the definition, or the name of the export, or for a default export the machine's id or the file's name. */
function nameOf(value: unknown, exported: string, file: string): string {
  if (isObject(value) && typeof value.name === 'string' && value.name !== '') return value.name;
  if (exported !== 'default') return exported;
  const id = isMachine(value) ? value.id : '(machine)';
  return id === '(machine)' ? basename(file, extname(file)) : id;
}
