/** Finds the statecharts of a program without serving it: those of its servers, and those that its modules export. */
import { basename, extname } from 'node:path';
import type { AnyStateMachine } from 'xstate';
import { systemClock } from '../../clock.ts';
import { type Exports, loadModule } from '../../discovery/load-module.ts';
import { findModules } from '../../discovery/module-files.ts';
import { launchedBy } from '../../launcher.ts';
import { isObject } from '../../protocol/json.ts';
import { isServer, type Server } from '../../server.ts';
import type { Target } from './target.ts';

/** Maximum wait in milliseconds for a program without an exported machine to call `server.listen`. */
const LISTEN_MS = 1_000;

/** Loads the modules of a target. @returns the machines by name, those of servers first @throws the error of a module that fails to load */
export async function machinesOf({ path, kind }: Target): Promise<ReadonlyMap<string, AnyStateMachine>> {
  const servers: Server[] = [];
  const listening = new Promise<void>((resolve) => {
    launchedBy({
      listens(server) {
        if (isServer(server)) servers.push(server);
        resolve();
        // Never resolves: the program must not continue as if its server listened.
        return new Promise(() => {});
      },
      reads() {},
    });
  });
  const found = new MachineTable();
  const files = kind === 'file' ? [path] : (await findModules(path)).files;
  const loaded: (readonly [string, Exports])[] = [];
  for (const file of files) {
    const exports = await Promise.race([loadModule(file, 0), listening.then(() => undefined)]);
    if (exports) loaded.push([file, exports]);
  }
  const exported = loaded.flatMap(([file, exports]) =>
    Object.entries(exports).map((entry) => [file, ...entry] as const),
  );
  for (const [, , value] of exported) if (isServer(value)) servers.push(value);
  if (servers.length === 0 && !exported.some(([, , value]) => machineIn(value))) {
    const hold = systemClock.hold();
    await Promise.race([listening, new Promise<void>((resolve) => systemClock.after(LISTEN_MS, resolve))]);
    hold.cancel();
  }
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
