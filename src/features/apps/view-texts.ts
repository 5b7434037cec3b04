/** The texts of generated pages: what a page says by itself, in English, and the names and translations of an author. */

/** The sentences and words of a page itself. A name in braces stands for a value. */
export const ENGLISH = {
  waiting: 'Waiting',
  done: 'Done',
  failed: 'Failed',
  ended: 'Discarded',
  expired: 'No longer available',
  steps: 'Steps',
  actions: 'Actions',
  data: 'Data',
  table: 'Table',
  questions: 'Questions',
  delays: 'Delays',
  note: 'Note',
  yes: 'yes',
  no: 'no',
  optional: '(optional)',
  choose: 'choose',
  perLine: 'One per line',
  more: 'and {count} more',
  back: 'Back',
  confirm: '{event}?',
  discard: 'Discard',
  discardHint: 'It stops here for good, without a further step.',
  question: 'A question',
  answer: 'Answer',
  decline: 'Decline',
  open: 'Open {host}',
  until: 'Until {time}',
  forAssistant: 'The assistant answers this.',
  after: 'After {time}',
  again: 'Try again',
  lost: 'The connection is lost. This may be an earlier state.',
  gone: 'This is no longer available.',
  earlier: 'This is an earlier state.',
  cancelled: 'This was cancelled.',
  notOpened: 'There is nothing to show, because the call did not succeed.',
  notSent: 'The chat has not sent what this view shows. Ask for it again.',
  notNow: 'This is not possible now.',
  notDone: 'This did not succeed.',
  noAnswer: 'There was no answer. Look at the state before you try again.',
  notHere: 'This chat does not let you do this here. Ask for it in the chat.',
  invalid: 'Please check what you entered.',
  running: 'Running',
  result: 'Result',
  rerun: 'Run again',
  finished: 'The result is there.',
  reopen: 'This view is too old to answer. Open a new one.',
} as const;

export type ViewWords = { readonly [word in keyof typeof ENGLISH]: string };

/** Names for people. The name of an event or a state says nothing about the name of a delay: each kind has its own. */
export interface ViewLabels {
  /** By their paths, such as `paying.charging`. */
  readonly states?: Readonly<Record<string, string>> | undefined;
  readonly events?: Readonly<Record<string, string>> | undefined;
  /** By the names of the delays in the machine, or by their lengths, such as `30 min`. */
  readonly delays?: Readonly<Record<string, string>> | undefined;
  /** Of members of `view` and `output`, and of the fields of forms, at any depth. */
  readonly members?: Readonly<Record<string, string>> | undefined;
  /** Names of texts, by their member: `{ sku: { tea: 'Tee' } }`. */
  readonly values?: Readonly<Record<string, Readonly<Record<string, string>>>> | undefined;
  /** By the names of guards: why an event whose guard rejects it cannot happen. */
  readonly reasons?: Readonly<Record<string, string>> | undefined;
  /** By the ids of the invocations that ask: other texts than those of the machine. `{total}` is a member of `view`. */
  readonly questions?: Readonly<Record<string, string>> | undefined;
}

export const LABELS = ['states', 'events', 'delays', 'members', 'values', 'reasons', 'questions'] as const;

/** The texts of a page in one language. */
export interface ViewTexts {
  /** The heading. */
  readonly title?: string | undefined;
  readonly labels?: ViewLabels | undefined;
  /** Sentences and words of the page itself. Those that are left out are English. */
  readonly words?: Partial<ViewWords> | undefined;
}

/** The texts of other languages, by their tags, such as `de` or `pt-BR`. */
export type Translations = Readonly<Record<string, ViewTexts>>;

/** The texts for a language: those of its tag, or of the longest beginning of it. What they leave out is as without them. */
export function textsFor(texts: ViewTexts, translations: Translations, locale = ''): ViewTexts {
  const tag = locale.toLowerCase();
  const [, found] =
    Object.entries(translations)
      .filter(([known]) => `${tag}-`.startsWith(`${known.toLowerCase()}-`))
      .sort(([a], [b]) => b.length - a.length)[0] ?? [];
  if (!found) return texts;
  const { title, labels = {}, words } = found;
  return {
    title: title ?? texts.title,
    labels: Object.fromEntries(LABELS.map((kind) => [kind, { ...texts.labels?.[kind], ...labels[kind] }])),
    words: { ...texts.words, ...words },
  };
}

/** A label may have the name of a member that every object has, such as `toString`. */
export function own<T>(names: Readonly<Record<string, T>> = {}, name: string): T | undefined {
  return Object.hasOwn(names, name) ? names[name] : undefined;
}

/** `add_item` as `Add item`. */
export function label(name: string): string {
  const spaced = name
    .replace(/[_.-]+/g, ' ')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .toLowerCase()
    .trim();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}

/** Puts values into a text. A name in braces that has none stays as it is. */
export function withValues(text: string, valueFor: (name: string) => string | undefined): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => valueFor(name) ?? whole);
}

/** The length of a delay without a name, such as `30 min` (src/core/kernel/charts/chart.ts). */
const LENGTH = /^\d+(\.\d+)? (d|h|min|s|ms)$/;

/** The name of a state, an event or a delay for people. @param title the name of an event in its schema */
export function nameIn(
  { labels = {}, words = {} }: ViewTexts,
  kind: 'states' | 'events' | 'delays',
  name: string,
  title?: string,
): string {
  const known = own(labels[kind], name) ?? title;
  if (known !== undefined) return known;
  if (kind === 'states') return label(name.slice(name.lastIndexOf('.') + 1));
  return LENGTH.test(name) ? withValues(words.after ?? ENGLISH.after, () => name) : label(name);
}
