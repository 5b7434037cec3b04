/** The home page: the last calls, everything that waits, and the failures. */
import { useEffect, useMemo } from 'preact/hooks';
import { clusterNodesOf, failuresOf, hasClient, waitingList } from '../../../src/inspector/model/index.ts';
import { later } from '../parts/Later.tsx';
import { plural } from '../parts/time.ts';
import { fits } from '../store/filter.ts';
import { connection, cursor, filter, known, place, tree, version } from '../store/state.ts';
import { waits } from '../store/waits.ts';
import { Failures } from './Failures.tsx';
import { Waiting } from './Waiting.tsx';
import './overview.css';

const Decisions = later('What waits for you', async () => (await import('./Decisions.tsx')).Decisions);

const Calls = later('The list of calls', async () => (await import('./Calls.tsx')).Calls);

const Connect = later('The entries of the clients', async () => (await import('./Connect.tsx')).Connect);

/** Most servers share their store with no other. */
const Nodes = later('The list of nodes', async () => (await import('./Nodes.tsx')).Nodes);

const Tools = later('The tools of the server', async () => (await import('./Tools.tsx')).Tools);

const Upstreams = later('The list of upstreams', async () => (await import('./Upstreams.tsx')).Upstreams);

export function Overview() {
  const data = known();
  const rows = useMemo(
    () =>
      waitingList(data, cursor.value, tree.value).filter(({ who, kind, client, actor, state, wait, idle }) =>
        fits(filter.value, {
          types: [kind],
          status: idle ? (state ?? 'idle') : `waiting ${state ?? ''}`,
          actors: [who, actor, client],
          words: [wait.what, wait.whom],
        }),
      ),
    [version.value, tree.value, filter.value],
  );
  const failures = useMemo(
    () =>
      failuresOf(data, place.value).filter(({ kind, what, error, newest }) =>
        fits(filter.value, {
          types: [what],
          status: `error failed ${kind}`,
          actors: [newest.actor, newest.exchange?.client],
          words: [error],
        }),
      ),
    [version.value, place.value, filter.value, data],
  );
  useEffect(waits.begin, []);
  const lonely = connection.value.state === 'live' && !hasClient(data) && data.hello?.remote !== true;
  const help = lonely ? data.hello?.connect : undefined;
  const nodes = clusterNodesOf(data);
  const waiting = rows.filter(({ idle }) => !idle).length;
  const failed = failures.reduce((sum, { count }) => sum + count, 0);
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled with the keys.
    // biome-ignore lint/a11y/useSemanticElements: a region of the page, not a section of its text.
    <div class="overview scroll" tabIndex={0} role="region" aria-label="overview">
      {help ? <Connect help={help} /> : null}
      {lonely && data.hello?.control === true ? <Tools /> : null}
      {lonely && !help ? (
        <p class="overview-none">No client is connected. The calls of clients will appear here.</p>
      ) : null}
      {data.hello?.control === true && connection.value.state === 'live' ? (
        <Decisions remote={data.hello.remote === true} />
      ) : null}
      <Calls />
      <section aria-labelledby="overview-waiting">
        <header class="overview-head">
          <h2 id="overview-waiting">Waiting</h2>
          <span class={waiting === 0 ? 'tally' : 'tally wait'}>{waiting === 0 ? 'nothing' : waiting}</span>
        </header>
        <Waiting rows={rows} />
      </section>
      <section aria-labelledby="overview-failures">
        <header class="overview-head">
          <h2 id="overview-failures">Failures</h2>
          <span class={failed === 0 ? 'tally good' : 'tally bad'}>
            {failed === 0
              ? 'none'
              : failures.length === failed
                ? failed
                : `${failed} · ${plural(failures.length, 'kind')}`}
          </span>
        </header>
        <Failures groups={failures} />
      </section>
      {data.mounts ? <Upstreams /> : null}
      {nodes ? <Nodes known={nodes} /> : null}
    </div>
  );
}
