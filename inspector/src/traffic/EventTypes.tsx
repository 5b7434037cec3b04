/** The event types of the server: how many events, how often, what is kept, who listens; and a form for a test event. */
import { useState } from 'preact/hooks';
import type { EventForm, EventTypeLine } from '../../../src/inspector/traffic/traffic-messages.ts';
import { At } from '../parts/parts.tsx';
import { plural } from '../parts/time.ts';
import { Form, valuesOf } from '../server/Form.tsx';
import type { Values } from '../server/fields.ts';
import { say } from '../store/state.ts';
import { act, clockOf, formOf, mayAct, reasonOf } from './traffic.ts';

const UNITS = ['bytes', 'KiB', 'MiB', 'GiB'] as const;

/** @example sizeOf(1_536) // '1.5 KiB' */
function sizeOf(bytes: number): string {
  const power = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  return `${(bytes / 1_024 ** power).toFixed(power === 0 ? 0 : 1)} ${UNITS[power]}`;
}

export function EventTypes({ types }: { readonly types: readonly EventTypeLine[] }) {
  const [form, setForm] = useState<EventForm>();
  const open = async (name: string): Promise<void> => {
    try {
      setForm(await formOf(name));
    } catch (error) {
      say(reasonOf(error));
    }
  };
  return (
    <section aria-labelledby="events-types">
      <header class="overview-head">
        <h2 id="events-types">Event types</h2>
        <span class="tally">{types.length}</span>
      </header>
      <table class="types-table">
        <thead>
          <tr>
            <th scope="col">type</th>
            <th scope="col">newest</th>
            <th scope="col">rate</th>
            <th scope="col">kept</th>
            <th scope="col">listeners</th>
            {mayAct() ? <th scope="col">act</th> : null}
          </tr>
        </thead>
        <tbody>
          {types.map((type) => (
            <TypeRow
              key={type.name}
              type={type}
              isOpen={form?.name === type.name}
              onForm={(wanted) => (wanted ? void open(type.name) : setForm(undefined))}
            />
          ))}
        </tbody>
      </table>
      {form ? <TestEvent key={form.name} form={form} /> : null}
    </section>
  );
}

interface TypeRowProps {
  readonly type: EventTypeLine;
  /** True while its form is shown. */
  readonly isOpen: boolean;
  readonly onForm: (open: boolean) => void;
}

function TypeRow({ type, isOpen, onForm }: TypeRowProps) {
  const { name, description, by, topics, head, newestAt, retained, bytes, perMinute, streams, webhooks } = type;
  return (
    <tr>
      <th scope="row">
        <span class="cell-main">
          <b class="cut mono" title={name}>
            {name}
          </b>
        </span>
        <span class="cell-beside" title={description}>
          {description}
        </span>
      </th>
      <td>
        <span class="cell-main">
          {head === undefined ? '–' : head === 0 ? 'none yet' : `#${head.toLocaleString('en')}`}
        </span>
        <span class="cell-beside">{newestAt === undefined ? null : <At at={clockOf(newestAt)} precise={false} />}</span>
      </td>
      <td>
        <span class="cell-main">{perMinute.toLocaleString('en')} / min</span>
      </td>
      <td>
        <span class="cell-main">{plural(retained, 'event')}</span>
        <span class="cell-beside" title={by === undefined ? undefined : `a topic for each ${by}`}>
          {by === undefined ? sizeOf(bytes) : `${plural(topics, 'topic')}, ${sizeOf(bytes)}`}
        </span>
      </td>
      <td>
        <span class="cell-main">{plural(webhooks, 'webhook')}</span>
        <span class="cell-beside">{plural(streams, 'stream')}</span>
      </td>
      {mayAct() ? (
        <td>
          <p class="buttons">
            <button type="button" aria-expanded={isOpen} onClick={() => onForm(!isOpen)}>
              {isOpen ? 'Close' : 'Test event'}
            </button>
          </p>
        </td>
      ) : null}
    </tr>
  );
}

function TestEvent({ form: { name, payload } }: { readonly form: EventForm }) {
  const [values, setValues] = useState<Values>(() => valuesOf(payload));
  const [invalid, setInvalid] = useState<string | undefined>(undefined);
  return (
    <form
      class="question"
      aria-label={`test event of ${name}`}
      onSubmit={(event) => {
        event.preventDefault();
        if (invalid === undefined) void act({ action: 'emit', event: name, data: values });
      }}
    >
      <p class="question-head">
        <b class="mono">{name}</b> All subscribers get this event as any other one.
      </p>
      <Form schema={payload} values={values} onValues={setValues} onInvalid={setInvalid} />
      {invalid === undefined ? null : (
        <p class="bad" role="alert">
          {invalid}
        </p>
      )}
      <p class="buttons">
        <button type="submit" class="primary" disabled={invalid !== undefined}>
          Emit
        </button>
      </p>
    </form>
  );
}
