/** Changes one table in TOML that people edit, such as `[mcp_servers.shop]`: everything else stays as it is, comments included. */

/** A value of a table that is written. */
type TomlValue = string | readonly string[] | Readonly<Record<string, string>>;

export type TomlTable = Readonly<Record<string, TomlValue>>;

/** A line that opens a table, and the path of the table. */
interface Header {
  readonly line: number;
  readonly path: readonly string[];
}

/** A key that stands at the start of a line, with the path of its table. */
interface Assignment {
  readonly path: readonly string[];
}

/** The text of a table, with a header line. @example tomlTable('mcp_servers', 'shop', { command: 'node' }) */
export function tomlTable(member: string, name: string, table: TomlTable): string {
  const path = `${keyText(member)}.${keyText(name)}`;
  const entries = Object.entries(table);
  const own = entries.flatMap(([key, value]) =>
    isTable(value) ? [] : [`${keyText(key)} = ${Array.isArray(value) ? arrayText(value) : stringText(String(value))}`],
  );
  const inner = entries.flatMap(([key, value]) =>
    isTable(value)
      ? [
          '',
          `[${path}.${keyText(key)}]`,
          ...Object.entries(value).map(([each, text]) => `${keyText(each)} = ${stringText(text)}`),
        ]
      : [],
  );
  return `${[`[${path}]`, ...own, ...inner].join('\n')}\n`;
}

/**
 * Sets or removes the table `[member.name]` with the tables below it.
 *
 * @param table undefined removes it
 * @returns the new text, and whether the table was there
 * @throws {Error} for a text that ends within a string or an array, or that writes the entry in another form, such as an inline table
 */
export function withTomlTable(
  text: string,
  member: string,
  name: string,
  table: TomlTable | undefined,
): { readonly text: string; readonly present: boolean } {
  const lines = text.split('\n');
  const { headers, assignments } = outline(lines);
  const isOurs = (path: readonly string[]): boolean => path[0] === member && path[1] === name;
  const other = assignments.find(
    ({ path }) =>
      path[0] === member && (path.length === 1 || (path[1] === name && !headers.some((each) => isOurs(each.path)))),
  );
  if (other) throw new Error(`expected the table [${member}.${name}], got ${other.path.join('.')} = …`);
  // Tables of the entry that follow each other are one range, with the lines between them.
  const ours = headers.flatMap(({ line, path }, index) => {
    if (!isOurs(path) || isOurs(headers[index - 1]?.path ?? [])) return [];
    const next = headers.slice(index).find((each) => !isOurs(each.path))?.line ?? lines.length;
    return [{ from: line, to: endOf(lines, line, next) }];
  });
  const [first, ...more] = ours;
  const written = table === undefined ? [] : tomlTable(member, name, table).trimEnd().split('\n');
  if (!first) {
    if (table === undefined) return { text, present: false };
    const before = text.trimEnd();
    return { text: `${before}${before === '' ? '' : '\n\n'}${written.join('\n')}\n`, present: false };
  }
  const kept = [...lines];
  for (const { from, to } of more.toReversed()) kept.splice(from, to - from);
  kept.splice(first.from, first.to - first.from, ...written);
  return { text: kept.join('\n'), present: true };
}

/** The end of a table: comments and empty lines in front of the next header belong to that. */
function endOf(lines: readonly string[], from: number, next: number): number {
  let end = next;
  while (end > from + 1 && /^\s*(#.*)?$/.test(lines[end - 1] ?? '')) end -= 1;
  return end;
}

/** Finds headers and keys: lines that are not within a string or an array of several lines. */
function outline(lines: readonly string[]): {
  readonly headers: readonly Header[];
  readonly assignments: readonly Assignment[];
} {
  const headers: Header[] = [];
  const assignments: Assignment[] = [];
  let table: readonly string[] = [];
  const state = { quote: '', depth: 0 };
  for (const [line, text] of lines.entries()) {
    if (state.quote === '' && state.depth === 0) {
      const [, list, header = ''] = /^\s*(\[)?\[((?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\]"'])+)\]/.exec(text) ?? [];
      const path = header === '' ? [] : keysOf(header);
      if (path.length > 0) {
        table = path;
        if (list === undefined) headers.push({ line, path });
        // An element of a list of tables ends the table before it.
        else headers.push({ line, path: [] });
        continue;
      }
      const [, key] = /^\s*((?:"(?:[^"\\]|\\.)*"|'[^']*'|[\w.\s-])+?)\s*=/.exec(text) ?? [];
      if (key !== undefined) assignments.push({ path: [...table, ...keysOf(key)] });
    }
    scan(text, state);
  }
  if (state.quote !== '' || state.depth !== 0) throw new Error('it ends within a string or an array');
  return { headers, assignments };
}

/** Follows the strings and brackets of a line. */
function scan(text: string, state: { quote: string; depth: number }): void {
  for (let at = 0; at < text.length; at += 1) {
    const { quote } = state;
    if (quote !== '') {
      if (quote.startsWith('"') && text[at] === '\\') at += 1;
      else if (text.startsWith(quote, at)) {
        at += quote.length - 1;
        state.quote = '';
      }
      continue;
    }
    const character = text[at] ?? '';
    if (character === '#') return;
    if (character === '"' || character === "'") {
      const triple = character.repeat(3);
      state.quote = text.startsWith(triple, at) ? triple : character;
      at += state.quote.length - 1;
    } else if (character === '[' || character === '{') state.depth += 1;
    else if (character === ']' || character === '}') state.depth -= 1;
  }
  // A string of one line does not continue.
  if (state.quote.length === 1) throw new Error(`a string does not end: ${text.trim().slice(0, 40)}`);
}

/** The parts of a key, such as `mcp_servers."my shop"`. */
function keysOf(key: string): readonly string[] {
  const parts = key.match(/"(?:[^"\\]|\\.)*"|'[^']*'|[\w-]+/g) ?? [];
  return parts.map((part) => (part.startsWith('"') || part.startsWith("'") ? part.slice(1, -1) : part));
}

function isTable(value: TomlValue): value is Readonly<Record<string, string>> {
  return typeof value === 'object' && !Array.isArray(value);
}

function keyText(key: string): string {
  return /^[\w-]+$/.test(key) ? key : stringText(key);
}

function arrayText(values: readonly string[]): string {
  return `[${values.map(stringText).join(', ')}]`;
}

/** A basic string: its escapes are those of JSON, and DEL. */
function stringText(text: string): string {
  return JSON.stringify(text.toWellFormed()).replaceAll('\x7f', '\\u007f');
}
