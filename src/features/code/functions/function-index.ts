/** Finds and declares functions for callers: each sees only the functions that it may know of. */
import type { Clock } from '../../../core/kernel/clock.ts';
import type { Element } from '../../../core/messages/registry-messages.ts';
import type { JsonObject, JsonValue } from '../../../core/protocol/json.ts';
import type { Tool } from '../../../core/protocol/types.ts';
import { onOneLine, sentenceOf } from '../../../core/schema/first-sentence.ts';
import { anyShape, shapesOf } from '../../../core/schema/object-shapes.ts';
import { key } from '../../../core/schema/written-types.ts';
import type { FoundMount } from '../../../gateway/mounts/tool-finder.ts';
import { ToolIndex } from '../../../gateway/mounts/tool-index.ts';
import type { CallableFunctions, FunctionTarget } from './code-functions.ts';
import { type Declarable, declareParameters, declarePart, declaring } from './declarations.ts';
import { FunctionTable, type ScriptFunction } from './function-table.ts';
import { NearNames } from './near-names.ts';
import { ResultShapes } from './result-shapes.ts';

/** Functions that a search returns, unless its caller wants another number. */
export const USUAL_FOUND = 10;
export const MOST_FOUND = 50;
/** Functions of one description. */
export const MOST_DESCRIBED = 20;
/** Maximum number of characters of the result of a search, of a line in it, and of what a function does. */
const MAX_RESULT = 8_000;
const MAX_SIGNATURE = 240;
const MAX_ABOUT = 100;
/** Parameters in a line. Required ones are always there. */
const MAX_PARAMETERS = 6;
/** Groups, and tags of one, in an overview. */
const MAX_GROUPS = 100;
const MAX_TAGS = 40;
/** The longest declarations that the description of the tool for scripts has, in characters: about 1,500 tokens. */
const MAX_DECLARED = 5_200;
/** Names that are suggested. */
const NEAR = 3;
/** Unknown names of one description for which near names are suggested. */
const MOST_SUGGESTED = 5;
const MAX_NAME = 128;

interface FunctionsHost {
  readonly catalogue: { readonly version: number; all(): readonly Element<Tool>[] };
}

/** A caller: the names of tools that are hidden from it, and its principal. */
interface Caller {
  readonly hides: ReadonlySet<string> | undefined;
  readonly principal: string;
}

export class FunctionIndex {
  readonly #host: FunctionsHost;
  readonly #isReadOnly: boolean;
  readonly #mounts = new Map<string, FoundMount>();
  readonly #index = new ToolIndex();
  readonly #shapes = new ResultShapes();
  #table: FunctionTable | undefined;
  #version = -1;
  #indexed: FunctionTable | undefined;
  #declared: { readonly of: FunctionTable; readonly text: string } | undefined;

  /** @param isReadOnly calls that may change something fail */
  constructor(host: FunctionsHost, isReadOnly: boolean) {
    this.#host = host;
    this.#isReadOnly = isReadOnly;
  }

  /** The names of the mounts. */
  get mounts(): readonly string[] {
    return [...this.#mounts.keys()];
  }

  add(mount: FoundMount): void {
    this.#mounts.set(mount.name, mount);
    this.#version = -1;
  }

  remove(mount: string): void {
    if (this.#mounts.delete(mount)) this.#version = -1;
  }

  get table(): FunctionTable {
    const { catalogue } = this.#host;
    if (!this.#table || this.#version !== catalogue.version) {
      this.#version = catalogue.version;
      this.#table = new FunctionTable(catalogue.all(), [...this.#mounts.values()], this.#table);
    }
    return this.#table;
  }

  /** The functions that one caller may call. */
  of(caller: Caller): CallerFunctions {
    return new CallerFunctions(
      () => this.table,
      { ...caller, isReadOnly: this.#isReadOnly },
      this.#shapes,
      (query, limit, visible) => this.#find(query, limit, visible),
    );
  }

  /** The declarations of all functions, if they are few and no caller sees less than another; otherwise empty. */
  get declarations(): string {
    const { table } = this;
    if (this.#declared?.of !== table)
      this.#declared = {
        of: table,
        text: declarationsOf(table.functions.filter(({ effects }) => !(effects && this.#isReadOnly))),
      };
    return this.#declared.text;
  }

  async #find(query: string, limit: number, visible: (whole: string) => boolean) {
    while (this.#indexed !== this.table) {
      const { table } = this;
      await this.#index.update(() => table.functions.map((each) => ({ ...each, key: each.whole })));
      this.#indexed = table;
    }
    return this.#index.find(query, limit, visible);
  }
}

function declarationsOf(functions: readonly ScriptFunction[]): string {
  if (functions.length === 0 || functions.length > MOST_DESCRIBED || functions.some(({ guarded }) => guarded))
    return '';
  const steps = declaring(functions.map((of) => ({ of, output: outputOf(of), seen: false })));
  let step = steps.next();
  while (step.done !== true) step = steps.next();
  const { text, left } = step.value;
  return text.length <= MAX_DECLARED && left.length === 0 ? text : '';
}

/** The schema of the results of a function, as its tool or its author gives it. */
function outputOf(of: ScriptFunction): JsonObject | undefined {
  return of.definition.outputSchema ?? of.documented()?.output;
}

type Find = (
  query: string,
  limit: number,
  visible: (whole: string) => boolean,
) => Promise<{
  readonly tools: readonly { readonly key: string }[];
  readonly matches: number;
  readonly unmatched: readonly string[];
}>;

/** See {@link CallableFunctions}; and what its caller may read of them. */
export class CallerFunctions implements CallableFunctions {
  readonly #table: () => FunctionTable;
  readonly #caller: Caller;
  readonly #shapes: ResultShapes;
  readonly #search: Find;
  readonly #visible: readonly ScriptFunction[];
  #near: NearNames | undefined;

  /** @param caller `isReadOnly`: no search shows it functions that may change something, because their calls fail */
  constructor(
    table: () => FunctionTable,
    caller: Caller & { readonly isReadOnly: boolean },
    shapes: ResultShapes,
    search: Find,
  ) {
    this.#table = table;
    this.#caller = caller;
    this.#shapes = shapes;
    this.#search = search;
    this.#visible = table().functions.filter((each) => this.#sees(each) && !(caller.isReadOnly && each.effects));
  }

  get groups(): readonly string[] {
    return [...new Set(this.#visible.map(({ group }) => group))].sort();
  }

  find(name: string): FunctionTarget | undefined {
    return this.#find(name);
  }

  near(name: string): readonly string[] {
    this.#near ??= new NearNames(this.#visible.map(({ whole }) => whole));
    const near = this.#near.of(name, NEAR);
    if (near.length > 0) return near;
    const group = this.#visible.filter((each) => name.startsWith(`${each.group}.`));
    return group.length <= NEAR ? group.map(({ whole }) => whole) : [];
  }

  declared(name: string): string | undefined {
    const found = this.#find(name);
    return found && declareParameters(found);
  }

  learn(name: string, value: JsonValue): void {
    const found = this.#find(name);
    // The schema of an API, which may be missing, is compiled only for a declaration.
    if (found && found.definition.outputSchema === undefined)
      this.#shapes.learn(this.#caller.principal, found.definition, value);
  }

  /** The lines of a search, or, without a query, the groups. */
  async search(query: string, limit: number): Promise<string> {
    if (query.trim() === '') return this.#overview(this.#visible);
    const group = this.#visible.filter((each) => each.group === query.trim());
    // The best of a thousand functions for the name of their group are any of them.
    if (group.length > limit) return this.#overview(group);
    const byName = new Map(this.#visible.map((each) => [each.whole, each]));
    const { tools, matches, unmatched } = await this.#search(query, limit, (whole) => byName.has(whole));
    const exact = this.#find(query.trim());
    const found = [
      ...new Set([...(exact ? [exact] : []), ...tools.flatMap(({ key: whole }) => byName.get(whole) ?? [])]),
    ];
    if (found.length === 0) return this.#nothing(query);
    const lines: string[] = [];
    let length = 0;
    for (const each of found.slice(0, limit)) {
      const line = lineOfFunction(each);
      length += line.length + 1;
      if (length > MAX_RESULT && lines.length > 0) break;
      lines.push(line);
    }
    const more = matches - lines.length;
    return [
      ...lines,
      ...(more > 0 ? [`${more} more match less well.`] : []),
      // All lines may be about something else.
      ...(unmatched.length > 0 && !exact ? [`No function has: ${onOneLine(unmatched.join(', '), MAX_ABOUT)}.`] : []),
    ].join('\n');
  }

  /** The declarations of functions, and of parts of them. Between them other requests have their turns. */
  async describe(names: readonly string[], clock: Pick<Clock, 'soon'>): Promise<string> {
    const chosen = new Map<string, ScriptFunction>();
    const parts: string[] = [];
    const unknown: string[] = [];
    for (const name of new Set(names)) {
      const [, whole = name, path] = /^([^:]+):(.+)$/s.exec(name) ?? [];
      const found = this.#find(name) ?? this.#find(whole);
      const part = found && path !== undefined && !this.#find(name) ? declarePart(this.#declarable(found), path) : '';
      if (found && part === '') chosen.set(found.whole, found);
      else if (part !== undefined && part !== '') parts.push(part);
      else unknown.push(this.#unknown(name, found && path, unknown.length < MOST_SUGGESTED));
    }
    const steps = declaring([...chosen.values()].map((each) => this.#declarable(each)));
    let step = steps.next();
    while (step.done !== true) {
      await new Promise<void>((resolve) => clock.soon(resolve));
      step = steps.next();
    }
    const { text, left } = step.value;
    const more =
      left.length === 0 ? [] : [`Too long for one answer, describe them in another call: ${left.join(', ')}`];
    return [text, ...parts, ...more, ...unknown].filter(Boolean).join('\n').trimEnd();
  }

  #find(name: string): ScriptFunction | undefined {
    // A call of a script may have changed what there is.
    const found = this.#table().find(name);
    return found && this.#sees(found) ? found : undefined;
  }

  #sees({ key: tool }: ScriptFunction): boolean {
    return this.#caller.hides?.has(tool) !== true;
  }

  #declarable(of: ScriptFunction): Declarable {
    const output = outputOf(of);
    const seen = output ? undefined : this.#shapes.get(this.#caller.principal, of.definition);
    return { of, output: output ?? seen, seen: seen !== undefined };
  }

  /** @param suggests looks for near names, which takes milliseconds among thousands */
  #unknown(name: string, path: string | undefined, suggests: boolean): string {
    const shown = onOneLine(name, MAX_NAME);
    if (path !== undefined) return `${shown}: the function has no such part. Parts begin with args or result.`;
    const near = suggests ? this.near(name) : [];
    return `${shown}: no such function.${near.length === 0 ? ' Find it with search_functions.' : ` Did you mean ${near.join(', ')}?`}`;
  }

  #nothing(query: string): string {
    const groups = this.groups.slice(0, MAX_PARAMETERS).join(', ');
    return `No function matches "${onOneLine(query, MAX_ABOUT)}". Use other words${groups === '' ? '' : `. The groups are: ${groups}`}.`;
  }

  /** The groups with the numbers of their functions, by tag if they have any. */
  #overview(functions: readonly ScriptFunction[]): string {
    const groups = new Map<string, { count: number; readonly tags: Map<string, number> }>();
    for (const each of functions) {
      const group = groups.get(each.group) ?? { count: 0, tags: new Map() };
      group.count += 1;
      for (const tag of each.documented()?.tags ?? []) group.tags.set(tag, (group.tags.get(tag) ?? 0) + 1);
      groups.set(each.group, group);
    }
    const lines = [...groups].sort().map(([group, { count, tags }]) => {
      const sorted = [...tags].sort(([one, ones], [other, others]) => others - ones || (one < other ? -1 : 1));
      const shown = sorted.slice(0, MAX_TAGS).map(([tag, number]) => `${onOneLine(tag, MAX_ABOUT)} ${number}`);
      const more = sorted.length - shown.length;
      return `${group}: ${count} function${count === 1 ? '' : 's'}${shown.length === 0 ? '' : ` (${shown.join(', ')}${more > 0 ? `, ${more} more tags` : ''})`}`;
    });
    if (lines.length === 0) return 'There are no functions.';
    return [...lines.slice(0, MAX_GROUPS), 'Search with words of what a function does, or of a tag.'].join('\n');
  }
}

/** A function on one line: its parameters are members of one object. */
function lineOfFunction(each: ScriptFunction): string {
  const { members, required } = anyShape(shapesOf(each.definition.inputSchema));
  const names = [...members.keys()];
  const optional = names.filter((name) => !required.has(name));
  const shown = [
    ...names.filter((name) => required.has(name)).map(key),
    ...optional.slice(0, Math.max(0, MAX_PARAMETERS - required.size)).map((name) => `${key(name)}?`),
  ];
  const parameters = [...shown, ...(shown.length < names.length ? ['…'] : [])].join(', ');
  const signature = onOneLine(`${each.whole}(${parameters === '' ? '' : `{ ${parameters} }`})`, MAX_SIGNATURE);
  const { description, title } = each.definition;
  const about = sentenceOf(description ?? title, MAX_ABOUT);
  return [
    signature,
    ...(each.effects ? ['!'] : []),
    ...(each.approved ? ['(needs approval)'] : []),
    ...(about === '' ? [] : [`– ${about}`]),
  ].join(' ');
}
