/** One record: its data, its causes up to the wire, and its effects. */
import type { TraceRecord } from '../../../src/inspector/frames.ts';
import { lineOf } from '../../../src/inspector/model/index.ts';
import { Icon } from '../parts/icons.tsx';
import { Json } from '../parts/Json.tsx';
import { At, Section } from '../parts/parts.tsx';
import { plural } from '../parts/time.ts';
import { cursor, known, select, selection } from '../store/state.ts';

/** Maximum number of shown effects. */
const MOST = 20;

export function RecordCard({ seq }: { readonly seq: number }) {
  const model = known();
  const record = model.causes.find(seq);
  if (!record) return <p class="note beside">Record #{seq} is not available: it is too old, or was omitted.</p>;
  const because = model.causes.because(seq).slice(1);
  const followed = model.causes.followed(seq);
  const data = model.dataOf(seq);
  const { record: _, ...rest } = selection.value;
  return (
    <article class="record">
      <header>
        <p class="kind">
          <span class="mono">#{seq}</span> {record.type}
          <span class="beside">
            <At at={record.at} />
          </span>
          <button type="button" class="close" aria-label="close the record" onClick={() => select(rest)}>
            <Icon name="close" size={13} />
          </button>
        </p>
        <h2>{lineOf(model, record)}</h2>
        <button
          type="button"
          class="link"
          onClick={() => {
            cursor.value = seq;
          }}
        >
          move the cursor here
        </button>
      </header>
      {data === undefined || isEmpty(data) ? null : (
        <Section title="Data">
          <Json value={data} open={3} />
        </Section>
      )}
      <Section title="Causes">
        {because.length === 0 ? (
          <p class="beside">{record.type === 'wire' ? 'None: this message started the chain.' : 'Unknown.'}</p>
        ) : (
          <ol class="chain">
            {because.map((cause) => (
              <Link key={cause.seq} record={cause} />
            ))}
          </ol>
        )}
      </Section>
      {followed.length === 0 ? null : (
        <Section title="Effects" beside={plural(followed.length, 'record')}>
          <ol class="chain">
            {followed.slice(0, MOST).map((effect) => (
              <Link key={effect.seq} record={effect} />
            ))}
          </ol>
          {followed.length > MOST ? <p class="beside">and {followed.length - MOST} more</p> : null}
        </Section>
      )}
    </article>
  );
}

function Link({ record }: { readonly record: TraceRecord }) {
  return (
    <li class={record.type}>
      <button type="button" class="moment" onClick={() => select({ ...selection.value, record: record.seq })}>
        <span class="mono beside">#{record.seq}</span>
        <span>{lineOf(known(), record)}</span>
      </button>
    </li>
  );
}

function isEmpty(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Object.keys(data).length === 0;
}
