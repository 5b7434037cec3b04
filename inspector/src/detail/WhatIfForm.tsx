/** Tries an event: the server computes its effect on a copy, without an effect on the actor. */
import { useState } from 'preact/hooks';
import { type ActorLine, differences, isAuthored, LIVE } from '../../../src/inspector/model/index.ts';
import { Json } from '../parts/Json.tsx';
import { Section } from '../parts/parts.tsx';
import { askWhatIf, control } from '../store/api.ts';
import { known, place, say, supposed } from '../store/state.ts';
import { eventOf, eventsOf } from './events.ts';

export function WhatIfForm({ line }: { readonly line: ActorLine }) {
  const { address } = line;
  const chart = known().chartOf(address);
  // Events that are possible now come first.
  const next = line.view(LIVE)?.next.map(({ event }) => event) ?? [];
  const all = chart ? eventsOf(chart.root) : [];
  const events = [...all.filter((event) => next.includes(event)), ...all.filter((event) => !next.includes(event))];
  const [written, setType] = useState<string | undefined>(undefined);
  const type = written ?? events[0] ?? '';
  const [data, setData] = useState('');
  const [why, setWhy] = useState<string | undefined>(undefined);
  const [busy, setBusy] = useState(false);
  if (!chart) return null;
  const result = supposed.value?.actor === address ? supposed.value.result : undefined;
  const withEvent = async (act: (event: { readonly type: string }) => Promise<void>): Promise<void> => {
    const event = eventOf(type, data);
    if (typeof event === 'string') return setWhy(event);
    setWhy(undefined);
    setBusy(true);
    try {
      await act(event);
    } catch (error) {
      setWhy(error instanceof Error ? error.message : String(error));
    }
    setBusy(false);
  };
  return (
    <Section title="What if">
      <form
        class="suppose"
        onSubmit={(event) => {
          event.preventDefault();
          void withEvent(async (asked) => {
            supposed.value = { actor: address, result: await askWhatIf(address, asked) };
          });
        }}
      >
        <label>
          <span>event</span>
          <input
            list="events"
            class="mono"
            value={type}
            spellcheck={false}
            autocomplete="off"
            onInput={({ currentTarget }) => setType(currentTarget.value)}
          />
        </label>
        <datalist id="events">
          {events.map((event) => (
            <option key={event} value={event} />
          ))}
        </datalist>
        <label>
          <span>data, as JSON</span>
          <textarea
            class="mono"
            rows={2}
            spellcheck={false}
            placeholder='{ "name": "value" }'
            value={data}
            onInput={({ currentTarget }) => setData(currentTarget.value)}
          />
        </label>
        <p class="buttons">
          <button type="submit" class="primary" disabled={busy || type === ''}>
            Try
          </button>
          {known().hello?.control === true && isAuthored(line.kind) ? (
            <button
              type="button"
              disabled={busy || type === ''}
              onClick={() =>
                void withEvent(async (event) => {
                  await control({ action: 'send', actor: address, event });
                  supposed.value = undefined;
                  say(`Sent ${type}.`);
                })
              }
            >
              Send
            </button>
          ) : null}
        </p>
      </form>
      {why === undefined ? null : (
        <p class="bad" role="alert">
          {why}
        </p>
      )}
      {result ? (
        <div class={`supposed ${result.allowed ? 'yes' : 'no'}`} role="status">
          {result.allowed ? (
            <p>
              <b>{type}</b> would lead to <b>{result.active.join(' & ') || result.status}</b>
              {result.status === 'active' ? '' : ` (${result.status})`}.
            </p>
          ) : (
            <p>
              <b>Not possible:</b> {result.why ?? 'no state handles it.'}
            </p>
          )}
          {result.actions.length === 0 ? null : <p class="beside">Actions: {result.actions.join(', ')}.</p>}
          {result.context === undefined || !result.allowed ? null : (
            <Json
              value={result.context}
              open={1}
              changed={new Set(differences(line.context(place.value), result.context).map(({ path }) => path))}
            />
          )}
        </div>
      ) : null}
    </Section>
  );
}
