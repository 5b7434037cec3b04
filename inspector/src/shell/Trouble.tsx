/** What stands between the page and its server, and what can be done about it. */
import { missing } from '../../../src/inspector/model/index.ts';
import { plural } from '../parts/time.ts';
import { retry } from '../store/source.ts';
import { connection, known, tick } from '../store/state.ts';

export function Trouble() {
  const stands = connection.value;
  if (stands.state === 'lost') {
    const left = Math.ceil((stands.retryAt - tick.value) / 1_000);
    return (
      <p class="trouble-bar" role="alert">
        {sentence(stands.why)} What was told until then is still here.
        <button type="button" class="link" onClick={retry}>
          Try again
        </button>
        {left > 0 ? <span class="beside">by itself in {plural(left, 'second')}</span> : null}
      </p>
    );
  }
  if (stands.state === 'refused')
    return (
      <p class="trouble-bar" role="alert">
        {sentence(stands.why)}
      </p>
    );
  const since = known().timeAt(Number.POSITIVE_INFINITY) - 10_000;
  const gaps = known().gaps.filter(({ why, at }) => why !== 'forgotten' && at >= since);
  const [newest] = gaps.slice(-1);
  if (!newest) return null;
  return (
    <p class="trouble-bar mild" role="status">
      Not shown of late: {missing(gaps.filter(({ why }) => why === newest.why))}.{' '}
      {newest.why === 'flood' ? 'More happens than can be told at once.' : 'This page reads too slowly.'}
    </p>
  );
}

function sentence(text: string): string {
  const said = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(said) ? said : `${said}.`;
}
