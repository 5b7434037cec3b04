/** The server as clients see it: name, instructions, capabilities, revisions, limits. */
import type { Plain, ServerCatalogue } from '../../../src/inspector/frames.ts';
import { isRecord, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { Json } from '../parts/Json.tsx';
import { Section } from '../parts/parts.tsx';
import { bytes, duration, plural } from '../parts/time.ts';
import { known } from '../store/state.ts';
import { ElementIcon } from './ElementIcon.tsx';
import { Raw } from './ElementPage.tsx';
import { Link } from './Link.tsx';
import { membersOf } from './offers.ts';

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
            <span class="badge">troupe {hello?.troupe}</span>
            <span class="badge">process {hello?.pid}</span>
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
          plural(machines.length, 'machine'),
        ].join(' · ')}
      </p>
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
      <Section title="Limits">
        <dl class="limits">
          {membersOf(limits).map(([name, value]) => (
            <div key={name}>
              <dt class="mono">{name}</dt>
              <dd>{limitText(name, value)}</dd>
            </div>
          ))}
        </dl>
      </Section>
      <Section title="As clients receive it">
        <Raw value={{ serverInfo: server, capabilities, ...(instructions === undefined ? {} : { instructions }) }} />
      </Section>
    </article>
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
