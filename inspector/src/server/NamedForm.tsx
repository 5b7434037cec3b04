/** The arguments of a prompt, or the variables of a template: texts, with the values that the server suggests. */
import { useEffect, useId, useState } from 'preact/hooks';
import { complete } from './calls.ts';

export interface NamedArgument {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly required: boolean;
}

export type Texts = { readonly [name: string]: string };

export interface NamedFormProps {
  readonly reference: { readonly prompt: string } | { readonly resource: string };
  readonly arguments: readonly NamedArgument[];
  readonly completes: readonly string[];
  readonly values: Texts;
  readonly onValues: (values: Texts) => void;
}

/** Milliseconds without a key until the server is asked. */
const SETTLED_MS = 200;

export function NamedForm({ reference, arguments: listed, completes, values, onValues }: NamedFormProps) {
  if (listed.length === 0) return <p class="beside">It takes no arguments.</p>;
  return (
    <div class="form form-fields">
      {listed.map((argument) => (
        <Argument
          key={argument.name}
          argument={argument}
          reference={completes.includes(argument.name) ? reference : undefined}
          values={values}
          onValue={(value) => {
            const { [argument.name]: _, ...rest } = values;
            onValues(value === '' ? rest : { ...rest, [argument.name]: value });
          }}
        />
      ))}
    </div>
  );
}

interface ArgumentProps {
  readonly argument: NamedArgument;
  readonly reference: NamedFormProps['reference'] | undefined;
  readonly values: Texts;
  readonly onValue: (value: string) => void;
}

function Argument({ argument: { name, title, description, required }, reference, values, onValue }: ArgumentProps) {
  const id = useId();
  const [offered, setOffered] = useState<readonly string[]>([]);
  const [asked, setAsked] = useState(false);
  const value = values[name] ?? '';
  const others = JSON.stringify({ ...values, [name]: undefined });
  useEffect(() => {
    if (!reference || !asked) return undefined;
    const timer = setTimeout(() => {
      void complete(reference, { name, value }, JSON.parse(others)).then(setOffered);
    }, SETTLED_MS);
    return () => clearTimeout(timer);
  }, [value, others, asked]);
  return (
    <div class="form-field">
      <label for={id}>
        <span class="form-name">{title ?? name}</span>
        {title === undefined ? null : <span class="beside mono">{name}</span>}
        {required ? <span class="schema-required">required</span> : null}
      </label>
      {reference ? (
        <>
          <input
            id={id}
            list={`${id}-values`}
            value={value}
            autocomplete="off"
            placeholder="the server suggests values"
            onFocus={() => setAsked(true)}
            onInput={({ currentTarget }) => onValue(currentTarget.value)}
          />
          <datalist id={`${id}-values`}>
            {offered.map((each) => (
              <option key={each} value={each} />
            ))}
          </datalist>
        </>
      ) : (
        <textarea id={id} rows={1} value={value} onInput={({ currentTarget }) => onValue(currentTarget.value)} />
      )}
      {description === undefined ? null : <p class="form-hint">{description}</p>}
    </div>
  );
}
