/** The contract between mounts and the features that find their tools for a model, where no list contains them. Types only. */
import type { JsonObject } from '../../core/protocol/json.ts';

/** A way in which a model finds tools. */
export type FoundBy = 'search' | 'code';

/** The option `expose` of a mount. */
export type Exposure = 'all' | FoundBy | readonly FoundBy[];

/** The documentation of a tool, beyond its definition. */
export interface ToolDocumentation {
  /** Its groups, as its author named them. */
  readonly tags: readonly string[];
  /** The schema of its results, which nothing checks. */
  readonly output: JsonObject | undefined;
}

/** A mount whose tools are found. */
export interface FoundMount {
  readonly name: string;
  /** The beginning of the names of its tools; empty if they have none. */
  readonly prefix: string;
  /** The documentation of a tool, by its name in the registry; undefined if there is none. */
  documented(key: string): ToolDocumentation | undefined;
}

/** Finds the tools of mounts for models, with tools of its own. */
export interface ToolFinder {
  /** Finds the tools of a mount from now on, or, if it does already, under another prefix. @throws {DefinitionError} if a tool of the server has the name of one of its own */
  add(mount: FoundMount): void;
  /** Finds the tools of a mount no longer. */
  remove(mount: string): void;
}
