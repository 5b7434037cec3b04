/** The exchanges of the wire: one row for each, with its response, its duration, and the actor that served it. */
import { signal } from '@preact/signals';
import { useMemo } from 'preact/hooks';
import {
  argumentLine,
  displayName,
  doorName,
  isMachinery,
  type Model,
  statusAt,
  type Timing,
  timings,
  type WireExchange,
} from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { List } from '../parts/List.tsx';
import { bytes, duration, plural, wallClock } from '../parts/time.ts';
import { fits } from '../store/filter.ts';
import { brush, cursor, filter, isLive, known, now, place, select, selection, version } from '../store/state.ts';
import { Outcome } from './Outcome.tsx';
import './wire.css';

const ROW = 28;

/** True if percentiles are shown instead of exchanges. */
const summed = signal(false);
/** The exchanges with expanded notifications. */
const opened = signal<ReadonlySet<string>>(new Set());

interface Row {
  readonly exchange: WireExchange;
  /** The index of a notification of the exchange. */
  readonly notice?: number;
}

export function Wire() {
  const exchanges = useMemo(shown, [version.value, place.value, filter.value, brush.value, known()]);
  return (
    <div class="wire">
      <div class="view-bar">
        <fieldset class="switch">
          <legend class="unseen">exchanges or percentiles</legend>
          <button type="button" aria-pressed={!summed.value} onClick={() => setSummed(false)}>
            Exchanges
          </button>
          <button type="button" aria-pressed={summed.value} onClick={() => setSummed(true)}>
            Percentiles
          </button>
        </fieldset>
        <span class="beside">{exchanges.length.toLocaleString('en')} shown</span>
      </div>
      {summed.value ? (
        <Percentiles rows={timings(exchanges.filter(({ end = Infinity }) => end <= place.value))} />
      ) : (
        <Rows exchanges={exchanges} />
      )}
    </div>
  );
}

function setSummed(next: boolean): void {
  summed.value = next;
}

function shown(): readonly WireExchange[] {
  const data = known();
  return data.exchanges.all.until(cursor.value).filter((exchange) => {
    const { at, endAt, connection, method, target, servedBy, kind } = exchange;
    if (brush.value && (at > brush.value.to || (endAt ?? at) < brush.value.from)) return false;
    return fits(filter.value, {
      types: [method, kind],
      status: statusAt(exchange, place.value),
      actors: [connection, exchange.client, doorName(data, connection), servedBy, data.actor(servedBy ?? '')?.label],
      words: [target],
    });
  });
}

function Rows({ exchanges }: { readonly exchanges: readonly WireExchange[] }) {
  const rows: Row[] = [];
  for (const exchange of exchanges) {
    rows.push({ exchange });
    if (!opened.value.has(exchange.key)) continue;
    for (const [notice, { seq }] of exchange.notices.entries()) if (seq <= place.value) rows.push({ exchange, notice });
  }
  const { exchange: chosen, record } = selection.value;
  const at = rows.findIndex(
    ({ exchange, notice }) =>
      exchange.key === chosen &&
      (notice === undefined ? !isNotice(exchange, record) : exchange.notices[notice]?.seq === record),
  );
  const { client, server, time } = widthsOf(exchanges);
  return (
    <div class="wire-table" style={{ '--client': `${client}px`, '--server': `${server}px`, '--time': `${time}px` }}>
      <div class="wire-head" aria-hidden="true">
        <span />
        <span>time</span>
        <span>client</span>
        <span>method</span>
        <span>arguments, actor</span>
        <span class="right">size</span>
        <span class="right">took</span>
        <span>status</span>
      </div>
      <List
        id="wire"
        label="wire exchanges"
        role="listbox"
        count={rows.length}
        height={ROW}
        chosen={at}
        follow={isLive.value}
        onChoose={(index) => {
          const row = rows[index];
          const seq = row?.notice === undefined ? undefined : row.exchange.notices[row.notice]?.seq;
          if (row) select({ exchange: row.exchange.key, ...(seq === undefined ? {} : { record: seq }) });
        }}
        onKey={(event, index) => {
          const row = rows[index];
          if (!row || (event.key !== 'Enter' && event.key !== ' ')) return false;
          fold(row.exchange);
          return true;
        }}
        row={(index) => <WireRow key={index} row={rows[index]} index={index} chosen={index === at} />}
        empty={filter.value.any || brush.value ? 'No match.' : 'No messages yet.'}
      />
    </div>
  );
}

/** Pixels of a character of a name, and the limits of a column in pixels. */
const CHARACTER = 8;
const [NARROWEST, WIDEST] = [56, 220];
/** Number of the newest exchanges whose names decide the widths of the columns. */
const MEASURED = 400;

/** Columns are as wide as their names. */
function widthsOf(exchanges: readonly WireExchange[]): {
  readonly client: number;
  readonly server: number;
  readonly time: number;
} {
  const data = known();
  let [client, server, time] = [0, 0, 0];
  for (const exchange of exchanges.slice(-MEASURED)) {
    client = Math.max(client, clientIn(data, exchange).length);
    server = Math.max(server, servedIn(data, exchange).text?.length ?? 0);
  }
  // Times of another day have a date.
  for (const exchange of [exchanges[0], exchanges.at(-1)])
    if (exchange) time = Math.max(time, wallClock((data.hello?.epoch ?? 0) + exchange.at).length);
  const width = (characters: number): number => Math.min(WIDEST, Math.max(NARROWEST, characters * CHARACTER));
  return { client: width(client), server: width(server), time: Math.max(88, time * CHARACTER) };
}

function clientIn(data: Model, exchange: WireExchange): string {
  return exchange.client ?? doorName(data, exchange.connection);
}

function isNotice({ notices }: WireExchange, record: number | undefined): boolean {
  return notices.some(({ seq }) => seq === record);
}

function fold({ key }: WireExchange): void {
  const next = new Set(opened.value);
  if (!next.delete(key)) next.add(key);
  opened.value = next;
}

interface WireRowProps {
  readonly row: Row | undefined;
  readonly index: number;
  readonly chosen: boolean;
}

function WireRow({ row, index, chosen }: WireRowProps) {
  if (!row) return null;
  const { exchange, notice } = row;
  const notification = notice === undefined ? undefined : exchange.notices[notice];
  const data = known();
  const epoch = data.hello?.epoch ?? 0;
  const status = statusAt(exchange, place.value);
  const notices = exchange.notices.filter(({ seq }) => seq <= place.value).length;
  const client = clientIn(data, exchange);
  const served = servedIn(data, exchange);
  const choose = (): void =>
    select({ exchange: exchange.key, ...(notification === undefined ? {} : { record: notification.seq }) });
  return (
    // biome-ignore lint/a11y/useKeyWithClickEvents: the grid has the focus, and its keys.
    <div
      id={`wire-${index}`}
      role="option"
      tabIndex={-1}
      class={`wire-row${notification ? ' notice' : ''} ${status}`}
      aria-selected={chosen}
      aria-posinset={index + 1}
      onClick={choose}
    >
      <span class="direction">
        <Icon
          name={(notification ?? exchange).direction === 'in' ? 'outward' : 'in'}
          size={13}
          title={(notification ?? exchange).direction === 'in' ? 'from the client' : 'to the client'}
        />
      </span>
      <span class="time">{wallClock(epoch + (notification ?? exchange).at)}</span>
      <span class="who" title={notification ? undefined : client}>
        {notification ? '' : client}
      </span>
      <span class="method">
        {notification ? (
          notification.method
        ) : (
          <>
            <span title={exchange.method}>{exchange.method}</span>
            {exchange.target === undefined ? null : <b title={exchange.target}>{exchange.target.slice(0, 200)}</b>}
            {notices === 0 ? null : (
              // biome-ignore lint/a11y/noStaticElementInteractions: Enter does the same.
              // biome-ignore lint/a11y/useKeyWithClickEvents: Enter does the same.
              <span
                class="notices"
                title={`${plural(notices, 'notification')} (Enter)`}
                onClick={(event) => {
                  event.stopPropagation();
                  fold(exchange);
                }}
              >
                +{notices}
              </span>
            )}
          </>
        )}
      </span>
      <span class={served.isArguments ? 'given mono' : 'who'} title={notification ? undefined : served.text}>
        {notification ? '' : served.text}
      </span>
      <span class="right">{notification ? '' : bytes(exchange.bytes + (exchange.answerBytes ?? 0))}</span>
      <span class={`right took ${status}`}>
        {notification || exchange.kind !== 'request' ? '' : <Took exchange={exchange} open={status === 'open'} />}
      </span>
      <span class="outcome">
        {notification || exchange.kind === 'notification' ? '' : <Outcome exchange={exchange} at={place.value} />}
      </span>
    </div>
  );
}

function Took({ exchange, open }: { readonly exchange: WireExchange; readonly open: boolean }) {
  const until = open ? now.value : (exchange.endAt ?? exchange.at);
  return <>{duration(until - exchange.at)}</>;
}

/** The handle or the task that served it. Parts of every server (`executor/tools`) say nothing: its arguments do. */
function servedIn(
  data: Model,
  exchange: WireExchange,
): { readonly text: string | undefined; readonly isArguments: boolean } {
  const { servedBy } = exchange;
  const line = data.actor(servedBy ?? '');
  if (servedBy === undefined || (line && isMachinery(line.kind)))
    return { text: argumentLine(exchange), isArguments: true };
  return { text: nameIn(data, servedBy), isArguments: false };
}

function nameIn(data: Model, address: string): string {
  const line = data.actor(address);
  return line ? displayName(line) : address;
}

function Percentiles({ rows }: { readonly rows: readonly Timing[] }) {
  if (rows.length === 0) return <div class="none">No completed request yet.</div>;
  const most = Math.max(...rows.map(({ p99 }) => p99), 1);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a table that scrolls is scrolled with the keys.
    // biome-ignore lint/a11y/useSemanticElements: a region of the page, not a section of its text.
    <div class="scroll" tabIndex={0} role="region" aria-label="percentiles">
      <table class="table">
        <thead>
          <tr>
            <th>method</th>
            <th class="right">count</th>
            <th class="right">failed</th>
            <th class="right">median</th>
            <th class="right">p99</th>
            <th class="right">slowest</th>
            <th>
              <span class="unseen">share</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map(({ method, count, failed, p50, p99, slowest }) => (
            <tr key={method}>
              <td class="mono">{method}</td>
              <td class="right">{count.toLocaleString('en')}</td>
              <td class={`right${failed > 0 ? ' bad' : ''}`}>{failed}</td>
              <td class="right">{duration(p50)}</td>
              <td class="right">{duration(p99)}</td>
              <td class="right">{duration(slowest)}</td>
              <td class="bars" aria-hidden="true">
                <span class="p99" style={{ width: `${(p99 / most) * 100}%` }} />
                <span class="p50" style={{ width: `${(p50 / most) * 100}%` }} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
