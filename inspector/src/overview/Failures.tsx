/** The table of failures: failed requests, crashes, unhandled events and dropped messages, grouped by error. */
import type { FailureGroup } from '../../../src/inspector/model/index.ts';
import { Icon, Sign } from '../parts/icons.tsx';
import { At } from '../parts/parts.tsx';
import { bare, short } from '../parts/time.ts';
import { filter, select, selection } from '../store/state.ts';
import { rowKeys } from './row-keys.ts';

/** Maximum number of rows: the latest. */
const MOST = 60;

export function Failures({ groups }: { readonly groups: readonly FailureGroup[] }) {
  if (groups.length === 0)
    return (
      <p class="overview-none">{filter.value.any ? 'No match.' : 'No call has failed, and no actor has crashed.'}</p>
    );
  return (
    <>
      <table class="failure-table" onKeyDown={rowKeys}>
        <thead>
          <tr>
            <th scope="col">what failed</th>
            <th scope="col">error</th>
            <th scope="col" class="right">
              count
            </th>
            <th scope="col">first</th>
            <th scope="col">last</th>
          </tr>
        </thead>
        <tbody>
          {groups.slice(0, MOST).map((group) => (
            <FailureLine key={group.key} group={group} />
          ))}
        </tbody>
      </table>
      {groups.length > MOST ? (
        <p class="overview-none">The {groups.length - MOST} older kinds are on the wire.</p>
      ) : null}
    </>
  );
}

const KINDS: Readonly<Record<FailureGroup['kind'], string>> = {
  error: 'error response',
  isError: 'result with isError',
  crashed: 'crash',
  unhandled: 'unhandled event',
  dropped: 'dropped message',
};

function FailureLine({ group }: { readonly group: FailureGroup }) {
  const { what, error, count, firstAt, lastAt, kind, newest } = group;
  const { exchange, actor, actorKind, seq } = newest;
  const chosen = exchange ? selection.value.exchange === exchange.key : selection.value.record === seq;
  const choose = (): void => {
    if (exchange) select({ exchange: exchange.key });
    else select({ record: seq, ...(actor === undefined ? {} : { actor }) });
  };
  return (
    <tr class={`failed${chosen ? ' chosen' : ''}`} onClick={choose}>
      <th scope="row">
        <span class="cell-main">
          <Icon name={actorKind ?? 'exchange'} size={14} />
          <button
            type="button"
            class="row-button"
            title={`${what}: show the newest`}
            aria-pressed={chosen}
            onClick={choose}
          >
            {short(bare(what), 44)}
          </button>
        </span>
        <span class="cell-beside">
          {bare(what) === what ? '' : 'call · '}
          {KINDS[kind]}
        </span>
      </th>
      <td class="cell-error" title={error}>
        <Sign shape="failed" title="failed" />
        <span class="error-lines">{error}</span>
      </td>
      <td class="right count">{count === 1 ? '1' : `× ${count.toLocaleString('en')}`}</td>
      <td class="cell-at">
        <At at={firstAt} precise={false} />
      </td>
      <td class="cell-at">
        <At at={lastAt} precise={false} />
      </td>
    </tr>
  );
}
