/** A machine with handles: its events, its lifetime, its tools, its live instances. */
import type { CatalogueElement, CatalogueMachine, ServerCatalogue } from '../../../src/inspector/frames.ts';
import { Section } from '../parts/parts.tsx';
import { duration } from '../parts/time.ts';
import { cursor, known } from '../store/state.ts';
import { LiveActors } from './LiveActors.tsx';
import { descriptionOf, type Shown, shown } from './offers.ts';

export function MachinePage({
  machine,
  catalogue,
}: {
  readonly machine: CatalogueMachine;
  readonly catalogue: ServerCatalogue;
}) {
  const { name, title, description, events, ttlMs, idleMs, version, key, roles = [] } = machine;
  const own = (elements: readonly CatalogueElement[]) => elements.filter((element) => element.machine === name);
  const instances = [...known().actors.values()].filter(
    (line) => line.kind === 'handle' && line.address.startsWith(`handle/${name}/`) && line.aliveAt(cursor.value),
  );
  return (
    <article class="what offer-page">
      <header class="offer-head">
        <div>
          <p class="kind">machine</p>
          <h2>{title ?? name}</h2>
          <p class="stands">
            <span class="offer-name mono">{name}</span>
            {key === undefined ? null : <span class="badge">one for each {key.replace('argument ', 'value of ')}</span>}
            {version === undefined ? null : <span class="badge">version {version}</span>}
            {ttlMs === undefined ? null : <span class="badge wait">lives {duration(ttlMs)} at most</span>}
            {idleMs === undefined ? null : <span class="badge wait">expires after {duration(idleMs)} without use</span>}
          </p>
        </div>
      </header>
      <p class={`offer-text${description === undefined ? ' beside' : ''}`}>
        {description ?? 'It has no description: a model has only its name to go by.'}
      </p>
      <Section title="Events that clients may send" beside={String(events.length)}>
        <p class="schema-values">
          {events.map((event) => (
            <code key={event}>{event}</code>
          ))}
        </p>
      </Section>
      {roles.length === 0 ? null : (
        <Section title="Roles" beside={String(roles.length)}>
          <ul class="offer-links">
            {roles.map((role) => (
              <li key={role.name}>
                <b>{role.name}</b>{' '}
                {role.events.map((event) => (
                  <code key={event}>{event === '*' ? 'every event' : event} </code>
                ))}
                {role.ownView ? <span class="beside">sees a view of its own</span> : null}
              </li>
            ))}
          </ul>
        </Section>
      )}
      <Section title="Its tools">
        <ul class="offer-links">
          {own(catalogue.tools).map((tool) => (
            <OfferLink key={tool.name} to={{ kind: 'tool', name: tool.name }} element={tool} />
          ))}
        </ul>
      </Section>
      <Section title="Its resources">
        <ul class="offer-links">
          {own(catalogue.resources).map((resource) => (
            <OfferLink key={resource.name} to={{ kind: 'resource', name: resource.name }} element={resource} />
          ))}
          {own(catalogue.templates).map((template) => (
            <OfferLink key={template.name} to={{ kind: 'template', name: template.name }} element={template} />
          ))}
        </ul>
      </Section>
      <Section title="Live instances" beside={String(instances.length)}>
        <LiveActors lines={instances} none="None is in memory." />
      </Section>
    </article>
  );
}

function OfferLink({ to, element }: { readonly to: Shown; readonly element: CatalogueElement }) {
  return (
    <li>
      <button
        type="button"
        class="link mono"
        onClick={() => {
          shown.value = to;
        }}
      >
        {element.name}
      </button>{' '}
      <span class="beside">{descriptionOf(element)}</span>
    </li>
  );
}
