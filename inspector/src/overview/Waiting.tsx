/** The table of everything that waits: who, for what, for whom, until when and why. */
import { useState } from 'preact/hooks';
import { lineOf, type Progress, type WaitingRow } from '../../../src/inspector/model/index.ts';
import { Icon, Sign } from '../parts/icons.tsx';
import { At, Left } from '../parts/parts.tsx';
import { bare, duration, short } from '../parts/time.ts';
import { filter, known, now, select, selection } from '../store/state.ts';
import { rowKeys } from './row-keys.ts';

/** Number of rows before the rest is shown on request. */
const FEW = 60;

export function Waiting({ rows }: { readonly rows: readonly WaitingRow[] }) {
  const [most, setMost] = useState(FEW);
  if (rows.length === 0)
    return (
      <p class="overview-none">
        {filter.value.any ? 'No match.' : 'No call, input request, task or timer is waiting.'}
      </p>
    );
  return (
    <>
      <table class="waiting-table" onKeyDown={rowKeys}>
        <thead>
          <tr>
            <th scope="col">who</th>
            <th scope="col">waits for</th>
            <th scope="col">from whom</th>
            <th scope="col">until</th>
            <th scope="col">why</th>
          </tr>
        </thead>
        <tbody>
          {rows.slice(0, most).map((row) => (
            <WaitingLine key={row.key} row={row} />
          ))}
        </tbody>
      </table>
      {rows.length > most ? (
        <button type="button" class="link overview-more" onClick={() => setMost(most + 10 * FEW)}>
          {(rows.length - most).toLocaleString('en')} more
        </button>
      ) : null}
    </>
  );
}

function WaitingLine({ row }: { readonly row: WaitingRow }) {
  const { kind, who, client, state, wait, idle, asleep, actor, exchange, unseen, progress } = row;
  const at = selection.value;
  const chosen = unseen
    ? at.unseen?.table === unseen.table && at.unseen.key === unseen.key
    : actor === undefined
      ? at.exchange === exchange?.key
      : at.actor === actor;
  const choose = (): void => {
    if (unseen) select({ unseen });
    else if (actor !== undefined && known().actor(actor)) select({ actor });
    else if (exchange) select({ exchange: exchange.key });
  };
  const called = bare(who) === who ? undefined : 'call';
  const targets = wait.after?.targets.join(', ') ?? '';
  const beside = [called, state, client].filter((text) => text !== undefined).join(' · ');
  return (
    <tr class={`${idle ? 'idle' : 'busy'}${chosen ? ' chosen' : ''}`} onClick={choose}>
      <th scope="row">
        <span class="cell-main">
          <Icon name={kind} size={14} />
          <button type="button" class="row-button" title={who} aria-pressed={chosen} onClick={choose}>
            {short(bare(who), 44)}
          </button>
          {asleep ? <Sign shape="asleep" title="hibernating" /> : null}
        </span>
        {beside === '' ? null : (
          <span class="cell-beside" title={beside}>
            {beside}
          </span>
        )}
      </th>
      <td>
        <span class="cell-main" title={wait.what}>
          <What row={row} />
        </span>
        {targets === '' ? null : (
          <span class="cell-beside" title={targets}>
            → {targets}
          </span>
        )}
        {progress ? <Bar progress={progress} /> : null}
      </td>
      <td class="cell-whom" title={wait.whom}>
        <span class="two-lines">{wait.whom ?? <span class="beside">–</span>}</span>
      </td>
      <td class="cell-until">
        <Until row={row} />
      </td>
      <td class="cell-why">
        <Why row={row} />
      </td>
    </tr>
  );
}

function What({ row: { wait } }: { readonly row: WaitingRow }) {
  const { what, after } = wait;
  if (after) return <span class="cut">timer {after.label}</span>;
  // The message of an input request is quoted; a thing begins with an article or a possessive.
  return <span class="cut">{/^(the|its|an?) /.test(what) ? what : `“${what}”`}</span>;
}

/** The share of the work that is done, or the number of reports if the amount of work is unknown. */
function Bar({ progress: { done, total, message } }: { readonly progress: Progress }) {
  const share = total === undefined ? undefined : Math.max(0, Math.min(1, done / total));
  const words =
    total === undefined
      ? `${done.toLocaleString('en')}`
      : `${done.toLocaleString('en')} of ${total.toLocaleString('en')}`;
  return (
    <span class="progress">
      {share === undefined ? null : (
        <span
          class="progress-bar"
          role="progressbar"
          aria-label="progress"
          aria-valuemin={0}
          aria-valuemax={100}
          aria-valuenow={Math.round(share * 100)}
        >
          <span style={{ width: `${share * 100}%` }} />
        </span>
      )}
      <span class="cell-beside" title={message}>
        {words}
        {message === undefined ? null : ` · ${message}`}
      </span>
    </span>
  );
}

function Until({ row: { wait, since } }: { readonly row: WaitingRow }) {
  const { until, lasts } = wait;
  if (until === undefined)
    return (
      <>
        <span class="cell-main beside">no deadline</span>
        {since === undefined ? null : <span class="cell-beside">for {duration(now.value - since)}</span>}
      </>
    );
  return (
    <>
      <Left until={until} {...(lasts === undefined ? {} : { lasts })} />
      <span class="cell-beside">
        <At at={until} precise={false} />
      </span>
    </>
  );
}

/** The first cause, as a link to its record. */
function Why({ row: { because, since } }: { readonly row: WaitingRow }) {
  const record = because === undefined ? undefined : known().causes.find(because);
  if (!record) return <span class="beside">–</span>;
  const [exchange] = record.type === 'wire' ? known().exchanges.at(record.seq) : [];
  const text = lineOf(known(), record);
  // The start or the first known state of an actor explains nothing: the time does.
  if (record.type === 'state' || record.type === 'created')
    return (
      <span class="beside">
        since <At at={since ?? record.at} precise={false} />
      </span>
    );
  return (
    <>
      <button
        type="button"
        class="link cut"
        title={text}
        onClick={(event) => {
          event.stopPropagation();
          if (exchange) select({ exchange: exchange.key });
          else select({ record: record.seq, ...('actor' in record ? { actor: record.actor } : {}) });
        }}
      >
        {bare(text)}
      </button>
      <span class="cell-beside">
        since <At at={since ?? record.at} precise={false} />
      </span>
    </>
  );
}
