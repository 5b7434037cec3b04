/** The last calls: the tool, its arguments, its result and its time. */
import { useMemo } from 'preact/hooks';
import {
  argumentLine,
  doorName,
  lastCalls,
  resultLine,
  statusAt,
  type WireExchange,
} from '../../../src/inspector/model/index.ts';
import { At } from '../parts/parts.tsx';
import { duration } from '../parts/time.ts';
import { fits } from '../store/filter.ts';
import { cursor, filter, known, now, place, select, selection, version } from '../store/state.ts';
import { Outcome } from '../wire/Outcome.tsx';
import { rowKeys } from './row-keys.ts';

/** Number of calls on the page. The others are on the wire. */
const MOST = 6;

export function Calls() {
  const calls = useMemo(
    () =>
      lastCalls(known(), cursor.value, MOST).filter((call) =>
        fits(filter.value, {
          types: [call.method],
          status: statusAt(call, place.value),
          actors: [call.client, call.servedBy],
          words: [call.target, argumentLine(call)],
        }),
      ),
    [version.value, place.value, filter.value],
  );
  if (calls.length === 0) return null;
  return (
    <section aria-labelledby="overview-calls">
      <header class="overview-head">
        <h2 id="overview-calls">Last calls</h2>
      </header>
      <CallTable calls={calls} />
    </section>
  );
}

function CallTable({ calls }: { readonly calls: readonly WireExchange[] }) {
  return (
    <table class="calls-table" onKeyDown={rowKeys}>
      <thead>
        <tr>
          <th scope="col">call</th>
          <th scope="col">arguments</th>
          <th scope="col">result</th>
          <th scope="col">at</th>
        </tr>
      </thead>
      <tbody>
        {calls.map((call) => (
          <CallLine key={call.key} call={call} />
        ))}
      </tbody>
    </table>
  );
}

function CallLine({ call }: { readonly call: WireExchange }) {
  const { key, method, target = method, connection, at, endAt } = call;
  const client = call.client ?? doorName(known(), connection);
  const seq = place.value;
  const given = argumentLine(call);
  const result = resultLine(call, seq);
  const isOpen = statusAt(call, seq) === 'open';
  const chosen = selection.value.exchange === key;
  const choose = (): void => select({ exchange: key });
  return (
    <tr class={`${isOpen ? 'busy' : 'ended'}${chosen ? ' chosen' : ''}`} onClick={choose}>
      <th scope="row">
        <span class="cell-main">
          <button type="button" class="row-button" title={target} aria-pressed={chosen} onClick={choose}>
            {target}
          </button>
        </span>
        <span class="cell-beside" title={client}>
          {client}
        </span>
      </th>
      <td>
        <span class="two-lines mono" title={given}>
          {given ?? <span class="beside">–</span>}
        </span>
      </td>
      <td>
        <span class="two-lines" title={result}>
          {result ?? <Outcome exchange={call} at={seq} />}
        </span>
      </td>
      <td class="cell-until">
        <span class="cell-main">
          <At at={at} precise={false} />
        </span>
        <span class="cell-beside">{duration((isOpen ? now.value : (endAt ?? at)) - at)}</span>
      </td>
    </tr>
  );
}
