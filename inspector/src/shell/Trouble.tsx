/** The bar for problems with the connection, with a button to retry. */
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
        {sentence(stands.why)} Earlier records are still shown.
        <button type="button" class="link" onClick={retry}>
          Retry
        </button>
        {left > 0 ? <span class="beside">retrying in {plural(left, 'second')}</span> : null}
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
      Not shown: {missing(gaps.filter(({ why }) => why === newest.why))}.{' '}
      {newest.why === 'flood' ? 'Too many records at once.' : 'This page reads too slowly.'}
    </p>
  );
}

function sentence(text: string): string {
  const said = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?]$/.test(said) ? said : `${said}.`;
}
