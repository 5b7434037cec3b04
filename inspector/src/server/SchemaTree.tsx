/** A JSON Schema as a tree that people read: names, types, bounds, descriptions. The JSON is one click away. */
import { useState } from 'preact/hooks';
import type { Plain } from '../../../src/inspector/frames.ts';
import { isList, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { Json } from '../parts/Json.tsx';
import { short } from '../parts/time.ts';
import { constantsOf, follow, limitsOf, partsOf, type SchemaObject, type SchemaPart, typeWord } from './schema.ts';

/** Parts that are shown before "more" is chosen. */
const MANY = 60;
/** Values of a choice that are shown. */
const FEW = 12;
/** Levels that are expanded at first. */
const OPEN = 2;

export function SchemaTree({ schema, none }: { readonly schema: Plain; readonly none: string }) {
  const [raw, setRaw] = useState(false);
  const { schema: whole } = follow(schema, schema);
  const parts = whole ? partsOf(schema, whole) : [];
  return (
    <div class="schema">
      {raw ? (
        <Json value={schema} open={3} />
      ) : parts.length > 0 && whole ? (
        <>
          <Remarks schema={whole} root={schema} top />
          <Parts parts={parts} root={schema} seen={[]} depth={0} />
        </>
      ) : (
        <p class="beside">{whole && typeWord(schema, whole) !== 'object' ? typeWord(schema, whole) : none}</p>
      )}
      <button type="button" class="link raw" aria-pressed={raw} onClick={() => setRaw(!raw)}>
        {raw ? 'Show as a tree' : 'Show the JSON Schema'}
      </button>
    </div>
  );
}

interface PartsProps {
  readonly parts: readonly SchemaPart[];
  readonly root: Plain;
  /** The references on the path: a schema may contain itself. */
  readonly seen: readonly string[];
  readonly depth: number;
}

function Parts({ parts, ...rest }: PartsProps) {
  const [most, setMost] = useState(MANY);
  return (
    <ul class="schema-parts">
      {parts.slice(0, most).map((part, index) => (
        <Part key={`${index} ${part.name}`} part={part} {...rest} />
      ))}
      {parts.length > most ? (
        <li>
          <button type="button" class="link" onClick={() => setMost(most + 10 * MANY)}>
            {parts.length - most} more
          </button>
        </li>
      ) : null}
    </ul>
  );
}

function Part({ part, root, seen, depth }: Omit<PartsProps, 'parts'> & { readonly part: SchemaPart }) {
  const { schema, through } = follow(root, part.schema);
  const repeats = through.some((reference) => seen.includes(reference));
  const [open, setOpen] = useState(depth < OPEN && !repeats);
  const inner = schema ? partsOf(root, schema) : [];
  return (
    <li class="schema-part">
      <p class="schema-line">
        {inner.length === 0 ? (
          <span class="schema-twist none" />
        ) : (
          <button
            type="button"
            class="schema-twist"
            aria-expanded={open}
            aria-label={`${part.name}: members`}
            onClick={() => setOpen(!open)}
          />
        )}
        <span class={part.kind === 'property' ? 'schema-name' : 'schema-role'}>{short(part.name, 80)}</span>
        <span class="schema-type">{schema ? typeWord(root, schema) : cannot(part.schema, through)}</span>
        {part.required ? <span class="schema-required">required</span> : null}
        {repeats ? <span class="beside">contains itself</span> : null}
      </p>
      {schema ? <Remarks schema={schema} root={root} /> : null}
      {open && inner.length > 0 ? (
        <Parts parts={inner} root={root} seen={[...seen, ...through]} depth={depth + 1} />
      ) : null}
    </li>
  );
}

/** The reason why a part has no schema. */
function cannot(schema: Plain, [reference]: readonly string[]): string {
  if (reference === undefined) return typeof schema === 'string' ? schema : schema === false ? 'never' : 'unknown';
  return reference.startsWith('#') ? `${reference}: no such schema` : `${reference}: not followed`;
}

function Remarks({
  schema,
  root,
  top = false,
}: {
  readonly schema: SchemaObject;
  readonly root: Plain;
  top?: boolean;
}) {
  const description = textOfValue(schema.description);
  const title = textOfValue(schema.title);
  const limits = limitsOf(schema);
  const constants = constantsOf(schema);
  const { schema: items } = follow(root, schema.items);
  const choices = constants ?? (items && constantsOf(items));
  const examples = isList(schema.examples) ? schema.examples : [];
  if (
    !description &&
    !title &&
    limits.length === 0 &&
    !choices &&
    schema.default === undefined &&
    examples.length === 0
  )
    return null;
  return (
    <div class={`schema-remarks${top ? ' top' : ''}`}>
      {title || description ? (
        <p>
          {title ? <b>{title}</b> : null}
          {title && description ? ' · ' : null}
          {description}
        </p>
      ) : null}
      {choices ? (
        <p class="schema-values">
          {choices.slice(0, FEW).map(({ value, title: name }) => (
            <code key={String(JSON.stringify(value))} title={name}>
              {valueText(value)}
            </code>
          ))}
          {choices.length > FEW ? <span class="beside">{choices.length - FEW} more</span> : null}
        </p>
      ) : null}
      {limits.length > 0 || schema.default !== undefined || examples.length > 0 ? (
        <p class="beside">
          {[
            ...limits,
            ...(schema.default === undefined ? [] : [`default ${valueText(schema.default)}`]),
            ...(examples.length === 0 ? [] : [`such as ${examples.slice(0, 3).map(valueText).join(', ')}`]),
          ].join(' · ')}
        </p>
      ) : null}
    </div>
  );
}

/** A value in a line. */
export function valueText(value: Plain): string {
  return short(typeof value === 'string' ? value : JSON.stringify(value), 60);
}
