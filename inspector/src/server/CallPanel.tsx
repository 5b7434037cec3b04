/** The part of an element's page that uses it: its form, the client that sends it, the newest result, earlier calls. */
import { signal } from '@preact/signals';
import { useRef, useState } from 'preact/hooks';
import type { CallRequest } from '../../../src/inspector/calls/call-messages.ts';
import type { CatalogueElement, Plain } from '../../../src/inspector/frames.ts';
import { isList, isRecord, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';
import { Section } from '../parts/parts.tsx';
import { hasServer } from '../store/source.ts';
import { connection } from '../store/state.ts';
import { CallerChoice } from './CallerChoice.tsx';
import { CallList } from './CallList.tsx';
import { CallView } from './CallView.tsx';
import { caller, calls, mayCall, nameOf, start, watch } from './calls.ts';
import { Form, valuesOf } from './Form.tsx';
import type { Values } from './fields.ts';
import { NamedForm, type Texts } from './NamedForm.tsx';
import type { OfferKind } from './offers.ts';

type Kind = Exclude<OfferKind, 'machine'>;

interface CallPanelProps {
  readonly kind: Kind;
  readonly element: CatalogueElement;
}

/** The entered values of each element: they are still there when the reader comes back. */
const entered = new Map<string, Values>();
/** The calls that were chosen in a list of earlier calls, by element. */
const chosen = signal<{ readonly [element: string]: number }>({});

const VERBS = { tool: 'Call', resource: 'Read', template: 'Read', prompt: 'Get' } as const;

export function CallPanel({ kind, element }: CallPanelProps) {
  if (connection.value.state === 'recording' || !hasServer()) return null;
  if (!mayCall())
    return (
      <p class="note quiet">
        This page only shows. Start the server with <code>troupe dev</code>, with <code>--inspect-control</code>, or
        with <code>openInspector(server, {'{ control: true }'})</code>, to {VERBS[kind].toLowerCase()} it from here.
      </p>
    );
  return <Panel kind={kind} element={element} />;
}

function Panel({ kind, element }: CallPanelProps) {
  const { name, definition } = element;
  const key = `${kind} ${name}`;
  const schema = member(definition, 'inputSchema') ?? {};
  const [values, setValues] = useState<Values>(() => entered.get(key) ?? (kind === 'tool' ? valuesOf(schema) : {}));
  const [invalid, setInvalid] = useState<string | undefined>(undefined);
  const [asTask, setAsTask] = useState(false);
  const place = useRef<HTMLDivElement>(null);
  const set = (next: Values): void => {
    entered.set(key, next);
    setValues(next);
  };
  const mine = (calls.value?.calls ?? []).filter(({ request }) => isOf(request, kind, name));
  const shown = mine.find(({ id }) => id === chosen.value[key]) ?? mine[0];
  const watched = calls.value?.watched.includes(name) === true;
  const send = (): void => {
    if (invalid !== undefined) return;
    const { [key]: _, ...others } = chosen.value;
    chosen.value = others;
    // In a narrow window, the result is below the form.
    void start(requestOf(kind, name, values, asTask)).then(() => place.current?.scrollIntoView({ block: 'nearest' }));
  };
  const mayBeTask =
    textOfValue(member(definition, 'execution', 'taskSupport')) === 'optional' && caller.value.revision !== undefined;
  return (
    <div class="use">
      <form
        class="use-form"
        aria-label={`${VERBS[kind]} ${name}`}
        onSubmit={(event) => {
          event.preventDefault();
          send();
        }}
        onKeyDown={(event) => {
          if (event.key !== 'Enter' || !(event.ctrlKey || event.metaKey)) return;
          event.preventDefault();
          send();
        }}
      >
        {kind === 'tool' ? (
          <Form schema={schema} values={values} onValues={set} onInvalid={setInvalid} />
        ) : kind === 'resource' ? null : (
          <NamedForm
            reference={kind === 'prompt' ? { prompt: name } : { resource: name }}
            arguments={argumentsOf(kind, element)}
            completes={element.completes ?? []}
            values={textsOf(values)}
            onValues={set}
          />
        )}
        {invalid === undefined ? null : (
          <p class="bad" role="alert">
            {invalid}
          </p>
        )}
        <p class="buttons">
          <button type="submit" class="primary" disabled={invalid !== undefined} title="Ctrl+Enter">
            {VERBS[kind]}
          </button>
          {kind === 'resource' ? (
            <button type="button" aria-pressed={watched} onClick={() => void watch(name, !watched)}>
              {watched ? 'Stop watching' : 'Watch for changes'}
            </button>
          ) : null}
          {mayBeTask ? (
            <label class="check">
              <input
                type="checkbox"
                checked={asTask}
                onChange={({ currentTarget }) => setAsTask(currentTarget.checked)}
              />
              as a task
            </label>
          ) : null}
        </p>
        <CallerChoice />
      </form>
      <div class="use-result" ref={place}>
        {shown ? <CallView call={shown} /> : <p class="beside use-none">The result appears here.</p>}
        {mine.length < 2 ? null : (
          <Section title="Calls made here" beside={String(mine.length)}>
            <CallList
              calls={mine}
              chosen={shown?.id}
              onChoose={({ id }) => {
                chosen.value = { ...chosen.value, [key]: id };
              }}
            />
          </Section>
        )}
      </div>
    </div>
  );
}

function isOf(request: CallRequest, kind: Kind, name: string): boolean {
  return request.kind === kind && nameOf(request) === name;
}

function requestOf(kind: Kind, name: string, values: Values, task: boolean): CallRequest {
  switch (kind) {
    case 'tool':
      return { kind, name, arguments: values, ...(task ? { task } : {}) };
    case 'resource':
      return { kind, uri: name };
    case 'template':
      return { kind, template: name, variables: textsOf(values) };
    case 'prompt':
      return { kind, name, arguments: textsOf(values) };
  }
}

function textsOf(values: Values): Texts {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, String(value)]));
}

/** The arguments that have no schema: those of a prompt, and the variables of a template. */
export function argumentsOf(kind: Kind, { name, definition }: CatalogueElement) {
  if (kind === 'template')
    return variablesOf(name).map((variable) => ({
      name: variable,
      title: undefined,
      description: undefined,
      required: false,
    }));
  const listed: Plain | undefined = member(definition, 'arguments');
  return (isList(listed) ? listed : []).filter(isRecord).map((argument) => ({
    name: textOfValue(argument.name) ?? '',
    title: textOfValue(argument.title),
    description: textOfValue(argument.description),
    required: argument.required === true,
  }));
}

/** The names of the variables of a URI template (RFC 6570, section 2.3). */
function variablesOf(template: string): readonly string[] {
  const names = [...template.matchAll(/\{[+#./;?&]?([^{}]*)\}/g)].flatMap(([, list = '']) =>
    list.split(',').map((name) => name.replace(/[*]$|:\d+$/, '')),
  );
  return [...new Set(names)];
}
