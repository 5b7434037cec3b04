/** The detail without a selection: the server, and calling a tool if the page may control it. */
import { Icon } from '../parts/icons.tsx';
import { known } from '../store/state.ts';
import { CallTool } from './Act.tsx';

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
      {hello?.control === true ? <CallTool /> : null}
    </article>
  );
}
