/** Reads the YAML frontmatter of a Markdown file, as all hosts of skills read it (SEP-2640). */

/** Longest frontmatter in UTF-16 code units, also after its aliases are resolved. The parser needs quadratic time for some texts. */
const MAX_LENGTH = 16_384;
/** Aliases that the frontmatter may resolve: more of them can multiply a small text (YAML 1.2 section 7.1). */
const MAX_ALIASES = 100;

interface Frontmatter {
  /** The value as JSON would represent it, unless it has a number that JSON cannot represent. */
  readonly frontmatter: unknown;
  /** The text below the frontmatter. */
  readonly body: string;
  /** The line of the file, from 1, at which a field of the frontmatter begins; that of the frontmatter if it has no such field. */
  lineOf(field: string): number;
  /** The fields, at any depth, whose names are no strings; YAML allows any value as a name. */
  oddNames(): readonly { readonly name: string; readonly line: number }[];
}

/** The frontmatter cannot be read. */
export class FrontmatterError extends Error {
  /** The line of the file, from 1. */
  readonly line: number;

  constructor(message: string, line: number) {
    super(message);
    this.name = 'FrontmatterError';
    this.line = line;
  }
}

/**
 * Splits a Markdown file, and reads its frontmatter. Loads the package `yaml` with the first file.
 *
 * @throws {FrontmatterError} if there is no frontmatter, or it is not YAML that JSON can represent
 */
export async function readFrontmatter(text: string): Promise<Frontmatter> {
  const start = /^\uFEFF?---[ \t]*\r?\n/.exec(text);
  const rest = text.slice(start?.[0].length ?? 0);
  const end = /^---[ \t]*\r?(?:\n|$)/m.exec(rest);
  if (!start || !end) throw new FrontmatterError('expected a frontmatter between two lines "---"', 1);
  const source = rest.slice(0, end.index);
  if (source.length > MAX_LENGTH)
    throw new FrontmatterError(
      `expected a frontmatter of at most ${MAX_LENGTH} characters, got ${source.length}`,
      FIRST_LINE,
    );
  const { isMap, isScalar, parseDocument, visit } = await import('yaml');
  // Values as YAML 1.2 types them: a date and `yes` are text (SEP-2640 compares with this schema).
  const document = parseDocument(source, { version: '1.2', schema: 'core', logLevel: 'silent', prettyErrors: false });
  const lineAt = (place: number | undefined): number =>
    FIRST_LINE + (source.slice(0, place ?? 0).match(/\n/g)?.length ?? 0);
  const [problem] = [...document.errors, ...document.warnings];
  if (problem)
    throw new FrontmatterError(
      `the frontmatter is not valid YAML: ${problem.message.slice(0, 200)}`,
      lineAt(problem.pos[0]),
    );
  const lineOf = (field: string): number => {
    const { contents } = document;
    const pair = isMap(contents) ? contents.items.find(({ key }) => isScalar(key) && key.value === field) : undefined;
    return lineAt(pair && isScalar(pair.key) ? pair.key.range?.[0] : undefined);
  };
  let frontmatter: unknown;
  try {
    frontmatter = document.toJS({ maxAliasCount: MAX_ALIASES });
  } catch (error) {
    throw new FrontmatterError(
      `the frontmatter is not valid YAML: ${error instanceof Error ? error.message.slice(0, 200) : 'it cannot be resolved'}`,
      FIRST_LINE,
    );
  }
  const excess = excessIn(frontmatter);
  if (excess !== undefined)
    throw new FrontmatterError(
      `expected a frontmatter of at most ${MAX_LENGTH} characters when its aliases are resolved, got more`,
      lineOf(excess),
    );
  return {
    frontmatter,
    body: rest.slice(end.index + end[0].length),
    lineOf,
    oddNames() {
      const found: { readonly name: string; readonly line: number }[] = [];
      visit(document, {
        Pair(_, { key }) {
          if (isScalar(key) && typeof key.value === 'string' && key.value !== '__proto__') return;
          found.push({
            name: String(isScalar(key) ? key.value : 'a list or an object'),
            line: lineAt(isScalar(key) ? key.range?.[0] : undefined),
          });
        },
      });
      return found;
    },
  };
}

/** The field with which the values become too long; undefined if they do not. A value that contains itself has no end. */
function excessIn(frontmatter: unknown): string | undefined {
  let length = 0;
  for (const [field, value] of Object.entries(Object(frontmatter))) {
    const left = [value];
    while (left.length > 0) {
      const next = left.pop();
      length += typeof next === 'string' ? next.length + 1 : 1;
      if (length + left.length > MAX_LENGTH) return field;
      if (typeof next === 'object' && next !== null)
        for (const [name, part] of Object.entries(next)) {
          length += name.length;
          left.push(part);
        }
    }
  }
  return undefined;
}

/** The line after the opening "---". */
const FIRST_LINE = 2;
