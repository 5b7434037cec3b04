/** Controls of the server, if the inspector was opened with control. The server records every command. */
import { useEffect, useState } from 'preact/hooks';
import type { Plain } from '../../../src/inspector/frames.ts';
import type { ActorLine } from '../../../src/inspector/model/index.ts';
import { Section } from '../parts/parts.tsx';
import { short } from '../parts/time.ts';
import { control, readView } from '../store/api.ts';
import { known, say } from '../store/state.ts';
import { objectOf } from './events.ts';

/** Maximum length of a shown result; the wire has all of it. */
const MOST = 600;

async function tried(act: () => Promise<string>, said: (words: string) => void = say): Promise<void> {
  try {
    said(await act());
  } catch (error) {
    said(error instanceof Error ? error.message : String(error));
  }
}

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
                void tried(async () => {
                  await control({ action: 'close', connection });
                  return 'Closing the session.';
                });
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

export function CallTool() {
  const [tool, setTool] = useState('');
  const [text, setText] = useState('');
  const [why, setWhy] = useState<string | undefined>(undefined);
  const [came, setCame] = useState<string | undefined>(undefined);
  const [offered, setOffered] = useState<readonly string[]>([]);
  useEffect(() => {
    // Suggestions only: any name can be entered without them.
    readView('registry/tools')
      .then(({ facts }) => setOffered(offersIn(facts.offers)))
      .catch(() => {});
  }, []);
  const tools = [...new Set([...offered, ...called()])].sort();
  return (
    <Section title="Call a tool">
      <form
        class="suppose"
        onSubmit={(event) => {
          event.preventDefault();
          const members = objectOf(text);
          if (typeof members === 'string') return setWhy(members);
          setWhy(undefined);
          setCame(`Called “${tool}”. Waiting for its result.`);
          void tried(() => control({ action: 'call', tool, arguments: members }), setCame);
        }}
      >
        <label>
          <span>tool</span>
          <input list="tools" class="mono" value={tool} onInput={({ currentTarget }) => setTool(currentTarget.value)} />
        </label>
        <datalist id="tools">
          {tools.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
        <label>
          <span>arguments, as JSON</span>
          <textarea
            class="mono"
            rows={2}
            value={text}
            spellcheck={false}
            onInput={({ currentTarget }) => setText(currentTarget.value)}
          />
        </label>
        <p class="buttons">
          <button type="submit" disabled={tool === ''}>
            Call
          </button>
        </p>
        {why === undefined ? null : (
          <p class="bad" role="alert">
            {why}
          </p>
        )}
        {came === undefined ? null : (
          <p class="came" role="status">
            {short(came, MOST)}
          </p>
        )}
      </form>
    </Section>
  );
}

/** The names of the offered elements, without disabled ones and without the note about omitted ones. */
function offersIn(offers: Plain | undefined): readonly string[] {
  const names = Array.isArray(offers) ? offers.filter((name) => typeof name === 'string') : [];
  return names.filter((name) => !name.endsWith(' (disabled)') && !name.startsWith('«'));
}

/** Tools that were called before. */
function called(): ReadonlySet<string> {
  const names = new Set<string>();
  for (const { method, target } of known().exchanges.all.until(Number.POSITIVE_INFINITY))
    if (method === 'tools/call' && target !== undefined) names.add(target);
  return names;
}
