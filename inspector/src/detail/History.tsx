/** The history of an actor, the latest record first. Each entry moves the cursor. */
import { useState } from 'preact/hooks';
import type { TraceRecord } from '../../../src/inspector/frames.ts';
import { type ActorLine, eventName, LIVE } from '../../../src/inspector/model/index.ts';
import { At, Section } from '../parts/parts.tsx';
import { cursor, known, place, select } from '../store/state.ts';

const FEW = 12;

export function History({ line }: { readonly line: ActorLine }) {
  const [most, setMost] = useState(FEW);
  const until = line.records.count(place.value);
  const entries = line.records
    .slice(Math.max(0, until - most * 3), until)
    .filter((record, index, all) => !repeats(record, all[index - 1]))
    .slice(-most)
    .reverse();
  if (entries.length === 0) return null;
  return (
    <Section title="History" beside={cursor.value === LIVE ? undefined : 'until the cursor'}>
      <ol class="history">
        {entries.map((record) => (
          <li key={record.seq}>
            <button type="button" class="moment" onClick={() => select({ actor: line.address, record: record.seq })}>
              <At at={record.at} />
              <Entry record={record} />
            </button>
            <button
              type="button"
              class="go"
              title="Move the cursor here"
              aria-label="move the cursor here"
              onClick={() => {
                cursor.value = record.seq;
              }}
            >
              ↤
            </button>
          </li>
        ))}
      </ol>
      {until > most && entries.length >= most ? (
        <button type="button" class="link" onClick={() => setMost(most * 4)}>
          earlier
        </button>
      ) : null}
    </Section>
  );
}

/** True for the state record of the step before it. */
function repeats(record: TraceRecord, before: TraceRecord | undefined): boolean {
  return record.type === 'state' && before?.type === 'step' && before.active.join(' & ') === record.state;
}

function Entry({ record }: { readonly record: TraceRecord }) {
  switch (record.type) {
    case 'step':
      return record.handled ? (
        <span>
          <b>{eventName(known(), record.actor, record.event)}</b>
          {record.edges.length === 0 ? '' : ` → ${record.active.join(' & ') || record.status}`}
        </span>
      ) : (
        <span class="bad">
          <b>{eventName(known(), record.actor, record.event)}</b> was not handled
        </span>
      );
    case 'state':
      return <span>{record.state}</span>;
    case 'mail':
      return (
        <span class={record.fate === 'dropped' ? 'bad' : 'quiet'}>
          {record.name}
          {record.fate === undefined ? '' : ` (${record.fate})`}
        </span>
      );
    case 'timer':
      return (
        <span class="quiet">
          {eventName(known(), record.actor, record.event)} {record.due === undefined ? 'ended' : 'started'}
        </span>
      );
    case 'emit':
      return <span>emitted {record.event}</span>;
    case 'crashed':
      return <span class="bad">crashed: {record.error}</span>;
    case 'failed':
      return (
        <span class="bad">
          {record.element} failed: {record.error.split('\n', 1)}
        </span>
      );
    case 'gone':
      return <span>ended: {record.why}</span>;
    case 'created':
      return <span>started</span>;
    default:
      return <span>{record.type}</span>;
  }
}
