/** The definition of a mount, and `defineMount` for modules that are discovered. */
import type { ServerInMemory } from '../../client/in-memory.ts';
import { DEFINED, type Defined } from '../../core/registry/define.ts';
import type { MountOptions, MountTarget } from './mount-options.ts';

/** The tool that finds the tools of mounts with `expose: 'search'`. */
export const FIND_TOOL = 'find_tools';
/** The tools that need the lists of all mounts: those that find tools, and the one that runs scripts. */
export const FINDING: ReadonlySet<string> = new Set([
  FIND_TOOL,
  ...['search_functions', 'describe_functions', 'run_code'],
]);

/** A mount as data: its name, its target, and its options. */
export interface MountDefinition extends MountOptions {
  /** 1 to 24 lower-case letters, digits and `-`, such as `gh`. */
  readonly name: string;
  /** As for `server.mount`. */
  readonly target: MountTarget;
}

/** The arguments of `server.mount`. */
export type MountArguments =
  | readonly [name: string, target: MountTarget, options?: MountOptions | undefined]
  | readonly [server: ServerInMemory, options?: MountOptions | undefined];

/** The mounts of a server by their sources. */
export interface MountRegistration {
  /** The mounts that exist, in the order in which they were mounted. */
  definitions(): readonly MountDefinition[];
  /**
   * Replaces the mounts of one source. A mount whose definition is equal stays as it is, with its connections.
   *
   * @throws {DefinitionError} if a mount of another source has one of the names; nothing is changed then
   */
  replaceSource(source: string, definitions: readonly MountDefinition[]): void;
  /** Orders mounts as a configuration has them, from now on. Others come after them, in the order in which they were mounted. */
  arrange(names: readonly string[]): void;
}

/**
 * Defines a mount for `server.discover`; export the result.
 *
 * @example export default defineMount({ name: 'gh', target: 'https://example.com/mcp', only: ['search_*'] });
 */
export function defineMount(definition: MountDefinition): Defined<'mount', MountDefinition> {
  return { ...definition, [DEFINED]: 'mount' };
}
