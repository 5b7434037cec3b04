/** The keys and signs of the page. */
import { signal } from '@preact/signals';
import { useEffect, useRef } from 'preact/hooks';
import { Sign } from '../parts/icons.tsx';
import { KEYS } from './keys.ts';

export const helpOpen = signal(false);

export function Help() {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    if (!current) return;
    current.showModal();
    // The first focus goes to the button at the end, and scrolls the beginning out of view.
    current.focus();
    current.scrollTop = 0;
  }, []);
  return (
    <dialog
      class="help"
      ref={dialog}
      tabIndex={-1}
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
          <Sign shape="here" /> live
        </li>
        <li>
          <Sign shape="waiting" /> waiting, in amber
        </li>
        <li>
          <Sign shape="trouble" /> failed, crashed, or did not handle an event, in red
        </li>
        <li>
          <Sign shape="ok" /> done, in green
        </li>
        <li>
          <Sign shape="asleep" /> hibernating
        </li>
        <li>
          <Sign shape="gone" /> ended
        </li>
      </ul>
      <h2>Filter</h2>
      <p>
        Words and pairs: <code>type:tools/call</code>, <code>status:error</code>, <code>actor:order</code>. Pairs with
        the same name are alternatives; everything else must match.
      </p>
      <form method="dialog">
        <button type="submit" class="primary">
          Close
        </button>
      </form>
    </dialog>
  );
}
