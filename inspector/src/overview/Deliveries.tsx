/** The last deliveries of webhooks: what became of each, its body on demand, and a button that sends it again. */
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { DeliveriesView } from '../../../src/inspector/calls/call-messages.ts';
import { At } from '../parts/parts.tsx';
import { ask, control, Refused } from '../store/api.ts';
import { known, say } from '../store/state.ts';
import '../server/server.css';

/** Milliseconds between two looks. */
const LOOK_MS = 2_000;

const state = signal<DeliveriesView>({ deliveries: [] });

async function look(): Promise<void> {
  if (document.hidden) return;
  try {
    const response = await ask('api/deliveries');
    state.value = await response.json();
  } catch {
    // The next look may succeed.
  }
}

async function again(ref: string): Promise<void> {
  try {
    say(await control({ action: 'redeliver', ref }));
  } catch (error) {
    say(error instanceof Refused ? error.message : 'The server cannot be reached.');
  }
  await look();
}

export function Deliveries() {
  useEffect(() => {
    void look();
    const timer = setInterval(() => void look(), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const { deliveries } = state.value;
  if (deliveries.length === 0) return null;
  const dead = deliveries.filter((delivery) => delivery.state === 'dead').length;
  return (
    <section aria-labelledby="overview-deliveries">
      <header class="overview-head">
        <h2 id="overview-deliveries">Deliveries of webhooks</h2>
        <span class={dead === 0 ? 'tally good' : 'tally bad'}>{dead === 0 ? 'none dead' : `${dead} dead`}</span>
      </header>
      {deliveries.map((delivery) => (
        <Delivery key={delivery.ref} delivery={delivery} />
      ))}
    </section>
  );
}

function Delivery({ delivery }: { readonly delivery: DeliveriesView['deliveries'][number] }) {
  const { ref, path, id, type, state: now, at, attempt, ms, error, bytes, resent } = delivery;
  const [body, setBody] = useState<string>();
  const open = async (): Promise<void> => {
    try {
      const response = await ask(`api/delivery?ref=${encodeURIComponent(ref)}`);
      const found: { readonly body: unknown } = await response.json();
      setBody(typeof found.body === 'string' ? found.body : JSON.stringify(found.body, undefined, 2));
    } catch (failure) {
      setBody(failure instanceof Refused ? failure.message : 'The server cannot be reached.');
    }
  };
  const facts = [
    now,
    attempt > 1 ? `attempt ${attempt}` : '',
    ms === undefined ? '' : `${ms} ms`,
    `${bytes} bytes`,
    resent === undefined ? '' : 'sent again',
  ];
  return (
    <details
      class="question"
      onToggle={({ currentTarget }) => void (currentTarget.open && body === undefined && open())}
    >
      <summary>
        <At at={at - (known().hello?.epoch ?? 0)} precise={false} /> <b>{path}</b> {type} {id}:{' '}
        {facts.filter((fact) => fact !== '').join(', ')}
      </summary>
      {error === undefined ? null : <p class="question-text">{error}</p>}
      <pre class="approval-text">{body ?? '…'}</pre>
      <p class="buttons">
        <button type="button" onClick={() => void again(ref)}>
          Send again
        </button>
      </p>
    </details>
  );
}
