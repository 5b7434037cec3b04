/** Finds tools by the words of a query: a full-text index of their names, descriptions and parameters. */
import MiniSearch from 'minisearch';
import type { Element } from '../../core/messages/registry-messages.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { Tool } from '../../core/protocol/types.ts';
import type { FoundBy } from './tool-finder.ts';

/** A tool of the index. */
export interface IndexedTool {
  readonly key: string;
  /** Changes with the definition. */
  readonly ref: number;
  readonly definition: Tool;
  /** The mount. */
  readonly source: string;
}

/** True for an enabled tool that no list contains, and that a model finds in this way. */
export function isFoundBy(way: FoundBy, { enabled, listed }: Pick<Element<Tool>, 'enabled' | 'listed'>): boolean {
  return enabled && typeof listed === 'object' && listed.includes(way);
}

/** Maximum number of characters of a description, and of the parameters of a tool, that are indexed. */
const MAX_TEXT = 600;
const MAX_TITLE = 100;
/** Maximum number of characters of all tools of one source: an upstream chooses its texts. Each of its tools has the same share. */
const MAX_SOURCE = 500_000;
/** Maximum number of characters and words of a query that are read. */
const MAX_QUERY = 500;
const MAX_WORDS = 10;
/** Tools that are indexed in one turn of the event loop. */
const AT_ONCE = 25;
/** Parameters of one tool that are indexed. */
const MAX_PARAMETERS = 50;

/** Tools that are ranked again by their fit, the weight of no fit, and the characters of a first sentence. */
const MAX_RANKED = 400;
const NO_FIT = 0.1;
const MAX_HEAD = 120;

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

/** The texts of a tool in the index. */
interface IndexedDocument {
  readonly ref: number;
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly parameters: string;
}

interface IndexedEntry {
  readonly tool: IndexedTool;
  readonly length: number;
  /** The roots of the words of its name, and of its title or first sentence. */
  readonly name: ReadonlySet<string>;
  readonly head: ReadonlySet<string>;
}

/** The tools that a search has found. */
interface Found {
  readonly tools: readonly IndexedTool[];
  /** The number of all that match, also those beyond the limit. */
  readonly matches: number;
  /** Words of the query that no visible tool has. */
  readonly unmatched: readonly string[];
}

/** The index follows a list of tools: `update` adds, replaces and removes what differs. */
export class ToolIndex {
  readonly #tools = new Map<number, IndexedEntry>();
  readonly #search = new MiniSearch<IndexedDocument>({
    idField: 'ref',
    fields: ['name', 'title', 'description', 'parameters'],
    tokenize: wordsOf,
    processTerm: (word) => (EMPTY.has(word) ? null : stem(word)),
    autoVacuum: false,
  });
  /** The characters of each source that are indexed. */
  readonly #indexed = new Map<string, number>();
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
    for (const [ref, { tool, length }] of this.#tools)
      if (!now.has(ref)) {
        this.#tools.delete(ref);
        this.#indexed.set(tool.source, (this.#indexed.get(tool.source) ?? 0) - length);
        this.#search.discard(ref);
      }
    const added: IndexedDocument[] = [];
    const counts = new Map<string, number>();
    for (const { source } of tools) counts.set(source, (counts.get(source) ?? 0) + 1);
    for (const tool of tools) {
      if (this.#tools.has(tool.ref)) continue;
      const before = this.#indexed.get(tool.source) ?? 0;
      // Each has the same share: the order of an upstream must not decide what is found.
      const share = Math.floor(MAX_SOURCE / (counts.get(tool.source) ?? 1) / 2);
      const document = documentOf(tool, before < MAX_SOURCE ? Math.min(MAX_TEXT, share) : 0);
      const length = document.description.length + document.parameters.length;
      this.#indexed.set(tool.source, before + length);
      this.#tools.set(tool.ref, { tool, length, ...rootsOf(document) });
      added.push(document);
    }
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
    const words = [...new Map(wordsOf(query.slice(0, MAX_QUERY)).map((word) => [stem(word), word]))]
      .filter(([, word]) => !EMPTY.has(word))
      .slice(0, MAX_WORDS);
    const wanted = new Set(words.map(([root]) => root));
    const queries = words.flatMap(([root, word]) => [
      { queries: [word], ...EXACT },
      ...(SYNONYMS.get(root) ?? [])
        .filter((other) => !wanted.has(stem(other)))
        .map((other) => ({ queries: [other], ...SYNONYM })),
    ]);
    const found = this.#search.search(
      { combineWith: 'OR', queries },
      { boost: BOOST, bm25: BM25, filter: ({ id }) => visible(this.#tools.get(id)?.tool.key ?? '') },
    );
    const groups = words.map(([root]) => [root, ...(SYNONYMS.get(root) ?? []).map(stem)]);
    const ranked = found
      .slice(0, MAX_RANKED)
      .flatMap(({ id, score }) => {
        const entry = this.#tools.get(id);
        return entry ? [{ tool: entry.tool, score: score * fitOf(entry, groups) }] : [];
      })
      .sort((one, other) => other.score - one.score);
    const tools = ranked.slice(0, limit).map(({ tool }) => tool);
    const matched = new Set(found.flatMap(({ queryTerms }) => queryTerms));
    return {
      ...{ tools, matches: found.length },
      unmatched: words.flatMap(([root, word]) =>
        matched.has(root) || SYNONYMS.get(root)?.some((other) => matched.has(stem(other))) ? [] : [word],
      ),
    };
  }
}

/**
 * The fit of a tool to a query beyond the words that they share: a tool about nothing else than the query fits best, and so does one
 * that has all of its words.
 */
function fitOf({ name, head }: IndexedEntry, groups: readonly (readonly string[])[]): number {
  const known = new Set(groups.flat());
  const about = head.size > 0 ? head : name;
  const covered = [...about].filter((root) => known.has(root)).length / (about.size || 1);
  const has = groups.filter((group) => group.some((root) => name.has(root) || head.has(root))).length;
  return (NO_FIT + covered) * (NO_FIT + has / (groups.length || 1));
}

/** The words of a tool for {@link fitOf}. */
function rootsOf({ name, title, description }: IndexedDocument): Pick<IndexedEntry, 'name' | 'head'> {
  const [sentence = ''] = description.slice(0, MAX_HEAD).split(/[.!?\n](?:\s|$)/, 1);
  const roots = (text: string): ReadonlySet<string> =>
    new Set(wordsOf(text).flatMap((word) => (EMPTY.has(word) ? [] : [stem(word)])));
  return { name: roots(name), head: roots(title === '' ? sentence : title) };
}

/** Names and descriptions repeat little, so that length matters less than in prose. */
const BM25 = { k: 1.2, b: 0.4, d: 0.5 };
const BOOST = { name: 3, title: 2, description: 1.5, parameters: 0.5 };
const EXACT = { prefix: (term: string) => term.length > 3, fuzzy: (term: string) => (term.length > 4 ? 0.2 : false) };
const SYNONYM = { prefix: false, fuzzy: false, boostDocument: () => 0.3 };

/** The texts of a tool. @param most characters of its description, and of its parameters */
function documentOf({ key, ref, definition }: IndexedTool, most: number): IndexedDocument {
  const { title, annotations, description, inputSchema } = definition;
  const { properties } = inputSchema;
  const parameters = Object.entries(isObject(properties) ? properties : {})
    .slice(0, MAX_PARAMETERS)
    .map(([name, about]) =>
      isObject(about) && typeof about.description === 'string' ? `${name} ${about.description}` : name,
    );
  return {
    ref,
    // A query may have a name of several words in lower case.
    name: `${key} ${key.match(CAMEL)?.join(' ').toLowerCase() ?? ''}`,
    title: text(title ?? annotations?.title).slice(0, MAX_TITLE),
    description: text(description).slice(0, most),
    parameters: parameters.join(' ').slice(0, most),
  };
}

/** An upstream may send something else in place of a text. */
function text(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A name of several words, such as `listOpenPRs`. */
const CAMEL = /\p{L}*\p{Ll}\p{Lu}\p{L}*/gu;

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
