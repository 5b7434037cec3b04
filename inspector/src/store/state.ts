/** The state of the page: one model, one selection, one time cursor, shared by all panels. */
import { batch, computed, signal } from '@preact/signals';
import type { WhatIf } from '../../../src/inspector/frames.ts';
import { actorTree, KNOWS_HIBERNATING, LIVE, Model } from '../../../src/inspector/model/index.ts';
import { parseFilter } from './filter.ts';
import { waitOf } from './pace.ts';

export type Tab = 'overview' | 'chart' | 'messages' | 'wire' | 'timeline' | 'coverage' | 'server' | 'events' | 'script';

const TABS: readonly Tab[] = ['overview', 'chart', 'messages', 'wire', 'timeline', 'coverage', 'server'];

export interface Selection {
  readonly actor?: string;
  /** The key of a wire exchange. */
  readonly exchange?: string;
  /** A request that arrived before the observation: its table of requests, and its key there. */
  readonly unseen?: { readonly table: string; readonly key: string };
  /** The sequence number of a record with its chain of causes. */
  readonly record?: number;
}

/** The source of the frames. `refused`: the server rejected the token. */
export type Connection =
  | { readonly state: 'connecting' }
  | { readonly state: 'live'; readonly shared: boolean }
  | { readonly state: 'lost'; readonly why: string; readonly retryAt: number }
  | { readonly state: 'refused'; readonly why: string }
  | { readonly state: 'ended'; readonly why: string }
  | { readonly state: 'recording'; readonly name: string };

export const model = signal(new Model());
/** Increases when the model has changed; at most a few times a second. */
export const version = signal(0);
export const cursor = signal(LIVE);
export const selection = signal<Selection>({});
export const tab = signal<Tab>('overview');
export const filterText = signal('');
export const filter = computed(() => parseFilter(filterText.value));
/** The time range of the filter, by the server's clock. */
export const brush = signal<{ readonly from: number; readonly to: number } | undefined>(undefined);
/** The record with which the cursor is compared. */
export const mark = signal<number | undefined>(undefined);
export const connection = signal<Connection>({ state: 'connecting' });
/** The model. A component that reads it is rendered again when the model has changed. */
export function known(): Model {
  version.value;
  return model.value;
}

/** The facts of a server with something that the view of events shows. */
const TRAFFIC = ['topics', 'schedules', 'open deliveries of webhooks', 'machines with schedules', 'messages'];

/** The views: that of events is there once the server has some, and that of scripts once one has run. */
export const tabs = computed((): readonly Tab[] => {
  const facts = known().actor(KNOWS_HIBERNATING)?.view(LIVE)?.facts ?? {};
  const hasTraffic = known().hello?.live === true && TRAFFIC.some((name) => name in facts);
  return [...TABS, ...(hasTraffic ? (['events'] as const) : []), ...(known().runs ? (['script'] as const) : [])];
});

/** The tree of actors at the cursor: computed once for each change, for all panels. */
export const tree = computed(() => actorTree(known(), cursor.value));

/** The result of a what-if, shown in the chart until the selection changes. */
export const supposed = signal<{ readonly actor: string; readonly result: WhatIf } | undefined>(undefined);
export const notice = signal<string | undefined>(undefined);
/** Milliseconds of this page's clock; it advances while the page is live. */
export const tick = signal(performance.now());
/** The arrival of the hello, by this page's clock. */
export const helloAt = signal(performance.now());

/** The server's clock: now, or at the cursor. */
export const now = computed(() => {
  version.value;
  const { hello } = model.value;
  if (cursor.value !== LIVE || !isLive.value) return model.value.timeAt(cursor.value);
  return (hello?.now ?? 0) + tick.value - helloAt.value;
});

/** True if the cursor follows the newest record. */
export const isLive = computed(() => {
  const { state } = connection.value;
  return cursor.value === LIVE && state !== 'recording' && state !== 'ended';
});

/** The record that is shown; it advances while live. */
export const place = computed(() => {
  version.value;
  return cursor.value === LIVE ? model.value.newest : cursor.value;
});

let pending: ReturnType<typeof setTimeout> | undefined;

/** The last rendering, by this page's clock. */
let shown = Number.NEGATIVE_INFINITY;

/** Reports a change of the model. The panels are rendered soon, all at once. */
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
}

/** The home page: the overview, with nothing selected. */
export function goHome(): void {
  batch(() => {
    select({});
    show('overview');
  });
}

/** Moves the cursor by one record; from live, back from the newest. */
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

/** Shows a notice at the edge of the page for a while. */
export function say(text: string): void {
  notice.value = text;
  clearTimeout(fading);
  fading = setTimeout(() => {
    notice.value = undefined;
  }, 5_000);
}
