/** The list of everything that the server offers, by kind, with a box to find one by its name or its description. */
import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import type { CatalogueElement, ServerCatalogue } from '../../../src/inspector/frames.ts';
import { Icon, type IconName } from '../parts/icons.tsx';
import { List } from '../parts/List.tsx';
import { descriptionOf, elementsOf, listName, type OfferKind, type Shown, shown, titleOf } from './offers.ts';

const ROW = 26;

type Row =
  | { readonly type: 'group'; readonly label: string; readonly count: number }
  | {
      readonly type: 'item';
      readonly label: string;
      readonly icon: IconName;
      readonly to: Shown;
      readonly hidden: boolean;
    };

export const GROUPS: readonly { readonly kind: OfferKind; readonly label: string; readonly icon: IconName }[] = [
  { kind: 'tool', label: 'Tools', icon: 'executor' },
  { kind: 'resource', label: 'Resources', icon: 'registry' },
  { kind: 'template', label: 'Resource templates', icon: 'registry' },
  { kind: 'prompt', label: 'Prompts', icon: 'emitter' },
  { kind: 'machine', label: 'Machines', icon: 'machine' },
];

const PAGES = [
  { kind: 'server', label: 'About this server', icon: 'server' },
  { kind: 'calls', label: 'Calls and tasks', icon: 'exchange' },
  { kind: 'apps', label: 'Apps in a chat client', icon: 'client' },
] as const;

const sought = signal('');

export function OfferList({ catalogue }: { readonly catalogue: ServerCatalogue }) {
  const rows = useMemo(() => rowsOf(catalogue, sought.value.toLowerCase()), [catalogue, sought.value]);
  const at = rows.findIndex((row) => row.type === 'item' && isSame(row.to, shown.value));
  return (
    <nav class="offer-list" aria-label="what the server offers">
      <input
        type="search"
        class="offer-search"
        placeholder="Find"
        aria-label="find what the server offers"
        value={sought.value}
        onInput={({ currentTarget }) => {
          sought.value = currentTarget.value;
        }}
      />
      <List
        id="offers"
        label="what the server offers"
        role="listbox"
        count={rows.length}
        height={ROW}
        chosen={at}
        onChoose={(index) => choose(rows, index, index < at ? -1 : 1)}
        row={(index) => <OfferRow key={index} row={rows[index]} index={index} chosen={index === at} />}
        empty="No match."
      />
    </nav>
  );
}

/** Chooses a row. The keys pass over the headings. */
function choose(rows: readonly Row[], index: number, by: -1 | 1): void {
  for (let at = index; at >= 0 && at < rows.length; at += by) {
    const row = rows[at];
    if (row?.type !== 'item') continue;
    shown.value = row.to;
    return;
  }
}

function rowsOf(catalogue: ServerCatalogue, words: string): readonly Row[] {
  const rows: Row[] = [];
  const fits = (...texts: readonly (string | undefined)[]): boolean =>
    words === '' || texts.some((text) => text?.toLowerCase().includes(words));
  for (const { label, icon, kind } of PAGES)
    if (fits(label)) rows.push({ type: 'item', label, icon, to: { kind }, hidden: false });
  for (const { kind, label, icon } of GROUPS) {
    const items: Row[] =
      kind === 'machine'
        ? catalogue.machines
            .filter(({ name, title, description }) => fits(name, title, description))
            .map(({ name }) => ({ type: 'item', label: name, icon, to: { kind, name }, hidden: false }))
        : elementsOf(catalogue, kind)
            .filter((element) => matches(element, fits))
            .map((element) => ({
              type: 'item',
              label: listName(kind, element),
              icon,
              to: { kind, name: element.name },
              hidden: element.enabled === false,
            }));
    if (items.length > 0) rows.push({ type: 'group', label, count: items.length }, ...items);
  }
  return rows;
}

function matches(element: CatalogueElement, fits: (...texts: readonly (string | undefined)[]) => boolean): boolean {
  return fits(element.name, titleOf(element), descriptionOf(element));
}

function isSame(one: Shown, other: Shown): boolean {
  return one.kind === other.kind && ('name' in one ? 'name' in other && one.name === other.name : true);
}

interface OfferRowProps {
  readonly row: Row | undefined;
  readonly index: number;
  readonly chosen: boolean;
}

function OfferRow({ row, index, chosen }: OfferRowProps) {
  if (!row) return null;
  if (row.type === 'group')
    return (
      <div id={`offers-${index}`} class="offer-group" role="presentation">
        {row.label} <span class="beside">{row.count.toLocaleString('en')}</span>
      </div>
    );
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the list has the focus, and its keys.
    <div
      id={`offers-${index}`}
      role="option"
      tabIndex={-1}
      class={`offer-row${row.hidden ? ' hidden' : ''}`}
      aria-selected={chosen}
      title={row.label}
      onClick={() => {
        shown.value = row.to;
      }}
    >
      <Icon name={row.icon} size={14} />
      <span>{row.label}</span>
      {row.hidden ? <span class="beside">disabled</span> : null}
    </div>
  );
}
