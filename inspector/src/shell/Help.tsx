/** The keys and signs of the page. */
import { useEffect, useRef } from 'preact/hooks';
import { Sign } from '../parts/icons.tsx';
import { helpOpen } from './keys.ts';

const KEYS: readonly (readonly [keys: string, what: string])[] = [
  ['/', 'focus the filter'],
  ['← →', 'previous or next record; , and . also in lists'],
  ['L', 'live: follow the newest record'],
  ['Space', 'pause or resume'],
  ['M', 'mark this moment for comparison'],
  ['1 … 9', 'the views, from left to right'],
  ['P N', 'in a script: previous or next result'],
  ['A D', 'focus the actors, the details'],
  ['↑ ↓', 'move in a list; ← → collapse and expand in the tree'],
  ['[ ] \\', 'collapse or expand the actors, the details, the timeline'],
  ['+ − 0 C', 'zoom the chart, fit it, or centre the active states'],
  ['⇧ drag', 'on the timeline: filter by time'],
  ['T', 'light or dark theme'],
  ['Esc', 'clear the selection'],
  ['?', 'this list'],
];

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
