/** What the page shows: one model, one selection, one cursor in time. Every panel reads them, and none has its own. */
import { batch, computed, signal } from '@preact/signals';
import type { WhatIf } from '../../../src/inspector/frames.ts';
import { actorTree, LIVE, Model } from '../../../src/inspector/model/index.ts';
import { parseFilter } from './filter.ts';
import { recall, remember } from './memory.ts';
import { waitOf } from './pace.ts';

export type Tab = 'chart' | 'messages' | 'wire' | 'timeline' | 'coverage';

export const TABS: readonly Tab[] = ['chart', 'messages', 'wire', 'timeline', 'coverage'];

export interface Selection {
  readonly actor?: string;
  /** The key of an exchange of the wire. */
  readonly exchange?: string;
  /** The place of a record, whose chain of causes is shown. */
  readonly record?: number;
}

/** Where what is shown comes from. `refused`: the server does not know our token. */
export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live'; readonly shared: boolean }
  | { readonly state: 'lost'; readonly why: string; readonly retryAt: number }
  | { readonly state: 'refused'; readonly why: string }
  | { readonly state: 'ended'; readonly why: string }
  | { readonly state: 'recording'; readonly name: string };

export const model = signal(new Model());
/** Changes when what the model knows has changed; at most some times a second. */
export const version = signal(0);
export const cursor = signal(LIVE);
export const selection = signal<Selection>({});
export const tab = signal<Tab>(tabOf(recall('tab')));
export const filterText = signal('');
export const filter = computed(() => parseFilter(filterText.value));
/** Times of the server's clock that everything is filtered to. */
export const brush = signal<{ readonly from: number; readonly to: number } | undefined>(undefined);
/** The place that the cursor is compared with. */
export const mark = signal<number | undefined>(undefined);
export const connection = signal<Connection>({ state: 'connecting' });
/** What the model knows; whoever reads it is shown again when it has changed. */
export function known(): Model {
  version.value;
  return model.value;
}

/** The actors, at the cursor: made once for each change, however many panels read it. */
export const tree = computed(() => actorTree(known(), cursor.value));

/** What an event would lead to, shown in the chart until something else is selected. */
export const supposed = signal<{ readonly actor: string; readonly result: WhatIf } | undefined>(undefined);
export const notice = signal<string | undefined>(undefined);
/** Milliseconds of this page's clock: moves on while what is shown is live. */
export const tick = signal(performance.now());
/** When the hello came, by this page's clock. */
export const heardAt = signal(performance.now());

/** The server's clock: now, or at the cursor. */
export const now = computed(() => {
  version.value;
  const { hello } = model.value;
  if (cursor.value !== LIVE || !isLive.value) return model.value.timeAt(cursor.value);
  return (hello?.now ?? 0) + tick.value - heardAt.value;
});

/** Whether the cursor moves with what happens. */
export const isLive = computed(() => {
  const { state } = connection.value;
  return cursor.value === LIVE && state !== 'recording' && state !== 'ended';
});

/** The place that is shown: a number that grows while live. */
export const place = computed(() => {
  version.value;
  return cursor.value === LIVE ? model.value.newest : cursor.value;
});

let pending: ReturnType<typeof setTimeout> | undefined;

/** When the panels were shown anew, by this page's clock. */
let shown = Number.NEGATIVE_INFINITY;

/** Says that the model has changed: the panels follow soon, and all at once. */
export function changed(): void {
  if (pending !== undefined) return;
  pending = setTimeout(
    () => {
      pending = undefined;
      shown = performance.now();
      batch(() => {
        version.value += 1;
        tick.value = performance.now();
      });
    },
    waitOf(model.value.actors.size, performance.now() - shown),
  );
}

export function select(next: Selection): void {
  batch(() => {
    selection.value = next;
    if (supposed.value?.actor !== next.actor) supposed.value = undefined;
  });
}

export function show(next: Tab): void {
  tab.value = next;
  remember('tab', next);
}

/** Moves the cursor by records; from live, back from the newest. */
export function step(by: -1 | 1): void {
  const { causes } = model.value;
  const from = cursor.value === LIVE ? model.value.newest : cursor.value;
  const record = causes.step(from, by);
  if (record) cursor.value = record.seq;
}

/** Moves the cursor to the record at or before a time. */
export function moveTo(at: number): void {
  const record = model.value.causes.atTime(at) ?? model.value.causes.oldest;
  if (record) cursor.value = record.seq;
}

export function goLive(): void {
  cursor.value = LIVE;
}

export function togglePause(): void {
  cursor.value = cursor.value === LIVE ? model.value.newest : LIVE;
}

let fading: ReturnType<typeof setTimeout> | undefined;

/** Says something at the edge of the page for a while. */
export function say(text: string): void {
  notice.value = text;
  clearTimeout(fading);
  fading = setTimeout(() => {
    notice.value = undefined;
  }, 5_000);
}

function tabOf(name: string | undefined): Tab {
  return TABS.find((known) => known === name) ?? 'chart';
}
