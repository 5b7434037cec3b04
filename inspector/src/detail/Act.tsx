/** Controls of the server, if the inspector was opened with control. The server records every command. */
import { useState } from 'preact/hooks';
import type { ActorLine } from '../../../src/inspector/model/index.ts';
import { Section } from '../parts/parts.tsx';
import { control } from '../store/api.ts';
import { say } from '../store/state.ts';

export function Act({ line }: { readonly line: ActorLine }) {
  const { kind, connection } = line;
  const [sure, setSure] = useState(false);
  if (kind !== 'session' || connection === undefined) return null;
  return (
    <Section title="Control">
      <p class="buttons">
        {sure ? (
          <>
            <button
              type="button"
              class="danger"
              onClick={() => {
                setSure(false);
                control({ action: 'close', connection }).then(
                  () => say('Closing the session.'),
                  (error: unknown) => say(error instanceof Error ? error.message : String(error)),
                );
              }}
            >
              Close
            </button>
            <button type="button" onClick={() => setSure(false)}>
              Cancel
            </button>
          </>
        ) : (
          <button type="button" onClick={() => setSure(true)}>
            Close the session
          </button>
        )}
      </p>
    </Section>
  );
}
