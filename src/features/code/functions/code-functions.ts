/** The functions of scripts, as the caller of one request may use them. Types only. */
import type { JsonValue } from '../../../core/protocol/json.ts';
import type { Tool } from '../../../core/protocol/types.ts';

/** The tool behind a function. */
export interface FunctionTarget {
  /** The name of the tool in the registry. */
  readonly key: string;
  readonly definition: Tool;
  /** It may change something: it does not say that it only reads, or what it says is not trusted. */
  readonly effects: boolean;
}

/**
 * The functions that the caller of one request may call. A function has the name `group.function`: its group is the name of a
 * mount, and both are JavaScript identifiers. `group["name of the tool"]` means the same tool.
 */
export interface CallableFunctions {
  /** The groups, which are globals of a script, in alphabetical order. */
  readonly groups: readonly string[];
  /** The tool behind `group.function`; undefined for an unknown one, and for one that the caller may not know of. */
  find(name: string): FunctionTarget | undefined;
  /** Up to three names that are near to an unknown one. */
  near(name: string): readonly string[];
  /** The declaration of a function with its parameters, for the error of invalid arguments. */
  declared(name: string): string | undefined;
  /** Notes the types of a result of a tool without output schema. It never keeps values. */
  learn(name: string, value: JsonValue): void;
}
