/** The detail without a selection: the server, and the way to call its tools if the page may control it. */
import { Icon } from '../parts/icons.tsx';
import { known, show } from '../store/state.ts';

export function ServerDetail() {
  const { hello } = known();
  return (
    <article class="what">
      <header>
        <p class="kind">
          <Icon name="server" size={14} /> server
        </p>
        <h2>{hello?.server.title ?? hello?.server.name ?? 'No server yet'}</h2>
        {hello ? (
          <p class="stands">
            <span class="beside">
              troupe {hello.troupe} · process {hello.pid}
            </span>
          </p>
        ) : null}
      </header>
      <p class="idle">Select an actor, a call or a message to see its details.</p>
      {hello?.control === true ? (
        <p class="buttons">
          <button type="button" onClick={() => show('server')}>
            Call a tool
          </button>
        </p>
      ) : null}
    </article>
  );
}
