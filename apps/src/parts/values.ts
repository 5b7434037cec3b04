/** Shows a JSON value: objects as definition lists, lists of objects as tables, and the rest as text. */
import type { Host } from '../view/host-context.ts';
import { isMembers } from '../view/host-link.ts';
import { element, quiet } from './dom.ts';
import { memberName, word, words } from './words.ts';

/** Rows of a table and items of a list that are shown. */
const MAX_ROWS = 50;
/** Columns of a table. An object with more members is a list. */
const MAX_COLUMNS = 8;

/**
 * @param titles the titles of members, by their names; the others are labelled by their names
 * @param member the name of the member that has the value
 */
export function valueElement(
  value: unknown,
  host: Host,
  titles: Readonly<Record<string, string | undefined>> = {},
  member?: string,
): HTMLElement {
  const title = (name: string): string => memberName(name, titles[name]);
  const inner = (part: unknown, name = member): HTMLElement => valueElement(part, host, titles, name);
  if (Array.isArray(value) && value.length > 0) {
    const shown = value.slice(0, MAX_ROWS);
    const columns = columnsOf(shown);
    return element(
      'div',
      // A table that is wider than the page scrolls, also by the keyboard.
      columns ? { class: 'table', tabindex: 0, role: 'region', 'aria-label': word('table') } : {},
      columns
        ? element(
            'table',
            {},
            element('thead', {}, element('tr', {}, ...columns.map((name) => element('th', {}, title(name))))),
            element(
              'tbody',
              {},
              ...shown.map((row) =>
                element('tr', {}, ...columns.map((name) => element('td', {}, inner(row[name], name)))),
              ),
            ),
          )
        : element('ul', {}, ...shown.map((item) => element('li', {}, inner(item)))),
      value.length > MAX_ROWS && quiet(word('more', { count: `${value.length - MAX_ROWS}` })),
    );
  }
  const members = isMembers(value) ? Object.entries(value).slice(0, MAX_ROWS) : [];
  if (members.length > 0)
    return element(
      'dl',
      {},
      ...members.map(([name, part]) =>
        element(
          'div',
          { class: typeof part === 'object' && 'wide' },
          element('dt', {}, title(name)),
          element('dd', {}, inner(part, name)),
        ),
      ),
    );
  return element('span', {}, typeof value === 'object' ? '–' : words(value, host, member));
}

/** The columns of a list of objects; undefined for another list. */
function columnsOf(rows: readonly unknown[]): readonly string[] | undefined {
  if (!rows.every(isMembers)) return undefined;
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  return names.length > 0 && names.length <= MAX_COLUMNS ? names : undefined;
}
