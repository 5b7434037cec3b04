/** Puts what modules offer into a server's registries: each file is a source of its own, replaced whole or not at all. */

import type { AnyMachine } from '../handles/define-machine.ts';
import type { AnyPrompt, AnyTool, ResourceDefinition } from '../registry/define.ts';
import { NOTHING, type Offers } from './module-exports.ts';

/** What this needs of a server's registrations. */
interface Replaceable<Definition> {
  replaceSource(source: string, definitions: readonly Definition[]): void;
}

export interface OfferedModules {
  readonly tools: Replaceable<AnyTool>;
  readonly machines: Replaceable<AnyMachine>;
  readonly resources: Replaceable<ResourceDefinition>;
  readonly prompts: Replaceable<AnyPrompt>;
}

/**
 * Replaces what files offer.
 *
 * @param offered what each file offers until now; brought up to date
 * @param fresh what each file offers from now on, in the order in which names are given out
 * @returns why some of the files were refused, by path: they go on offering what they did
 */
export function replaceOffers(
  server: OfferedModules,
  offered: Map<string, Offers>,
  fresh: ReadonlyMap<string, Offers>,
): ReadonlyMap<string, unknown> {
  const refused = new Map<string, unknown>();
  // First every file lets go of the names that it no longer offers: another may have taken them over.
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

/** Takes back all that a file offers. */
export function withdraw(server: OfferedModules, offered: Map<string, Offers>, path: string): void {
  put(server, path, NOTHING);
  offered.delete(path);
}

function put({ tools, machines, resources, prompts }: OfferedModules, path: string, offers: Offers): void {
  tools.replaceSource(path, offers.tools);
  machines.replaceSource(path, offers.machines);
  resources.replaceSource(path, offers.resources);
  prompts.replaceSource(path, offers.prompts);
}

/** A file is refused whole: what was taken of it already is undone. */
function restore(server: OfferedModules, path: string, offered: Map<string, Offers>): void {
  try {
    put(server, path, offered.get(path) ?? NOTHING);
  } catch {
    // Another file has taken one of the names meanwhile.
    withdraw(server, offered, path);
  }
}

/** Of what was offered, what still is; undefined if that is all of it. */
function keep(before: Offers, next: Offers): Offers | undefined {
  const names = <D>(definitions: readonly D[], key: (definition: D) => string) => new Set(definitions.map(key));
  const [tools, machines, resources, prompts] = [
    names(next.tools, ({ name }) => name),
    names(next.machines, ({ name }) => name),
    names(next.resources, ({ uri }) => uri),
    names(next.prompts, ({ name }) => name),
  ];
  const kept = {
    tools: before.tools.filter(({ name }) => tools.has(name)),
    machines: before.machines.filter(({ name }) => machines.has(name)),
    resources: before.resources.filter(({ uri }) => resources.has(uri)),
    prompts: before.prompts.filter(({ name }) => prompts.has(name)),
  };
  return count(kept) === count(before) ? undefined : kept;
}

function count({ tools, machines, resources, prompts }: Offers): number {
  return tools.length + machines.length + resources.length + prompts.length;
}
