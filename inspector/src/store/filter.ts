/** The filter box: required words, and `name:value` pairs such as `type:tools/call status:error actor:order`. */

export interface Filter {
  readonly types: readonly string[];
  readonly statuses: readonly string[];
  readonly actors: readonly string[];
  readonly words: readonly string[];
  readonly any: boolean;
}

/** The searchable parts of a row. */
export interface Filtered {
  readonly types?: readonly string[];
  readonly status?: string;
  readonly actors?: readonly (string | undefined)[];
  readonly words?: readonly (string | undefined)[];
}

export function parseFilter(text: string): Filter {
  const found = { types: [] as string[], statuses: [] as string[], actors: [] as string[], words: [] as string[] };
  for (const part of text.toLowerCase().split(/\s+/)) {
    if (part === '') continue;
    const [, name = '', value = ''] = /^(\w+):(.+)$/.exec(part) ?? [];
    if (name === 'type' || name === 'method' || name === 'kind') found.types.push(value);
    else if (name === 'status' || name === 'state') found.statuses.push(value);
    else if (name === 'actor' || name === 'client') found.actors.push(value);
    else found.words.push(part);
  }
  return { ...found, any: text.trim() !== '' };
}

/** Pairs with the same name are alternatives; different names, and all words, must match. A partial match is enough. */
export function fits(filter: Filter, { types = [], status = '', actors = [], words = [] }: Filtered): boolean {
  if (!filter.any) return true;
  return (
    oneOf(filter.types, types) &&
    oneOf(filter.statuses, status === 'isError' ? ['error', 'iserror'] : [status]) &&
    oneOf(filter.actors, actors) &&
    filter.words.every((word) => has([...types, status, ...actors, ...words], word))
  );
}

function oneOf(asked: readonly string[], there: readonly (string | undefined)[]): boolean {
  return asked.length === 0 || asked.some((value) => has(there, value));
}

function has(there: readonly (string | undefined)[], value: string): boolean {
  return there.some((text) => text?.toLowerCase().includes(value) === true);
}
