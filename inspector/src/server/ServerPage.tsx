/** The server as clients see it: what it offers, its instructions, capabilities, revisions and limits. */
import type { Plain, ServerCatalogue } from '../../../src/inspector/frames.ts';
import { isRecord, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { Json } from '../parts/Json.tsx';
import { Section } from '../parts/parts.tsx';
import { bytes, duration, plural } from '../parts/time.ts';
import { known } from '../store/state.ts';
import { ElementIcon } from './ElementIcon.tsx';
import { Raw } from './ElementPage.tsx';
import { Link } from './Link.tsx';
import { GROUPS } from './OfferList.tsx';
import { descriptionOf, elementsOf, listName, membersOf, type OfferKind, shown } from './offers.ts';

/** Number of elements of one kind on this page. */
const FEW = 60;

export function ServerPage({ catalogue }: { readonly catalogue: ServerCatalogue }) {
  const { server, instructions, capabilities, revisions, limits, tools, resources, templates, prompts, machines } =
    catalogue;
  const website = textOfValue(member(server, 'websiteUrl'));
  const { hello } = known();
  return (
    <article class="what offer-page">
      <header class="offer-head">
        <ElementIcon icons={member(server, 'icons')} />
        <div>
          <p class="kind">server</p>
          <h2>{textOfValue(member(server, 'title')) ?? textOfValue(member(server, 'name'))}</h2>
          <p class="stands">
            <span class="offer-name mono">
              {textOfValue(member(server, 'name'))} {textOfValue(member(server, 'version'))}
            </span>
            {hello?.remote === true ? null : (
              <>
                <span class="badge">troupe {hello?.troupe}</span>
                <span class="badge">process {hello?.pid}</span>
              </>
            )}
          </p>
        </div>
      </header>
      {textOfValue(member(server, 'description')) === undefined ? null : (
        <p class="offer-text">{textOfValue(member(server, 'description'))}</p>
      )}
      {website === undefined ? null : (
        <p>
          <Link to={website} />
        </p>
      )}
      <p class="beside">
        {[
          plural(tools.length, 'tool'),
          plural(resources.length, 'resource'),
          plural(templates.length, 'resource template'),
          plural(prompts.length, 'prompt'),
          ...(hello?.remote === true ? [] : [plural(machines.length, 'machine')]),
        ].join(' · ')}
      </p>
      {GROUPS.map(({ kind, label }) => (
        <Offered key={kind} kind={kind} label={label} catalogue={catalogue} />
      ))}
      <Section title="Instructions for models">
        {instructions === undefined ? <p class="beside">None.</p> : <p class="offer-text quote">{instructions}</p>}
      </Section>
      <Section title="Capabilities">
        <ul class="capabilities">
          {membersOf(capabilities).map(([name, value]) => (
            <li key={name}>
              <b>{name}</b> <span class="beside">{partsOf(value)}</span>
              {name === 'experimental' || name === 'extensions' ? <Json value={value} open={3} /> : null}
            </li>
          ))}
        </ul>
      </Section>
      <Section title="Revisions">
        <p class="schema-values">
          {revisions.map((revision) => (
            <code key={revision}>{revision}</code>
          ))}
        </p>
      </Section>
      {membersOf(limits).length === 0 ? null : (
        <details class="limits-of">
          <summary>{plural(membersOf(limits).length, 'limit')}</summary>
          <dl class="limits">
            {membersOf(limits).map(([name, value]) => (
              <div key={name}>
                <dt class="mono">{name}</dt>
                <dd>{limitText(name, value)}</dd>
              </div>
            ))}
          </dl>
        </details>
      )}
      <Section title="As clients receive it">
        <Raw value={{ serverInfo: server, capabilities, ...(instructions === undefined ? {} : { instructions }) }} />
      </Section>
    </article>
  );
}

interface OfferedProps {
  readonly kind: OfferKind;
  readonly label: string;
  readonly catalogue: ServerCatalogue;
}

/** The elements of one kind, with the beginnings of their descriptions. */
function Offered({ kind, label, catalogue }: OfferedProps) {
  const elements =
    kind === 'machine'
      ? catalogue.machines.map(({ name, title = name, description }) => ({ name, label: title, description }))
      : elementsOf(catalogue, kind).map((element) => ({
          name: element.name,
          label: listName(kind, element),
          description: descriptionOf(element),
        }));
  if (elements.length === 0) return null;
  return (
    <Section title={label} beside={elements.length.toLocaleString('en')}>
      <ul class="offered">
        {elements.slice(0, FEW).map(({ name, label: text, description }) => (
          <li key={name}>
            <button
              type="button"
              class="link mono"
              title={name}
              onClick={() => {
                shown.value = { kind, name };
              }}
            >
              {text}
            </button>
            <span class="beside cut" title={description}>
              {description}
            </span>
          </li>
        ))}
      </ul>
      {elements.length > FEW ? (
        <p class="beside">{(elements.length - FEW).toLocaleString('en')} more in the list at the left.</p>
      ) : null}
    </Section>
  );
}

/** The parts of a capability that are on, such as `listChanged`. */
function partsOf(value: Plain): string {
  return isRecord(value)
    ? Object.entries(value)
        .filter(([, part]) => part !== false && !isRecord(part))
        .map(([name]) => name)
        .join(', ')
    : '';
}

/** A limit in its unit, which its name ends with. */
function limitText(name: string, value: Plain): string {
  if (typeof value !== 'number') return String(value);
  if (/Ms$/.test(name)) return duration(value);
  if (/Bytes/.test(name)) return bytes(value);
  return /Percent$/.test(name) ? `${value} %` : value.toLocaleString('en');
}
