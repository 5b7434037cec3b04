/** Registers the definitions of modules. Each file is one source: all of its definitions are replaced, or none. */

import type { AnyPrompt, AnyTool, ResourceDefinition } from '../../core/registry/define.ts';
import type { MountDefinition } from '../../gateway/mounts/define-mount.ts';
import type { AnyMachine } from '../machines/define-machine.ts';
import { NO_OFFERS, type Offers } from './module-exports.ts';

/** The part of a server's registration that this file uses. */
interface Replaceable<Definition> {
  replaceSource(source: string, definitions: readonly Definition[]): void;
}

export interface OfferedModules {
  readonly tools: Replaceable<AnyTool>;
  readonly machines: Replaceable<AnyMachine>;
  readonly resources: Replaceable<ResourceDefinition>;
  readonly prompts: Replaceable<AnyPrompt>;
  readonly mounts: Replaceable<MountDefinition>;
}

/**
 * Replaces the definitions of files.
 * @param offered what each file has registered; updated in place
 * @param fresh the new definitions of each file, in the order in which names are assigned
 * @returns by path, why a file was rejected; its previous definitions stay registered
 */
export function replaceOffers(
  server: OfferedModules,
  offered: Map<string, Offers>,
  fresh: ReadonlyMap<string, Offers>,
): ReadonlyMap<string, unknown> {
  const refused = new Map<string, unknown>();
  // First remove the names that a file no longer defines: another file may have taken them over.
  for (const [path, next] of fresh) {
    const before = offered.get(path);
    const kept = before && keep(before, next);
    if (kept) put(server, path, kept);
  }
  for (const [path, next] of fresh) {
    try {
      put(server, path, next);
      offered.set(path, next);
    } catch (error) {
      refused.set(path, error);
      restore(server, path, offered);
    }
  }
  return refused;
}

/** Removes all definitions of a file. */
export function withdraw(server: OfferedModules, offered: Map<string, Offers>, path: string): void {
  put(server, path, NO_OFFERS);
  offered.delete(path);
}

function put({ tools, machines, resources, prompts, mounts }: OfferedModules, path: string, offers: Offers): void {
  tools.replaceSource(path, offers.tools);
  machines.replaceSource(path, offers.machines);
  resources.replaceSource(path, offers.resources);
  prompts.replaceSource(path, offers.prompts);
  mounts.replaceSource(path, offers.mounts);
}

/** Undoes a partial replacement: a file is rejected as a whole. */
function restore(server: OfferedModules, path: string, offered: Map<string, Offers>): void {
  try {
    put(server, path, offered.get(path) ?? NO_OFFERS);
  } catch {
    // Another file has taken one of the names in the meantime.
    withdraw(server, offered, path);
  }
}

/** The earlier definitions that the file still has; undefined if it has all of them. */
function keep(before: Offers, next: Offers): Offers | undefined {
  const names = <D>(definitions: readonly D[], key: (definition: D) => string) => new Set(definitions.map(key));
  const [tools, machines, resources, prompts, mounts] = [
    names(next.tools, ({ name }) => name),
    names(next.machines, ({ name }) => name),
    names(next.resources, ({ uri }) => uri),
    names(next.prompts, ({ name }) => name),
    names(next.mounts, ({ name }) => name),
  ];
  const kept = {
    tools: before.tools.filter(({ name }) => tools.has(name)),
    machines: before.machines.filter(({ name }) => machines.has(name)),
    resources: before.resources.filter(({ uri }) => resources.has(uri)),
    prompts: before.prompts.filter(({ name }) => prompts.has(name)),
    mounts: before.mounts.filter(({ name }) => mounts.has(name)),
  };
  return count(kept) === count(before) ? undefined : kept;
}

function count(offers: Offers): number {
  return Object.values(offers).reduce((sum, definitions) => sum + definitions.length, 0);
}
