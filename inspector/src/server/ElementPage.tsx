/** One tool, resource, template or prompt: what it is for, what it takes, what it returns. */
import { useState } from 'preact/hooks';
import type { CatalogueElement, Plain } from '../../../src/inspector/frames.ts';
import { isList, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { Icon } from '../parts/icons.tsx';
import { Json } from '../parts/Json.tsx';
import { copy, Section } from '../parts/parts.tsx';
import { say } from '../store/state.ts';
import { argumentsOf, CallPanel } from './CallPanel.tsx';
import { ElementIcon } from './ElementIcon.tsx';
import { descriptionOf, type OfferKind, shown, titleOf } from './offers.ts';
import { SchemaTree } from './SchemaTree.tsx';

export interface ElementPageProps {
  readonly kind: Exclude<OfferKind, 'machine'>;
  readonly element: CatalogueElement;
}

const NOUNS = { tool: 'tool', resource: 'resource', template: 'resource template', prompt: 'prompt' } as const;

export function ElementPage({ kind, element }: ElementPageProps) {
  const { name, definition, source, machine, cut } = element;
  const title = titleOf(element);
  const meta = member(definition, '_meta');
  return (
    <article class="what offer-page">
      <header class="offer-head">
        <ElementIcon icons={member(definition, 'icons')} />
        <div>
          <p class="kind">{NOUNS[kind]}</p>
          <h2>{title}</h2>
          <p class="stands">
            <button type="button" class="offer-name mono" title="Copy the name" onClick={() => void copy(name, say)}>
              {name}
              <Icon name="copy" size={12} />
            </button>
            <Badges kind={kind} element={element} />
          </p>
        </div>
      </header>
      <p class={`offer-text${descriptionOf(element) === undefined ? ' beside' : ''}`}>
        {descriptionOf(element) ?? 'It has no description: a model has only its name to go by.'}
      </p>
      {machine === undefined ? null : (
        <p class="beside">
          Generated for the machine{' '}
          <button
            type="button"
            class="link"
            onClick={() => {
              shown.value = { kind: 'machine', name: machine };
            }}
          >
            {machine}
          </button>
          .
        </p>
      )}
      <CallPanel kind={kind} element={element} />
      {cut ? <p class="note">The definition is too long to be shown completely. Parts of it are left out.</p> : null}
      <Contents kind={kind} element={element} />
      {meta === undefined ? null : (
        <Section title="Metadata">
          <Json value={meta} open={3} />
        </Section>
      )}
      <Section title="Definition" beside={source === 'code' ? 'registered in code' : `from ${source}`}>
        <Raw value={definition} />
      </Section>
    </article>
  );
}

function Contents({ kind, element }: ElementPageProps) {
  const { definition, completes = [] } = element;
  switch (kind) {
    case 'tool': {
      const output = member(definition, 'outputSchema');
      return (
        <>
          <Section title="Arguments">
            <SchemaTree schema={member(definition, 'inputSchema') ?? {}} none="It takes no arguments." />
          </Section>
          {output === undefined ? null : (
            <Section title="Result">
              <SchemaTree schema={output} none="Any value." />
            </Section>
          )}
        </>
      );
    }
    case 'prompt':
    case 'template':
      return (
        <Section title={kind === 'prompt' ? 'Arguments' : 'Variables'}>
          <Named arguments={argumentsOf(kind, element)} completes={completes} />
        </Section>
      );
    case 'resource':
      return null;
  }
}

interface NamedProps {
  readonly arguments: ReturnType<typeof argumentsOf>;
  readonly completes: readonly string[];
}

/** Arguments that have no schema: those of prompts, and the variables of templates. */
function Named({ arguments: listed, completes }: NamedProps) {
  if (listed.length === 0) return <p class="beside">It takes no arguments.</p>;
  return (
    <ul class="schema-parts">
      {listed.map(({ name, title, description, required }) => (
        <li class="schema-part" key={name}>
          <p class="schema-line">
            <span class="schema-twist none" />
            <span class="schema-name">{name}</span>
            <span class="schema-type">{title}</span>
            {required ? <span class="schema-required">required</span> : null}
            {completes.includes(name) ? <span class="beside">the server suggests values</span> : null}
          </p>
          {description === undefined ? null : <p class="schema-remarks">{description}</p>}
        </li>
      ))}
    </ul>
  );
}

/** Hints of the author, in words. A hint is no promise (MCP tools, "Tool Annotations"). */
const HINTS: readonly (readonly [hint: string, value: boolean, word: string, title: string, tone: string])[] = [
  ['readOnlyHint', true, 'read-only', 'It changes nothing.', 'good'],
  ['destructiveHint', true, 'destructive', 'It may delete or overwrite something.', 'bad'],
  ['idempotentHint', true, 'idempotent', 'A second call with the same arguments changes nothing more.', ''],
  ['openWorldHint', true, 'open world', 'It reaches beyond this server.', ''],
  ['openWorldHint', false, 'closed world', 'It reaches nothing beyond this server.', ''],
];

function Badges({ kind, element: { definition, enabled } }: ElementPageProps) {
  const annotations = member(definition, 'annotations');
  const task = textOfValue(member(definition, 'execution', 'taskSupport'));
  const mime = textOfValue(member(definition, 'mimeType'));
  const size = member(definition, 'size');
  const audience = member(annotations, 'audience');
  const priority = member(annotations, 'priority');
  return (
    <>
      {enabled === false ? (
        <span class="badge bad" title="Clients do not see it.">
          disabled
        </span>
      ) : null}
      {HINTS.filter(([hint, value]) => member(annotations, hint) === value).map(([hint, , word, title, tone]) => (
        <span class={`badge ${tone}`} key={hint} title={title}>
          {word}
        </span>
      ))}
      {task === undefined || kind !== 'tool' ? null : (
        <span class="badge wait" title="A task outlives its request.">
          {task === 'required' ? 'always a task' : 'may become a task'}
        </span>
      )}
      {mime === undefined ? null : <span class="badge mono">{mime}</span>}
      {typeof size === 'number' ? <span class="badge">{size.toLocaleString('en')} bytes</span> : null}
      {isList(audience) ? <span class="badge">for {audience.map(String).join(' and ')}</span> : null}
      {typeof priority === 'number' ? <span class="badge">priority {priority}</span> : null}
    </>
  );
}

/** JSON that is shown when a person asks for it. */
export function Raw({ value }: { readonly value: Plain }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <p class="buttons">
        <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>
          {open ? 'Hide the JSON' : 'Show the JSON'}
        </button>
        <button type="button" onClick={() => void copy(JSON.stringify(value, null, 2), say)}>
          <Icon name="copy" size={13} /> Copy
        </button>
      </p>
      {open ? <Json value={value} open={3} /> : null}
    </>
  );
}
