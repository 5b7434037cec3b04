/** A list of live actors, the newest at the end, each a link to its chart. */
import { type ActorLine, displayName } from '../../../src/inspector/model/index.ts';
import { cursor, select, show } from '../store/state.ts';

/** Actors that are listed. */
const MOST = 50;

export function LiveActors({ lines, none }: { readonly lines: readonly ActorLine[]; readonly none: string }) {
  if (lines.length === 0) return <p class="beside">{none}</p>;
  return (
    <ul class="offer-links">
      {lines.slice(-MOST).map((line) => (
        <li key={line.address}>
          <button
            type="button"
            class="link"
            onClick={() => {
              select({ actor: line.address });
              show('chart');
            }}
          >
            {displayName(line)}
          </button>{' '}
          <span class="beside">{line.standing(cursor.value)?.state}</span>
        </li>
      ))}
    </ul>
  );
}
