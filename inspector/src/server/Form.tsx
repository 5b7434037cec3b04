/** A form for a JSON Schema, with the same values as JSON. */
import { useId, useState } from 'preact/hooks';
import type { Plain } from '../../../src/inspector/frames.ts';
import { isList, isRecord } from '../../../src/inspector/model/plain-values.ts';
import { objectOf } from '../detail/events.ts';
import {
  alternativeOf,
  alternativesOf,
  type FormField,
  fieldsOf,
  initialValues,
  numberOf,
  type Values,
  withValue,
} from './fields.ts';

export interface FormProps {
  readonly schema: Plain;
  readonly values: Values;
  readonly onValues: (values: Values) => void;
  /** The form contains text that is no JSON, so that its values are not complete. */
  readonly onInvalid: (why: string | undefined) => void;
}

/** The values that the form of a schema starts with. */
export function valuesOf(schema: Plain): Values {
  const [first] = alternativesOf(schema);
  return initialValues(fieldsOf(schema, first?.schema ?? schema));
}

export function Form({ schema, values, onValues, onInvalid }: FormProps) {
  const alternatives = alternativesOf(schema);
  const [chosen, setChosen] = useState(() => alternativeOf(alternatives, values));
  const fields = fieldsOf(schema, alternatives[chosen]?.schema ?? schema);
  const choose = (index: number): void => {
    const next = fieldsOf(schema, alternatives[index]?.schema ?? schema);
    const initial = initialValues(next);
    const kept = next.flatMap(({ name }) => {
      const value = values[name];
      return value === undefined || initial[name] !== undefined ? [] : [[name, value] as const];
    });
    setChosen(index);
    onInvalid(undefined);
    onValues({ ...initial, ...Object.fromEntries(kept) });
  };
  const [json, setJson] = useState<string | undefined>(fields.length === 0 && !isEmpty(schema) ? '{}' : undefined);
  const id = useId();
  const turn = (): void => {
    onInvalid(undefined);
    setJson(json === undefined ? JSON.stringify(values, null, 2) : undefined);
  };
  if (fields.length === 0 && isEmpty(schema)) return <p class="beside">It takes no arguments.</p>;
  return (
    <div class="form">
      {json !== undefined || alternatives.length < 2 ? null : (
        <div class="form-field form-of">
          <label for={`${id}-of`}>one of {alternatives.length}</label>
          <select
            id={`${id}-of`}
            value={String(chosen)}
            onChange={({ currentTarget }) => choose(Number(currentTarget.value))}
          >
            {alternatives.map(({ name }, index) => (
              <option key={name} value={String(index)}>
                {name}
              </option>
            ))}
          </select>
        </div>
      )}
      {json === undefined ? (
        <Fields key={chosen} fields={fields} values={values} onValues={onValues} onInvalid={onInvalid} />
      ) : (
        <div class="form-field">
          <label for={id}>arguments, as JSON</label>
          <textarea
            id={id}
            class="mono"
            rows={8}
            spellcheck={false}
            value={json}
            onInput={({ currentTarget }) => {
              setJson(currentTarget.value);
              const read = objectOf(currentTarget.value);
              onInvalid(typeof read === 'string' ? read : undefined);
              if (typeof read !== 'string') onValues(read);
            }}
          />
        </div>
      )}
      {fields.length === 0 ? null : (
        <button type="button" class="link form-turn" aria-pressed={json !== undefined} onClick={turn}>
          {json === undefined ? 'Enter as JSON' : 'Enter in fields'}
        </button>
      )}
    </div>
  );
}

function isEmpty(schema: Plain): boolean {
  return (
    isRecord(schema) && (schema.type === 'object' || schema.type === undefined) && schema.additionalProperties === false
  );
}

interface FieldsProps extends Omit<FormProps, 'schema'> {
  readonly fields: readonly FormField[];
}

function Fields({ fields, values, onValues, onInvalid }: FieldsProps) {
  return (
    <div class="form-fields">
      {fields.map((field) => (
        <One
          key={field.name}
          field={field}
          value={values[field.name]}
          onValue={(value) => onValues(withValue(values, field.name, value))}
          onInvalid={onInvalid}
        />
      ))}
    </div>
  );
}

interface OneProps {
  readonly field: FormField;
  readonly value: Plain | undefined;
  readonly onValue: (value: Plain | undefined) => void;
  readonly onInvalid: FormProps['onInvalid'];
}

function One({ field, value, onValue, onInvalid }: OneProps) {
  const id = useId();
  const label = (
    <>
      <span class="form-name">{field.title ?? field.name}</span>
      {field.title === undefined ? null : <span class="beside mono">{field.name}</span>}
      {field.required ? <span class="schema-required">required</span> : null}
    </>
  );
  if (field.kind === 'group')
    return (
      <fieldset class="form-group">
        <legend>{label}</legend>
        {field.description === undefined ? null : <p class="form-hint">{field.description}</p>}
        <Fields
          fields={field.fields}
          values={isRecord(value) ? value : {}}
          onValues={(next) => onValue(Object.keys(next).length === 0 && !field.required ? undefined : next)}
          onInvalid={onInvalid}
        />
      </fieldset>
    );
  return (
    <div class="form-field">
      <label for={id}>{label}</label>
      {field.kind === 'texts' ? (
        <Texts id={id} value={value} onValue={onValue} />
      ) : field.kind !== 'field' ? (
        <JsonInput id={id} name={field.name} value={value} onValue={onValue} onInvalid={onInvalid} />
      ) : (
        <Input id={id} field={field.field} required={field.required} value={value} onValue={onValue} />
      )}
      {field.description === undefined ? null : <p class="form-hint">{field.description}</p>}
    </div>
  );
}

/** A list of texts, one on each line. */
function Texts({ id, value, onValue }: Omit<OneProps, 'field' | 'onInvalid'> & { id: string }) {
  const [text, setText] = useState(isList(value) ? value.join('\n') : '');
  return (
    <textarea
      id={id}
      rows={2}
      placeholder="one on each line"
      value={text}
      onInput={({ currentTarget }) => {
        setText(currentTarget.value);
        const lines = currentTarget.value.split('\n').filter((line) => line !== '');
        onValue(lines.length === 0 ? undefined : lines);
      }}
    />
  );
}

function JsonInput({ id, name, value, onValue, onInvalid }: Omit<OneProps, 'field'> & { id: string; name: string }) {
  const [text, setText] = useState(value === undefined ? '' : JSON.stringify(value));
  return (
    <textarea
      id={id}
      class="mono"
      rows={1}
      spellcheck={false}
      placeholder="JSON"
      value={text}
      onInput={({ currentTarget }) => {
        setText(currentTarget.value);
        if (currentTarget.value.trim() === '') {
          onInvalid(undefined);
          return onValue(undefined);
        }
        try {
          onValue(JSON.parse(currentTarget.value));
          onInvalid(undefined);
        } catch {
          onInvalid(`“${name}” is not JSON.`);
        }
      }}
    />
  );
}

interface InputProps {
  readonly id: string;
  readonly field: Extract<FormField, { kind: 'field' }>['field'];
  readonly required: boolean;
  readonly value: Plain | undefined;
  readonly onValue: (value: Plain | undefined) => void;
}

function Input({ id, field, required, value, onValue }: InputProps) {
  const text = value === undefined ? '' : typeof value === 'string' ? value : JSON.stringify(value);
  const set = (next: string): void => onValue(next === '' ? undefined : next);
  switch (field.kind) {
    case 'text':
      return field.format === 'date' ? (
        <input id={id} type="date" value={text} onInput={({ currentTarget }) => set(currentTarget.value)} />
      ) : (
        <textarea
          id={id}
          rows={1}
          value={text}
          placeholder={field.format === 'date-time' ? '2026-01-31T12:00:00Z' : field.format}
          onInput={({ currentTarget }) => set(currentTarget.value)}
        />
      );
    case 'number':
      return (
        <input
          id={id}
          inputMode={field.type === 'integer' ? 'numeric' : 'decimal'}
          value={text}
          placeholder={bounds(field.minimum, field.maximum)}
          onInput={({ currentTarget }) =>
            onValue(currentTarget.value === '' ? undefined : numberOf(currentTarget.value))
          }
        />
      );
    case 'flag':
      return (
        <select
          id={id}
          value={text}
          onChange={({ currentTarget }) =>
            onValue(currentTarget.value === '' ? undefined : currentTarget.value === 'true')
          }
        >
          <option value="">{required ? 'choose' : 'not set'}</option>
          <option value="true">yes</option>
          <option value="false">no</option>
        </select>
      );
    case 'one':
      return (
        <select id={id} value={text} onChange={({ currentTarget }) => set(currentTarget.value)}>
          <option value="">{required ? 'choose' : 'not set'}</option>
          {field.choices.map((choice) => (
            <option key={choice.value} value={choice.value}>
              {choice.title ?? choice.value}
            </option>
          ))}
        </select>
      );
    case 'several': {
      const chosen: readonly Plain[] = isList(value) ? value : [];
      return (
        <fieldset class="form-choices" id={id}>
          <legend class="unseen">choose any number</legend>
          {field.choices.map((choice) => (
            <label key={choice.value}>
              <input
                type="checkbox"
                checked={chosen.includes(choice.value)}
                onChange={({ currentTarget }) => {
                  const next = currentTarget.checked
                    ? [...chosen, choice.value]
                    : chosen.filter((each) => each !== choice.value);
                  onValue(next.length === 0 && !required ? undefined : next);
                }}
              />
              {choice.title ?? choice.value}
            </label>
          ))}
        </fieldset>
      );
    }
  }
}

function bounds(minimum: number | undefined, maximum: number | undefined): string | undefined {
  if (minimum === undefined && maximum === undefined) return undefined;
  return `${minimum ?? '…'} to ${maximum ?? '…'}`;
}
