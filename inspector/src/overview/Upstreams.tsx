/** The servers behind the mounts: their states, and the calls that the server has relayed to them. */
import { upstreamsOf } from '../../../src/inspector/model/upstreams.ts';
import { ActorLink } from '../parts/parts.tsx';
import { duration, plural } from '../parts/time.ts';
import { known, place } from '../store/state.ts';

export function Upstreams() {
  const lines = upstreamsOf(known(), place.value);
  return (
    <section aria-labelledby="overview-upstreams">
      <header class="overview-head">
        <h2 id="overview-upstreams">Upstreams</h2>
        <span class="tally">{lines.length}</span>
      </header>
      <ul class="nodes">
        {lines.map(({ actor, state, connections, open, count, failed, p50, p99 }) => (
          <li key={actor}>
            <ActorLink address={actor} />
            <span>{state}</span>
            <span>{plural(connections, 'connection')}</span>
            <span>
              {plural(count, 'call')}, {failed} failed, {open} open
            </span>
            {count === 0 ? null : (
              <span class="beside">
                p50 {duration(p50)} · p99 {duration(p99)}
              </span>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
