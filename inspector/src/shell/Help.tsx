/** The keys of the page, and what its shapes mean. */
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Sign } from '../parts/icons.tsx';
import { KEYS } from './keys.ts';

export const helpOpen = signal(false);

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => dialog.current?.showModal(), []);
  return (
    <dialog
      class="help"
      ref={dialog}
      aria-labelledby="help-title"
      onClose={() => {
        helpOpen.value = false;
      }}
    >
      <h2 id="help-title">Keys</h2>
      <dl>
        {KEYS.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              {keys.split(' ').map((key) => (
                <kbd key={key}>{key}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
      <h2>Signs</h2>
      <ul class="signs">
        <li>
          <Sign shape="here" /> lives
        </li>
        <li>
          <Sign shape="waiting" /> waits for somebody
        </li>
        <li>
          <Sign shape="trouble" /> crashed, or was sent what it could not take
        </li>
        <li>
          <Sign shape="asleep" /> hibernates, until it is called
        </li>
        <li>
          <Sign shape="gone" /> has gone
        </li>
      </ul>
      <h2>Filter</h2>
      <p>
        Words, and <code>type:tools/call</code>, <code>status:error</code>, <code>actor:order</code>. Pairs of one name
        are alternatives; all else must fit.
      </p>
      <form method="dialog">
        <button type="submit" class="primary">
          Close
        </button>
      </form>
    </dialog>
  );
}
