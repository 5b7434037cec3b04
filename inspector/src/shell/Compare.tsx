/** Compares two moments: started, ended and changed actors. */
import { changes } from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { ActorLink, At } from '../parts/parts.tsx';
import { plural } from '../parts/time.ts';
import { cursor, isLive, known, mark, place } from '../store/state.ts';

/** Maximum number of listed actors. */
const MOST = 12;

export function Compare() {
  const from = mark.value;
  if (from === undefined) return null;
  const changed = changes(known(), from, place.value);
  return (
    <section class="compare" aria-label="comparison">
      <p>
        <Icon name="mark" size={14} />
        <button
          type="button"
          class="link"
          title="Move the cursor here"
          onClick={() => {
            cursor.value = from;
          }}
        >
          <At at={known().timeAt(from)} />
        </button>
        → {isLive.value ? 'now' : <At at={known().timeAt(place.value)} />}
        <span class="beside">
          {changed.length === 0 ? 'no changes' : plural(changed.length, 'actor changed', 'actors changed')}
        </span>
        <button
          type="button"
          class="link"
          onClick={() => {
            mark.value = undefined;
          }}
        >
          close
        </button>
      </p>
      {changed.length === 0 ? null : (
        <ul>
          {changed.slice(0, MOST).map(({ actor, before, after, context }) => (
            <li key={actor}>
              <ActorLink address={actor} />
              <span class="beside">
                {before === after
                  ? null
                  : before === undefined
                    ? `started: ${after}`
                    : after === undefined
                      ? `ended: was ${before}`
                      : `${before} → ${after}`}
                {context.length === 0
                  ? null
                  : ` Δ ${context
                      .map(({ path }) => path || 'all')
                      .slice(0, 3)
                      .join(', ')}`}
              </span>
            </li>
          ))}
          {changed.length > MOST ? <li class="beside">and {changed.length - MOST} more</li> : null}
        </ul>
      )}
    </section>
  );
}
