/** The journal of the run of a script, in its order. Each entry moves the cursor. */
import type { JournalKind, Plain } from '../../../src/inspector/frames.ts';
import { member, type ScriptLane, valueLine } from '../../../src/inspector/model/index.ts';
import { At } from '../parts/parts.tsx';
import { plural } from '../parts/time.ts';
import { cursor, known } from '../store/state.ts';

export function JournalList({ lane }: { readonly lane: ScriptLane }) {
  const epoch = known().hello?.epoch ?? 0;
  return (
    <details class="section script-journal">
      <summary>
        Journal{' '}
        <span class="beside">
          {plural(lane.entries.length, 'entry', 'entries')}
          {lane.missing > 0 ? `, ${lane.missing} earlier ones are not known` : ''}
          {lane.engine === undefined ? '' : `, by ${lane.engine}`}
        </span>
      </summary>
      <ol>
        {lane.entries.map(({ index, seq, date, what, call, name, data }) => (
          <li key={index}>
            <button
              type="button"
              class="moment"
              title="Move the cursor here"
              onClick={() => {
                cursor.value = seq;
              }}
            >
              <span class="script-figure">{date === undefined ? '–' : <At at={date - epoch} />}</span>
              <span>
                <b>{what}</b> {call === undefined ? '' : `call ${call} `}
                {name === undefined ? null : <span class="mono">{name} </span>}
                <Data what={what} data={data} />
              </span>
            </button>
          </li>
        ))}
      </ol>
    </details>
  );
}

function Data({ what, data }: { readonly what: JournalKind; readonly data: Plain | undefined }) {
  if (data === undefined || what === 'begun') return null;
  const due = member(data, 'due');
  if (typeof due === 'number')
    return (
      <span class="beside">
        until <At at={due - (known().hello?.epoch ?? 0)} />
      </span>
    );
  return <span class="mono beside">{valueLine(member(data, 'value') ?? member(data, 'error') ?? data)}</span>;
}
