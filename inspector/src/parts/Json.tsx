/** A value as a tree of text nodes that can be expanded. Changes are marked. */
import { useState } from 'preact/hooks';
import { type Plain, REDACTED } from '../../../src/inspector/frames.ts';
import './json.css';

export interface JsonProps {
  readonly value: Plain;
  /** Number of levels that are expanded at first. */
  readonly open?: number;
  /** The changed paths, such as `items.0`. */
  readonly changed?: ReadonlySet<string>;
}

/** Number of members that are shown before "more" is chosen. */
const MANY = 100;
/** Maximum length of the summary of a collapsed object. */
const SHORT = 44;
/** Maximum length of a text that is shown completely at first. */
const LONG = 400;

export function Json({ value, open = 2, changed }: JsonProps) {
  return (
    <div class="json">
      <Value value={value} path="" depth={0} open={open} changed={changed ?? NONE} />
    </div>
  );
}

const NONE: ReadonlySet<string> = new Set();

interface ValueProps {
  readonly name?: string;
  readonly value: Plain;
  readonly path: string;
  readonly depth: number;
  readonly open: number;
  readonly changed: ReadonlySet<string>;
}

function Value({ name, value, path, depth, open, changed }: ValueProps) {
  const [opened, setOpened] = useState<boolean | undefined>(undefined);
  const [shown, setShown] = useState(MANY);
  const isChanged = changed.has(path) && path !== '';
  const label = name === undefined ? null : <span class="json-name">{name}</span>;
  const delta = isChanged ? <Delta /> : null;
  if (typeof value !== 'object' || value === null)
    return (
      <div class={`json-row${isChanged ? ' changed' : ''}`}>
        {delta}
        {label}
        <Leaf value={value} />
      </div>
    );
  const list = Array.isArray(value);
  const members: readonly (readonly [string, Plain])[] = Object.entries(value);
  const within = !isChanged && [...changed].some((other) => path === '' || other.startsWith(`${path}.`));
  const isOpen = opened ?? (depth < open || within);
  if (members.length === 0)
    return (
      <div class={`json-row${isChanged ? ' changed' : ''}`}>
        {delta}
        {label}
        <span class="json-none">{list ? 'empty list' : 'empty'}</span>
      </div>
    );
  return (
    <div class={`json-inner${isChanged ? ' changed' : ''}`}>
      {depth === 0 && name === undefined ? null : (
        <button type="button" class="json-row json-fold" aria-expanded={isOpen} onClick={() => setOpened(!isOpen)}>
          {delta}
          <span class="json-twist" aria-hidden="true" />
          {label}
          <span class="json-none">{list ? `${members.length}` : isOpen ? '' : summary(members)}</span>
        </button>
      )}
      {isOpen || (depth === 0 && name === undefined) ? (
        <div class={depth === 0 && name === undefined ? '' : 'json-members'}>
          {members.slice(0, shown).map(([key, member]) => (
            <Value
              key={key}
              name={key}
              value={member}
              path={path === '' ? key : `${path}.${key}`}
              depth={depth + 1}
              open={open}
              changed={changed}
            />
          ))}
          {members.length > shown ? (
            <button type="button" class="json-more" onClick={() => setShown(shown + 10 * MANY)}>
              {members.length - shown} more
            </button>
          ) : null}
        </div>
      ) : null}
    </div>
  );
}

function Leaf({ value }: { readonly value: string | number | boolean | null }) {
  const [whole, setWhole] = useState(false);
  if (typeof value !== 'string')
    return <span class={`json-${value === null ? 'none' : typeof value}`}>{String(value)}</span>;
  if (value === REDACTED) return <span class="json-redacted">redacted</span>;
  if (value.length <= LONG || whole) return <span class="json-string">{value}</span>;
  return (
    <span class="json-string">
      {value.slice(0, LONG)}
      <button type="button" class="json-more" onClick={() => setWhole(true)}>
        … {value.length - LONG} more characters
      </button>
    </span>
  );
}

function Delta() {
  return (
    <span class="json-delta" role="img" aria-label="changed">
      Δ
    </span>
  );
}

function summary(members: readonly (readonly [string, Plain])[]): string {
  const whole = members
    .map(([name, value]) => `${name}: ${typeof value === 'object' ? '…' : String(value)}`)
    .join(', ');
  if (whole.length <= SHORT && !whole.includes('…')) return whole;
  const names = members.slice(0, 4).map(([name]) => name);
  return `${names.join(', ')}${members.length > 4 ? ', …' : ''}`;
}
