/** Values, names and sentences in the language of the host. */
import {
  ENGLISH,
  label,
  nameIn,
  own,
  type Translations,
  textsFor,
  type ViewLabels,
  type ViewTexts,
  type ViewWords,
  withValues,
} from '../../../src/features/apps/view-texts.ts';
import type { Host } from '../view/host-context.ts';
import { ViewError } from '../view/host-link.ts';
import type { ToolResult } from '../view/server-proxy.ts';

/** The texts of the page, which has one language from its beginning. */
let texts: ViewTexts = {};
let translated = false;

/** @returns the title of the page in its language */
export function useTexts(given: ViewTexts, translations: Translations, locale?: string): string | undefined {
  texts = textsFor(given, translations, locale);
  translated = texts !== given;
  return texts.title;
}

/** True if the page has another language than the one that the server drew its chart in. */
export function isTranslated(): boolean {
  return translated;
}

/** A sentence or word of the page itself. @param values those of the names in braces */
export function word(name: keyof ViewWords, values: Readonly<Record<string, string>> = {}): string {
  return withValues(texts.words?.[name] ?? ENGLISH[name], (each) => values[each]);
}

/** The name of a state, an event or a delay for people. */
export function nameOf(kind: 'states' | 'events' | 'delays', name: string, title?: string): string {
  return nameIn(texts, kind, name, title);
}

/** The label that the author gave; undefined without one. */
export function labelled(kind: Exclude<keyof ViewLabels, 'values'>, name: string): string | undefined {
  return own(texts.labels?.[kind], name);
}

/** The name of a member of data, or of a field. @param title its name in its schema */
export function memberName(name: string, title?: string): string {
  return labelled('members', name) ?? title ?? label(name);
}

const MOMENT = /^\d{4}-\d\d-\d\dT[\d:.]+(Z|[+-][\d:]+)$/;

/**
 * A number or a moment in the notation of the host's language; other values as they are, or as the author named them.
 *
 * @param member the name of the member that has the value
 */
export function words(value: unknown, { locale, timeZone }: Pick<Host, 'locale' | 'timeZone'>, member = ''): string {
  try {
    if (typeof value === 'number') return value.toLocaleString(locale, { maximumFractionDigits: 6 });
    if (typeof value === 'string' && MOMENT.test(value))
      return new Date(value).toLocaleString(locale, { dateStyle: 'medium', timeStyle: 'short', timeZone });
  } catch {
    // The host named a language or a time zone that this browser does not have.
  }
  return value === true ? word('yes') : value === false ? word('no') : choiceName(member, String(value));
}

/** The name of a text that is one of several. @param title its name in its schema */
export function choiceName(member: string, value: string, title?: string): string {
  return own(own(texts.labels?.values, member), value) ?? title ?? value;
}

/** Seconds as `01:04:05`. */
export function duration(seconds: number): string {
  const whole = Math.ceil(seconds);
  return [whole / 3_600, (whole / 60) % 60, whole % 60].map((part) => `${Math.floor(part)}`.padStart(2, '0')).join(':');
}

const METHOD_NOT_FOUND = -32_601;

/** True if the host does not offer what a view asked for. */
export function isNotOffered(error: unknown): boolean {
  return error instanceof ViewError && error.code === METHOD_NOT_FOUND;
}

/** The reason for which a request had no result, for a person: the message of an error is for a developer. */
export function reasonOf(error: unknown): string {
  if (error instanceof SyntaxError) return word('invalid');
  return word(isNotOffered(error) ? 'notHere' : 'noAnswer');
}

/** The sentences for the reasons that the server names (docs/apps.md, "On the wire"). */
const REASONS: Readonly<Record<string, keyof ViewWords>> = {
  refused: 'notNow',
  invalid: 'invalid',
  ended: 'gone',
  unknown: 'gone',
  expired: 'gone',
  key: 'reopen',
};

/** The reason for which a call failed, for a person: the text of its result is for a model. */
export function refusalOf({ reason = '' }: Pick<ToolResult, 'reason'>): string {
  return word(own(REASONS, reason) ?? 'notDone');
}
