/** The functions of a server: a name for each tool of the mounts whose tools scripts call. It knows no caller. */
import type { Element } from '../../../core/messages/registry-messages.ts';
import type { Tool } from '../../../core/protocol/types.ts';
import type { FoundMount, ToolDocumentation } from '../../../gateway/mounts/tool-finder.ts';
import { isFoundBy } from '../../../gateway/mounts/tool-index.ts';
import { hasEffect } from '../runs/effects.ts';
import type { FunctionTarget } from './code-functions.ts';
import { identifiersFor, TAKEN_GLOBALS, TAKEN_MEMBERS } from './function-names.ts';

/** One function. */
export interface ScriptFunction extends FunctionTarget {
  readonly group: string;
  /** The name within its group. */
  readonly name: string;
  /** Both, such as `github.issues_list`. */
  readonly whole: string;
  /** Its name in the index. */
  readonly ref: number;
  readonly source: string;
  /** The name of the tool without the prefix of its mount. */
  readonly tool: string;
  /** Some calls of it need the approval of people. */
  readonly approved: boolean;
  /** Rules may hide it from a caller. */
  readonly guarded: boolean;
  documented(): ToolDocumentation | undefined;
}

export class FunctionTable {
  readonly functions: readonly ScriptFunction[];
  /** By the whole name, and by the group with the name of the tool. */
  readonly #byName = new Map<string, ScriptFunction>();

  /** The numbers of functions in the index. */
  readonly #refs = new Map<string, number>();
  readonly #lastRef: number;

  /** @param before the table in whose place it is: a function that is the same keeps its number in the index */
  constructor(elements: readonly Element<Tool>[], mounts: readonly FoundMount[], before?: FunctionTable) {
    let last = before ? before.#lastRef : 0;
    const refOf = (id: string): number => {
      const ref = (before ? before.#refs.get(id) : undefined) ?? ++last;
      this.#refs.set(id, ref);
      return ref;
    };
    const groups = identifiersFor(
      mounts.map(({ name }) => name),
      TAKEN_GLOBALS,
    );
    const all: ScriptFunction[] = [];
    for (const mount of mounts) {
      const group = groups.get(mount.name) ?? mount.name;
      const source = `mount ${mount.name}`;
      const tools = elements
        .filter((element) => element.source === source && isFoundBy('code', element))
        .map((element) => ({ element, tool: withoutPrefix(element.key, mount.prefix) }));
      const names = identifiersFor(
        tools.map(({ tool }) => tool),
        TAKEN_MEMBERS,
      );
      for (const { element, tool } of tools) {
        const name = names.get(tool) ?? tool;
        all.push(functionOf(element, mount, { group, name, tool }, refOf));
      }
    }
    this.functions = all;
    this.#lastRef = last;
    const given = [
      ...all.map((each) => [`${each.group}.${each.tool}`, each] as const),
      ...all.map((each) => [each.whole, each] as const),
      // An upstream that has a tool of that name means it.
      ...all.filter(({ name, tool }) => name === tool).map((each) => [each.whole, each] as const),
    ];
    for (const [name, each] of given) this.#byName.set(name, each);
  }

  find(name: string): ScriptFunction | undefined {
    return this.#byName.get(name);
  }
}

function withoutPrefix(key: string, prefix: string): string {
  return key.startsWith(prefix) && key.length > prefix.length ? key.slice(prefix.length) : key;
}

function functionOf(
  element: Element<Tool>,
  mount: FoundMount,
  names: Pick<ScriptFunction, 'group' | 'name' | 'tool'>,
  refOf: (id: string) => number,
): ScriptFunction {
  const { key, definition, access, owned, ref } = element;
  const whole = `${names.group}.${names.name}`;
  return {
    ...{ ...names, whole, key, definition, ref: refOf(`${ref} ${whole}`), source: element.source },
    effects: hasEffect(element),
    approved: (access?.rules?.length ?? 0) > 0,
    guarded: access?.allow !== undefined || access?.hiddenFrom !== undefined || owned === true,
    documented: () => mount.documented(key),
  };
}
