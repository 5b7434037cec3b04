/** Instructions for connecting a client, while none is connected: the entry of each client's configuration, to copy. */
import { useState } from 'preact/hooks';
import type { ConnectHelp } from '../../../src/inspector/frames.ts';
import { Icon } from '../parts/icons.tsx';
import { copy } from '../parts/parts.tsx';
import { say } from '../store/state.ts';

export function Connect({ help: { note, ways } }: { readonly help: ConnectHelp }) {
  const [client, setClient] = useState<string | undefined>(undefined);
  const way = ways.find((each) => each.client === client) ?? ways[0];
  return (
    <section class="connect" aria-labelledby="overview-connect">
      <h2 id="overview-connect">Connect a client</h2>
      <p>
        No client is connected. <Note text={note} />
      </p>
      {way ? (
        <>
          <fieldset class="switch">
            <legend class="unseen">client</legend>
            {ways.map((each) => (
              <button
                key={each.client}
                type="button"
                aria-pressed={each === way}
                onClick={() => setClient(each.client)}
              >
                {each.client}
              </button>
            ))}
          </fieldset>
          {way.file === undefined ? null : (
            <p class="beside">
              In <code>{way.file}</code>:
            </p>
          )}
          <div class="connect-entry">
            <pre>{way.text}</pre>
            <button type="button" class="tool" title="Copy" aria-label="Copy" onClick={() => void copy(way.text, say)}>
              <Icon name="copy" />
            </button>
          </div>
          {way.next === undefined ? null : <p class="beside">Then: {way.next}.</p>}
        </>
      ) : null}
    </section>
  );
}

/** A text with commands between backticks. */
function Note({ text }: { readonly text: string }) {
  return text.split('`').map((part, index) => (index % 2 === 1 ? <code key={part}>{part}</code> : part));
}
