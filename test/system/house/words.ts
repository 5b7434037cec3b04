/** The rule for words: the words that comments, identifiers, pages and titles of tests avoid. See docs/glossary.md for the words to use. */

/** Private vocabulary that has a standard term: notify, again, any caller, no one, borrow, continue. */
const IN_COMMENTS = /\b(told|anew|whoever|nobody|lend|lends|lent|borne|hears|heard|goes on|went on)\b/gi;
const IN_IDENTIFIERS = ['told', 'untold', 'anew', 'whoever', 'nobody', 'lend', 'lends', 'lent', 'lender', 'lenders'];
/** Participles and auxiliaries that name no thing: a type is called after the thing (`StoredSession`, `StepResult`). */
const AS_TYPE = /^(Kept|Keep|Keeps|Given|Told|Left|Stood|Aside|Look|Looks)$/;

/** A comment starts with its subject or its verb. A wh-clause hides both: "What a client gets" is "The response to a client". */
const CLAUSE = /^(What|Whatever|Who|Whoever|Whom|Whose|Where|Wherever|Which|Whichever|Whether|How|Why)\b/;

interface Comment {
  readonly line: number;
  readonly text: string;
}

/** Block comments, and runs of line comments, each as one text. */
export function commentsOf(source: string): Comment[] {
  const pattern = /\/\*\*?([\s\S]*?)\*\/|(?:^|(?<=\s))\/\/(?!\/)([^\n]*(?:\n[ \t]*\/\/[^\n]*)*)/gm;
  return [...source.matchAll(pattern)].map((found) => ({
    line: source.slice(0, found.index).split('\n').length,
    text: (found[1] ?? found[2] ?? '').replace(/\n\s*(\*|\/\/)? ?/g, ' ').trim(),
  }));
}

function identifiersOf(source: string): string[] {
  const code = source
    .replace(/\/\*[\s\S]*?\*\//g, '')
    .replace(/(^|[^:])\/\/.*$/gm, '$1')
    .replace(/`(?:[^`\\]|\\.)*`|'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"/g, "''");
  return [...new Set(code.match(/[A-Za-z_$][\w$]*/g))];
}

const wordsOf = (identifier: string): string[] =>
  (identifier.match(/[A-Z]?[a-z]+|[A-Z]+/g) ?? []).map((word) => word.toLowerCase());

/** Each place of a file that breaks the rule. */
export function wrongWords(file: string, source: string): { clauses: string[]; words: string[] } {
  const comments = commentsOf(source);
  const clauses = comments
    .filter(({ text }) => CLAUSE.test(text))
    .map(({ line, text }) => `${file}:${line}: ${text.slice(0, 80)}`);
  const words = comments.flatMap(({ line, text }) =>
    [...text.matchAll(IN_COMMENTS)].map(([word]) => `${file}:${line}: "${word}" in a comment`),
  );
  for (const name of identifiersOf(source))
    if (wordsOf(name).some((word) => IN_IDENTIFIERS.includes(word))) words.push(`${file}: the name ${name}`);
  for (const [, name = ''] of source.matchAll(/^\s*(?:export )?(?:abstract )?(?:class|interface|type) (\w+)/gm))
    if (AS_TYPE.test(name)) words.push(`${file}: the type ${name}`);
  return { clauses, words };
}

/** The private words in a page of the documentation, outside of code. */
export function wrongWordsInPage(page: string): string[] {
  const prose = page.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(IN_COMMENTS)].map(([word]) => word);
}

/** A title is a fact, so it does not begin with a wh-clause either, also after the id of a promise. */
const CLAUSE_IN_TITLE = new RegExp(`^(?:[A-Z]-\\d+[:,]? )*${CLAUSE.source.slice(1)}`, 'i');

/**
 * The titles of a test file that contain a private word or begin with a wh-clause: a title is a fact in the present tense, in
 * standard terms.
 */
export function wrongTitles(source: string): string[] {
  return [...source.matchAll(/\b(?:test|suite|browserSuite|playing)\(\s*(['"`])((?:\\.|(?!\1)[^\\])*)\1/g)].flatMap(
    ([, , title = '']) => (title.search(IN_COMMENTS) === -1 && !CLAUSE_IN_TITLE.test(title) ? [] : [title]),
  );
}
