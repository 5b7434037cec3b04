/** Finds the statecharts of a program without serving it: those of its server, and those that its modules export. */
import { basename, extname } from 'node:path';
import type { AnyStateMachine } from 'xstate';
import { systemClock } from '../../clock.ts';
import { type Exports, loadModule } from '../../discovery/load-module.ts';
import { findModules } from '../../discovery/module-files.ts';
import { launchedBy } from '../../launcher.ts';
import { isObject } from '../../protocol/json.ts';
import { isServer, type Server } from '../../server.ts';
import type { Target } from './target.ts';

/** What a program that exports no machine is given to tell a server to listen, in milliseconds. */
const PATIENCE_MS = 1_000;

/** Loads the modules of a target. @returns the machines by name: those that a server offers first. @throws what a module throws */
export async function machinesOf({ path, kind }: Target): Promise<ReadonlyMap<string, AnyStateMachine>> {
  const servers: Server[] = [];
  const listening = new Promise<void>((resolve) => {
    launchedBy({
      listens(server) {
        if (isServer(server)) servers.push(server);
        resolve();
        // It is not to serve: what comes after that in its module has nothing to wait for.
        return new Promise(() => {});
      },
      reads() {},
    });
  });
  const found = new Found();
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
    await Promise.race([listening, new Promise<void>((resolve) => systemClock.after(PATIENCE_MS, resolve))]);
    hold.cancel();
  }
  for (const { machines, tools } of servers)
    for (const definition of [...machines.definitions(), ...tools.definitions()])
      found.add(definition, definition.name);
  for (const [file, name, value] of exported)
    for (const item of Array.isArray(value) ? value : [value]) found.add(item, nameOf(item, name, file));
  return found.machines;
}

class Found {
  readonly machines = new Map<string, AnyStateMachine>();

  /** The same machine counts once; another of the same name is numbered. */
  add(value: unknown, name: string): void {
    const machine = machineIn(value);
    if (!machine || [...this.machines.values()].includes(machine)) return;
    let free = name;
    for (let count = 2; this.machines.has(free); count += 1) free = `${name}-${count}`;
    this.machines.set(free, machine);
  }
}

/** A machine itself, or the one in what `defineMachine` and `defineTool` make. */
function machineIn(value: unknown): AnyStateMachine | undefined {
  if (isMachine(value)) return value;
  return isObject(value) && isMachine(value.machine) ? value.machine : undefined;
}

/** Of whatever copy of XState. */
function isMachine(value: unknown): value is AnyStateMachine {
  return isObject(value) && isObject(value.root) && isObject(value.states) && typeof value.transition === 'function';
}

/** What its author calls it: as it is defined, as it is exported, or as the file is called that exports it as its default. */
function nameOf(value: unknown, exported: string, file: string): string {
  if (isObject(value) && typeof value.name === 'string' && value.name !== '') return value.name;
  if (exported !== 'default') return exported;
  const id = isMachine(value) ? value.id : '(machine)';
  return id === '(machine)' ? basename(file, extname(file)) : id;
}
