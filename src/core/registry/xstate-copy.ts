/** Rejects a machine that another version of XState created: Troupe reads members of its actors that differ between versions. */
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { StateMachine } from 'xstate';
import type { RuntimeLog } from '../kernel/operator-log.ts';
import { missingMembers, untestedVersion } from '../kernel/xstate-internals.ts';
import { isObject } from '../protocol/json.ts';

/** One installed copy of XState. */
interface Copy {
  readonly version: string;
  readonly folder: string;
}

const require = createRequire(import.meta.url);

/**
 * A machine works if its copy of XState has the major and minor version of Troupe's copy. Two such copies occur in one process:
 * a global `troupe` serves modules that have a copy of their own.
 *
 * @returns what is wrong with the machine and how to correct it; undefined if the machine can run here
 */
export function foreignCopy(machine: object): string | undefined {
  if (machine instanceof StateMachine) return undefined;
  const ours = copyOf((exported) => exported === StateMachine);
  const theirs = copyOf((exported) => typeof exported === 'function' && machine instanceof exported);
  if (ours && theirs && minorOf(ours) === minorOf(theirs)) return undefined;
  const expected = `expected a machine of ${ours ? `xstate ${minorOf(ours)} (${ours.folder})` : "Troupe's copy of xstate"}`;
  if (!theirs)
    return `${expected}, got one of a copy that is bundled into another file. Leave xstate and troupe external when you bundle a program`;
  const install = ours ? `"npm install xstate@${ours.version}"` : "the version of Troupe's copy";
  return `${expected}, got one of xstate ${theirs.version} (${theirs.folder}). Install one copy for both: ${install}, then "npm ls xstate" lists a single version`;
}

/** The logs that have received the warning: one for each server. */
const warned = new WeakSet<RuntimeLog>();

/**
 * Warns the operator, once for each server, that Troupe was not tested with the installed version of XState.
 *
 * @param installed default: the version of Troupe's copy; undefined if it is bundled, so that its version is unknown
 */
export function warnOfUntestedXState(
  log: RuntimeLog,
  installed = copyOf((exported) => exported === StateMachine)?.version,
): void {
  if (warned.has(log) || installed === undefined) return;
  warned.add(log);
  const warning = untestedVersion(installed, missingMembers());
  if (warning !== undefined) log('warning', warning, { event: 'program' });
}

/** Finds the copy whose `StateMachine` fits. An `import` of XState loads its CommonJS files, which `require.cache` lists. */
function copyOf(fits: (exported: unknown) => boolean): Copy | undefined {
  for (const [file, loaded] of Object.entries(require.cache)) {
    if (!/[\\/]xstate[.\w]*\.cjs\.js$/.test(file)) continue;
    const exported: unknown = loaded?.exports;
    if (isObject(exported) && fits(exported.StateMachine)) return packageOf(file);
  }
  return undefined;
}

function packageOf(file: string): Copy | undefined {
  for (let folder = dirname(file); folder !== dirname(folder); folder = dirname(folder)) {
    const manifest = join(folder, 'package.json');
    if (!existsSync(manifest)) continue;
    const { name, version }: { name?: unknown; version?: unknown } = require(manifest);
    if (name === 'xstate' && typeof version === 'string') return { version, folder };
  }
  return undefined;
}

/** "5.33" of "5.33.3". */
function minorOf({ version }: Copy): string {
  return version.split('.').slice(0, 2).join('.');
}
