/**
 * The messages: a lane for each actor or kind, an arrow for each message, time downwards. Only the rows in view are
 * drawn.
 */
import './messages.css';
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';
import { Hover } from './Hover.tsx';
import { endsOf, type Lanes, lanesOf, rowFrom, windowOf } from './lanes.ts';
import type { MessageRow, MessagesProps } from './props.ts';
import { ROW, Row } from './Row.tsx';

export type { MessageLane, MessageRow, MessagesProps } from './props.ts';

/** Pixels of the time column without a date, and of one more character. */
const TIMES = 92;
const CHARACTER = 6.4;
/** Distance from the end that still counts as the end. */
const NEAR = ROW * 2;

export function Messages(props: MessagesProps) {
  const { lanes: given, rows, version, by, onBy, selected, onSelect, cursor, reports, unfolded, onFold } = props;
  const box = useRef<HTMLDivElement>(null);
  const [size, setSize] = useState({ width: 0, height: 0 });
  const [{ top, left }, setScroll] = useState({ top: 0, left: 0 });
  const [following, setFollowing] = useState(true);
  const clock = props.clock ?? ((at: number) => `+${((at - (rows[0]?.at ?? at)) / 1_000).toFixed(3)}`);
  // The times of another day have a date.
  const longest = Math.max(clock(rows[0]?.at ?? 0).length, clock(rows.at(-1)?.at ?? 0).length);
  const times = rows.length === 0 ? TIMES : Math.round(TIMES + Math.max(0, longest - 12) * CHARACTER);
  const lanes = useMemo(
    () => lanesOf(given, by, Math.max(0, size.width - times - 12)),
    [given, by, size.width, version, times],
  );
  const { first, last } = windowOf(top, size.height, ROW, rows.length);
  const shown = rows.slice(first, last);
  const seen = { left, right: left + size.width - times };

  useLayoutEffect(() => {
    const pane = box.current;
    if (pane === null) return;
    const watch = new ResizeObserver(() => setSize({ width: pane.clientWidth, height: pane.clientHeight }));
    watch.observe(pane);
    setSize({ width: pane.clientWidth, height: pane.clientHeight });
    return () => watch.disconnect();
  }, []);
  // Live, the newest row stays in view unless the reader scrolled away from it.
  useLayoutEffect(() => {
    const pane = box.current;
    if (pane !== null && cursor === undefined && following && selected === undefined)
      pane.scrollTop = pane.scrollHeight;
  }, [version, size.height, cursor, following, selected]);
  useEffect(() => {
    if (selected === undefined) return;
    const index = rowFrom(rows, selected);
    show(box.current, index);
    const row = rows[index];
    if (row?.seq === selected) showLane(box.current, endsOf(row, lanes).to, times);
  }, [selected]);
  useEffect(() => {
    if (cursor !== undefined) show(box.current, rowFrom(rows, cursor + 1) - 1);
  }, [cursor]);

  const scrolled = (event: Event): void => {
    const pane = event.currentTarget;
    if (!(pane instanceof HTMLElement)) return;
    setScroll({ top: pane.scrollTop, left: pane.scrollLeft });
    setFollowing(pane.scrollHeight - pane.scrollTop - pane.clientHeight < NEAR);
  };
  const choose = (event: Event): void => {
    const seq = seqAt(event);
    const { target } = event;
    if (seq !== undefined && target instanceof Element && target.closest('.message-fold')) return onFold(seq);
    if (seq !== undefined) onSelect(seq === selected ? undefined : seq);
  };
  const keys = (event: KeyboardEvent): void => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    const at = selected === undefined ? -1 : rowFrom(rows, selected);
    const to = MOVES[event.key]?.(at === -1 ? first : at, rows.length, Math.max(1, Math.floor(size.height / ROW) - 2));
    if (to !== undefined) onSelect(rows[Math.min(rows.length - 1, Math.max(0, to))]?.seq);
    else if (event.key === 'Enter' && selected !== undefined && reports.has(selected)) onFold(selected);
    else if (event.key === 'Escape') onSelect(undefined);
    else return;
    event.preventDefault();
    event.stopPropagation();
  };
  return (
    <section class="messages" aria-label="messages">
      <header class="messages-head">
        <fieldset class="messages-by">
          <legend>lanes per</legend>
          {(['actor', 'kind'] as const).map((each) => (
            <button key={each} type="button" aria-pressed={by === each} onClick={() => onBy(each)}>
              {each}
            </button>
          ))}
        </fieldset>
        <span class="messages-count">{`${rows.length.toLocaleString('en')} messages`}</span>
        {!following && cursor === undefined && (
          <button
            type="button"
            class="messages-newest"
            onClick={() => {
              setFollowing(true);
              onSelect(undefined);
            }}
          >
            ↓ newest
          </button>
        )}
      </header>
      <div
        class="messages-pane"
        ref={box}
        role="listbox"
        tabIndex={0}
        aria-label="messages by time"
        aria-activedescendant={selected === undefined ? undefined : `message-${selected}`}
        onScroll={scrolled}
        onClick={choose}
        onKeyDown={keys}
        style={{ '--times': `${times}px` }}
      >
        <Heads lanes={lanes} times={times} />
        <div
          class="messages-rows"
          role="presentation"
          style={{ height: `${rows.length * ROW}px`, width: `${times + lanes.width}px` }}
        >
          <svg
            class="messages-lines"
            aria-hidden="true"
            style={{ top: `${first * ROW}px`, left: `${times}px` }}
            width={lanes.width}
            height={(last - first) * ROW}
          >
            {lanes.all.map(({ id, x, gone }) => (
              <path key={id} class={gone ? 'lane gone' : 'lane'} d={`M${x} 0V${(last - first) * ROW}`} />
            ))}
          </svg>
          {shown.map((row, index) => (
            <Row
              key={row.seq}
              row={row}
              index={first + index}
              count={rows.length}
              before={rows[first + index - 1]}
              lanes={lanes}
              classes={classesOf(row, props)}
              selected={row.seq === selected}
              time={clock(row.at)}
              reports={reports.get(row.seq) ?? 0}
              open={unfolded.has(row.seq)}
              seen={seen}
            />
          ))}
        </div>
      </div>
      {rows.length === 0 && <p class="messages-none">No messages yet.</p>}
      <Hover pane={box} data={props.data} />
    </section>
  );
}

function Heads({ lanes, times }: { readonly lanes: Lanes; readonly times: number }) {
  return (
    <div class="messages-lanes" role="presentation" style={{ width: `${times + lanes.width}px` }}>
      <div class="messages-corner" style={{ width: `${times}px` }} />
      {lanes.all.map(({ id, label, kind, gone, x }) => (
        <div
          key={id}
          class={gone ? 'lane-head gone' : 'lane-head'}
          title={label}
          style={{ left: `${times + x - lanes.each / 2}px`, width: `${lanes.each}px` }}
        >
          <strong>{label.startsWith(`${kind}/`) ? label.slice(kind.length + 1) : label}</strong>
          {kind === label ? null : <span>{kind}</span>}
        </div>
      ))}
    </div>
  );
}

/** The row to which a key moves. */
const MOVES: Readonly<Record<string, (at: number, count: number, page: number) => number>> = {
  ArrowDown: (at) => at + 1,
  ArrowUp: (at) => at - 1,
  PageDown: (at, _, page) => at + page,
  PageUp: (at, _, page) => at - page,
  Home: () => 0,
  End: (_, count) => count - 1,
};

function classesOf({ seq }: MessageRow, { selected, chain, cursor }: MessagesProps): string {
  const names: string[] = [];
  if (seq === selected) names.push('is-selected');
  else if (chain?.causes.has(seq) === true) names.push('is-cause');
  else if (chain?.effects.has(seq) === true) names.push('is-effect');
  else if (selected !== undefined && chain !== undefined) names.push('is-beside');
  if (cursor !== undefined && seq > cursor) names.push('is-later');
  return names.join(' ');
}

export function seqAt({ target }: Event): number | undefined {
  const row = target instanceof Element ? target.closest('[data-seq]') : null;
  const seq = Number(row?.getAttribute('data-seq') ?? Number.NaN);
  return Number.isNaN(seq) ? undefined : seq;
}

/** Scrolls a row into view. */
function show(pane: HTMLElement | null, index: number): void {
  if (pane === null || index < 0) return;
  const head = pane.querySelector('.messages-lanes')?.clientHeight ?? 0;
  const y = index * ROW;
  if (y < pane.scrollTop + ROW) pane.scrollTop = y - pane.clientHeight / 3;
  else if (y + 2 * ROW + head > pane.scrollTop + pane.clientHeight) pane.scrollTop = y - (pane.clientHeight * 2) / 3;
}

/** Scrolls the lane of a receiver into view. */
function showLane(pane: HTMLElement | null, x: number, times: number): void {
  if (pane === null) return;
  const room = pane.clientWidth - times;
  if (x < pane.scrollLeft + 40 || x > pane.scrollLeft + room - 40) pane.scrollLeft = x - room / 2;
}
