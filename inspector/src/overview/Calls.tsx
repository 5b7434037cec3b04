/** The last calls: the tool, its arguments, its result and its time. */
import { argumentLine, resultLine, statusAt, type WireExchange } from '../../../src/inspector/model/index.ts';
import { At } from '../parts/parts.tsx';
import { duration } from '../parts/time.ts';
import { now, place, select, selection } from '../store/state.ts';
import { Outcome } from '../wire/Outcome.tsx';
import { rowKeys } from './row-keys.ts';

export function Calls({ calls }: { readonly calls: readonly WireExchange[] }) {
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
  const { key, method, target = method, client, at, endAt } = call;
  const seq = place.value;
  const given = argumentLine(call);
  const result = resultLine(call, seq);
  const isOpen = statusAt(call, seq) === 'open';
  const chosen = selection.value.exchange === key;
  const choose = (): void => select({ exchange: key });
  return (
    <tr class={chosen ? 'busy chosen' : 'busy'} onClick={choose}>
      <th scope="row">
        <span class="cell-main">
          <button type="button" class="row-button" title={target} aria-pressed={chosen} onClick={choose}>
            {target}
          </button>
        </span>
        {client === undefined ? null : <span class="cell-beside">{client}</span>}
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
