/** The schedules of the server and of its machines: their dates, the next slot, the last run; and a run by hand. */
import { useId, useState } from 'preact/hooks';
import type { ScheduleLine } from '../../../src/inspector/traffic/traffic-messages.ts';
import { At, Left } from '../parts/parts.tsx';
import { duration } from '../parts/time.ts';
import { now } from '../store/state.ts';
import { act, clockOf, mayAct } from './traffic.ts';

export function Schedules({ schedules }: { readonly schedules: readonly ScheduleLine[] }) {
  return (
    <section aria-labelledby="events-schedules">
      <header class="overview-head">
        <h2 id="events-schedules">Schedules</h2>
        <span class="tally">{schedules.length}</span>
      </header>
      <table class="schedules-table">
        <thead>
          <tr>
            <th scope="col">schedule</th>
            <th scope="col">dates</th>
            <th scope="col">next</th>
            <th scope="col">last run</th>
            {mayAct() ? <th scope="col">act</th> : null}
          </tr>
        </thead>
        <tbody>
          {schedules.map((schedule) => (
            <ScheduleRow key={`${schedule.machine ?? ''} ${schedule.name}`} schedule={schedule} />
          ))}
        </tbody>
      </table>
    </section>
  );
}

function ScheduleRow({ schedule }: { readonly schedule: ScheduleLine }) {
  const { name, machine, event, state, dates, missed, running, last } = schedule;
  const failed = last?.incident !== undefined;
  return (
    <tr class={failed ? 'failed' : running === undefined ? '' : 'busy'}>
      <th scope="row">
        <span class="cell-main">
          <b class="cut" title={name}>
            {name}
          </b>
        </span>
        <span class="cell-beside">{machine === undefined ? state : `${event} to each ${machine}`}</span>
      </th>
      <td>
        <span class="cell-main">
          <span class="cut mono" title={dates}>
            {dates}
          </span>
        </span>
        <span class="cell-beside">missed: {missed}</span>
      </td>
      <td class="cell-until">
        <Next schedule={schedule} />
      </td>
      <td>
        {last === undefined ? (
          <span class="beside">–</span>
        ) : (
          <>
            <span class={`cell-main${failed ? ' bad' : ''}`}>
              <At at={clockOf(last.began)} precise={false} /> {failed ? 'failed' : 'done'}
            </span>
            <span class="cell-beside" title={last.incident}>
              {duration(last.tookMs)}
              {last.manual ? ', by hand' : ''}
              {failed ? `, incident ${last.incident}` : ''}
            </span>
          </>
        )}
      </td>
      {mayAct() ? (
        <td>
          <p class="buttons">
            <RunNow schedule={schedule} />
          </p>
        </td>
      ) : null}
    </tr>
  );
}

/** The next slot; one that is overdue says by how much. */
function Next({ schedule: { next, running } }: { readonly schedule: ScheduleLine }) {
  if (running !== undefined)
    return (
      <>
        <span class="cell-main">runs now</span>
        <span class="cell-beside">
          slot of <At at={clockOf(running)} precise={false} />
        </span>
      </>
    );
  if (next === undefined) return <span class="beside">–</span>;
  const until = clockOf(next);
  return (
    <>
      {until < now.value ? (
        <span class="cell-main bad">late by {duration(now.value - until)}</span>
      ) : (
        <Left until={until} />
      )}
      <span class="cell-beside">{new Date(next).toISOString().slice(5, 16).replace('T', ' ')} UTC</span>
    </>
  );
}

function RunNow({ schedule: { name, machine, instances = [] } }: { readonly schedule: ScheduleLine }) {
  const id = useId();
  const [written, setWritten] = useState<string>();
  const instance = written ?? instances[0] ?? '';
  if (machine === undefined)
    return (
      <button type="button" onClick={() => void act({ action: 'run', schedule: name })}>
        Run now
      </button>
    );
  return (
    <>
      <input
        list={id}
        class="mono"
        aria-label={`key or handle of a ${machine}`}
        placeholder="key or handle"
        value={instance}
        onInput={({ currentTarget }) => setWritten(currentTarget.value)}
      />
      <datalist id={id}>
        {instances.map((each) => (
          <option key={each} value={each} />
        ))}
      </datalist>
      <button
        type="button"
        disabled={instance === ''}
        onClick={() => void act({ action: 'run', schedule: name, machine, instance })}
      >
        Run now
      </button>
    </>
  );
}
