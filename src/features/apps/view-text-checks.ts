/** Checks the texts that an author gives a page: a name that exists nowhere is a spelling mistake. */
import { describe, isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { ENGLISH, LABELS, type ViewLabels, type ViewTexts } from './view-texts.ts';

/** The names of the states and events that have labels. */
interface LabelledNames {
  readonly states: readonly string[];
  readonly events: readonly string[];
}

/** A language tag (BCP 47), such as `de` or `zh-Hant-TW`. */
const TAG = /^[a-z]{2,8}(-[a-z\d]{1,8})*$/i;

/** The rows of `title`, `labels` and `words`. */
export function textRows({ states, events }: LabelledNames): option.Rows<ViewTexts> {
  const labels: option.Rows<ViewLabels> = {
    ...option.each(LABELS, textsBy()),
    states: textsBy(states),
    events: textsBy(events),
    values: (value) => problemOfEach(value, '{ sku: { tea: "Tee" } }', textsBy()),
  };
  return {
    title: option.anyText,
    labels: option.group('an object such as { states: { cart: "Basket" } }', labels),
    words: textsBy(Object.keys(ENGLISH)),
  };
}

export function translationsRow(names: LabelledNames): option.Check {
  const texts = option.group('the texts of a language: { title, labels, words }', textRows(names));
  return (translations: unknown) => {
    const problem = problemOfEach(translations, '{ de: { title: "Bestellung" } }', texts);
    const tag = isObject(translations) ? Object.keys(translations).find((each) => !TAG.test(each)) : undefined;
    return problem ?? (tag === undefined ? undefined : `expected language tags such as "de", got ${describe(tag)}`);
  };
}

/** An object of texts. @param names those that exist; undefined if any may */
function textsBy(names?: readonly string[]): option.Check {
  return (value) => {
    const name = isObject(value) && names && Object.keys(value).find((each) => !names.includes(each));
    if (name) return `${name}: no such name; there are ${names.join(', ')}`;
    return problemOfEach(value, '{ name: "text" }', option.anyText);
  };
}

function problemOfEach(value: unknown, such: string, check: option.Check): string | undefined {
  if (!isObject(value)) return `expected an object such as ${such}, got ${describe(value)}`;
  for (const [name, each] of Object.entries(value)) {
    const problem = each === undefined ? undefined : check(each);
    if (problem !== undefined) return `${name}: ${problem}`;
  }
  return undefined;
}
