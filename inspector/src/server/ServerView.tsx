/** Everything that the server offers: a list on the left, and what was chosen on the right. */
import { useEffect } from 'preact/hooks';
import { later } from '../parts/Later.tsx';
import { connection, known } from '../store/state.ts';
import { CallsPage } from './CallsPage.tsx';
import { watchCalls } from './calls.ts';
import { ElementPage } from './ElementPage.tsx';
import { MachinePage } from './MachinePage.tsx';
import { OfferList } from './OfferList.tsx';
import { elementsOf, shown, trouble, watchOffers } from './offers.ts';
import { Questions } from './Questions.tsx';
import { ServerPage } from './ServerPage.tsx';
import './server.css';

const AppsPage = later('This page', async () => (await import('./apps/AppsPage.tsx')).AppsPage);

export function ServerView() {
  useEffect(watchOffers, []);
  useEffect(watchCalls, []);
  const { catalogue } = known();
  if (!catalogue)
    return (
      <div class="none">
        <p>
          {connection.value.state === 'recording'
            ? 'This recording does not contain what the server offers: it was made by an earlier version.'
            : (trouble.value ?? 'Reading what the server offers …')}
        </p>
      </div>
    );
  return (
    <div class="offers">
      <OfferList catalogue={catalogue} />
      <Pane key={JSON.stringify(shown.value)} />
    </div>
  );
}

function Pane() {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls is scrolled with the keys.
    // biome-ignore lint/a11y/useSemanticElements: a region of the page, not a section of its text.
    <div class="scroll offer" role="region" aria-label="the chosen element" tabIndex={0}>
      <Questions />
      <Chosen />
    </div>
  );
}

function Chosen() {
  const { catalogue } = known();
  const { value: chosen } = shown;
  if (!catalogue) return null;
  if (chosen.kind === 'calls') return <CallsPage />;
  if (chosen.kind === 'apps') return <AppsPage />;
  if (!('name' in chosen)) return <ServerPage catalogue={catalogue} />;
  const { kind, name } = chosen;
  if (kind === 'machine') {
    const machine = catalogue.machines.find((each) => each.name === name);
    return machine ? <MachinePage machine={machine} catalogue={catalogue} /> : <Gone kind={kind} name={name} />;
  }
  const element = elementsOf(catalogue, kind).find((each) => each.name === name);
  return element ? <ElementPage kind={kind} element={element} /> : <Gone kind={kind} name={name} />;
}

function Gone({ kind, name }: { readonly kind: string; readonly name: string }) {
  return (
    <div class="none">
      <p>
        The server no longer offers the {kind} “{name}”.
      </p>
    </div>
  );
}
