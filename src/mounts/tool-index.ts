/** Finds tools by the words of a query: a full-text index of their names, descriptions and parameters. */
import MiniSearch from 'minisearch';
import { isObject } from '../protocol/json.ts';
import type { Tool } from '../protocol/types.ts';

/** A tool of the index. */
export interface IndexedTool {
  readonly key: string;
  /** Changes with the definition. */
  readonly ref: number;
  readonly definition: Tool;
}

/** Most characters of a description, and of a query, that are read. */
const MAX_TEXT = 2_000;
const MAX_QUERY = 500;
/** Tools that are indexed in one turn of the event loop. */
const AT_ONCE = 100;
/** Parameters of one tool that are indexed. */
const MAX_PARAMETERS = 50;

/** Words that say nothing about a tool. */
const EMPTY = new Set(
  'a an and any are as at be by can do for from has have how i if in into is it its me my of on or our please that the their them then there these this to tool us use want was we when who will with would you your'.split(
    ' ',
  ),
);

/** Words of one meaning in names of tools. A query with one of them finds the others, with less weight. */
const SYNONYMS: ReadonlyMap<string, readonly string[]> = new Map(
  [
    'create add new make insert open register append schedule plan',
    'delete remove erase drop destroy trash',
    'update edit modify change set patch rename',
    'get read fetch show view retrieve describe display load see what',
    'list enumerate all browse which what many',
    'find search query lookup locate look',
    'send post write publish deliver reply submit',
    'run execute invoke call start launch trigger',
    'navigate open visit go goto',
    'directions route drive travel way',
    'stop cancel abort kill terminate end halt',
    'copy duplicate clone',
    'upload put attach import',
    'download export save',
    'file document',
    'folder directory path',
    'email mail message inbox',
    'chat message dm',
    'picture image photo screenshot',
    'user person member people account',
    'repository repo',
    'pull merge pr',
    'ticket issue bug',
    'meeting event appointment calendar invitation',
    'customer client',
    'payment charge pay',
    'money refund',
    'database db sql table',
    'website page url web site browser',
    'log logs output',
    'price cost spend spent bill invoice',
    'currency dollar euro',
    'script javascript code',
    'error exception crash failure',
  ].flatMap((line) => {
    const words = line.split(' ');
    return words.map((word): [string, readonly string[]] => [stem(word), words.filter((other) => other !== word)]);
  }),
);

/** The tools that a search has found. */
export interface Found {
  readonly tools: readonly IndexedTool[];
  /** The number of all that match, also those beyond the limit. */
  readonly matches: number;
}

/** The index follows a list of tools: `update` adds, replaces and removes what differs. */
export class ToolIndex {
  readonly #tools = new Map<number, IndexedTool>();
  readonly #search = new MiniSearch<IndexedTool>({
    idField: 'ref',
    fields: ['name', 'title', 'description', 'parameters'],
    extractField: (tool, field) => textOf(tool, field),
    tokenize: wordsOf,
    processTerm: (word) => (EMPTY.has(word) ? null : stem(word)),
    autoVacuum: false,
  });
  #updating: Promise<void> | undefined;

  /**
   * Indexes these tools, and no others. Updates follow each other.
   *
   * @param tools read when the update begins
   */
  update(tools: () => readonly IndexedTool[]): Promise<void> {
    const before = this.#updating ?? Promise.resolve();
    const updated = before.then(() => this.#update(tools()));
    this.#updating = updated.finally(() => {
      if (this.#updating === updated) this.#updating = undefined;
    });
    return updated;
  }

  async #update(tools: readonly IndexedTool[]): Promise<void> {
    const now = new Map(tools.map((tool) => [tool.ref, tool]));
    for (const ref of this.#tools.keys())
      if (!now.has(ref)) {
        this.#tools.delete(ref);
        this.#search.discard(ref);
      }
    const added = tools.filter(({ ref }) => !this.#tools.has(ref));
    for (const tool of added) this.#tools.set(tool.ref, tool);
    await this.#search.addAllAsync(added, { chunkSize: AT_ONCE });
    // Discarded tools stay in the index until it is cleaned.
    if (this.#search.dirtCount > this.#tools.size) await this.#search.vacuum();
  }

  /**
   * The tools that fit a query best, the best first.
   *
   * @param limit most tools
   * @param visible leaves out what the caller must not see
   */
  find(query: string, limit: number, visible: (key: string) => boolean): Found {
    const words = [...new Map(wordsOf(query.slice(0, MAX_QUERY)).map((word) => [stem(word), word]))].filter(
      ([, word]) => !EMPTY.has(word),
    );
    const wanted = new Set(words.map(([root]) => root));
    const queries = words.flatMap(([root, word]) => [
      { queries: [word], ...EXACT },
      ...(SYNONYMS.get(root) ?? [])
        .filter((other) => !wanted.has(stem(other)))
        .map((other) => ({ queries: [other], ...SYNONYM })),
    ]);
    const found = this.#search.search(
      { combineWith: 'OR', queries },
      { boost: BOOST, bm25: BM25, filter: ({ id }) => visible(this.#tools.get(id)?.key ?? '') },
    );
    const tools = found.slice(0, limit).flatMap(({ id }) => this.#tools.get(id) ?? []);
    return { tools, matches: found.length };
  }
}

/** Names and descriptions repeat little, so that length matters less than in prose. */
const BM25 = { k: 1.2, b: 0.4, d: 0.5 };
const BOOST = { name: 3, title: 2, description: 1.5, parameters: 0.5 };
const EXACT = { prefix: (term: string) => term.length > 3, fuzzy: (term: string) => (term.length > 4 ? 0.2 : false) };
const SYNONYM = { prefix: false, fuzzy: false, boostDocument: () => 0.3 };

function textOf({ key, ref, definition }: IndexedTool, field: string): string | number {
  const { title, annotations, description = '', inputSchema } = definition;
  switch (field) {
    case 'name':
      return key;
    case 'title':
      return title ?? annotations?.title ?? '';
    case 'description':
      return description.slice(0, MAX_TEXT);
    case 'parameters': {
      const { properties } = inputSchema;
      if (!isObject(properties)) return '';
      return Object.entries(properties)
        .slice(0, MAX_PARAMETERS)
        .map(([name, about]) =>
          isObject(about) && typeof about.description === 'string' ? `${name} ${about.description}` : name,
        )
        .join(' ')
        .slice(0, MAX_TEXT);
    }
    default:
      return ref;
  }
}

/** Splits at everything that is no letter or digit, and in front of capitals in the middle: `listOpenPRs`, `list_open`. */
function wordsOf(text: string): string[] {
  return text
    .replace(/(\p{Ll}|\d)(\p{Lu})/gu, '$1 $2')
    .toLowerCase()
    .split(/[^\p{L}\p{N}]+/u)
    .filter((word) => word !== '');
}

/** Removes the endings of English plurals and verbs: the same for the index and the query, so that it need not be a word. */
function stem(word: string): string {
  let root = word;
  if (root.length > 4 && root.endsWith('ies')) root = `${root.slice(0, -3)}y`;
  else if (root.length > 3 && root.endsWith('s') && !/(ss|us|is)$/.test(root)) root = root.slice(0, -1);
  if (root.length > 5 && root.endsWith('ing')) root = root.slice(0, -3);
  else if (root.length > 4 && root.endsWith('ed')) root = root.slice(0, -2);
  return root.length > 4 && root.endsWith('e') ? root.slice(0, -1) : root;
}
