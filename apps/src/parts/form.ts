/** A form for the arguments of a tool. The server checks them: the form only helps to enter them. */
import type { Field } from '../../../src/features/asking/form-fields.ts';
import type { FormField } from '../../../src/features/asking/form-model.ts';
import { type Members, membersOf } from '../view/host-link.ts';
import { type Attributes, button, type Child, element, fill, quiet } from './dom.ts';
import { choiceName, isTranslated, labelled, memberName, reasonOf, word } from './words.ts';

/** One field: its element, and its value. */
interface FormEntry {
  readonly name: string;
  readonly element: HTMLElement;
  /** @returns undefined if nothing is entered */
  read(): unknown;
}

/** Does something for the person. @returns the reason why it failed */
type Act = (values: Members) => Promise<string | undefined>;

export interface Form {
  readonly element: HTMLFormElement;
  /** Sends the values, if they are valid. */
  send(): void;
  /** Does one thing at a time, and shows why it failed. */
  run(act: Act): Promise<void>;
}

/** @param values to begin with, instead of those of the fields */
export function formPart(
  fields: readonly FormField[],
  text: string,
  submit: Act,
  beside?: Child,
  values: Members = {},
): Form {
  const entries = entriesOf(fields, values);
  const problem = element('p', { class: 'problem', role: 'alert' });
  const run = async (act: Act): Promise<void> => {
    // A disabled button would lose the focus.
    if (form.ariaBusy === 'true') return;
    form.ariaBusy = 'true';
    let why: string | undefined;
    try {
      why = await act(readAll(entries));
      if (why === undefined) form.reset();
    } catch (error) {
      why = reasonOf(error);
    }
    fill(problem, why);
    form.ariaBusy = 'false';
  };
  // Many hosts frame a view without `allow-forms`: then the browser fires no `submit`.
  const send = (): void => {
    if (form.reportValidity()) void run(submit);
  };
  const form = element(
    'form',
    {
      onkeydown: (event) => {
        if (event.key !== 'Enter' || event.target.tagName !== 'INPUT') return;
        event.preventDefault();
        send();
      },
    },
    ...entries.map((entry) => entry.element),
    problem,
    element('div', { class: 'buttons' }, button(text, send, 'primary'), beside),
  );
  return { element: form, run, send };
}

function entriesOf(fields: readonly FormField[], values: Members): readonly FormEntry[] {
  return fields.map((field) => entryOf(field, values[field.name]));
}

function readAll(entries: readonly FormEntry[]): Members {
  return Object.fromEntries(
    entries.map((entry) => [entry.name, entry.read()]).filter(([, value]) => value !== undefined),
  );
}

let last = 0;

function entryOf(form: FormField, given: unknown): FormEntry {
  const { name, required, description } = form;
  const title = memberName(name, form.title);
  last += 1;
  const id = `field${last}`;
  // In a translation, the label stands for the description, too: that is in the language of the schema.
  const isSaid = description === title || (isTranslated() && labelled('members', name) !== undefined);
  const hint = isSaid ? undefined : quiet(description);
  if (hint) hint.id = `${id}hint`;
  const names = [title, !required && element('span', { class: 'quiet' }, ` ${word('optional')}`)];
  const group = (inner: readonly Node[], read: () => object): FormEntry => ({
    name,
    element: element('fieldset', {}, element('legend', {}, ...names), hint, ...inner),
    // An optional value without content is left out.
    read: () => (required || Object.keys(read()).length > 0 ? read() : undefined),
  });
  const box = (text: string, checked: boolean, at = 0) => {
    const input = element('input', { type: 'checkbox', id: id + at, checked });
    return { input, row: element('div', { class: 'check' }, input, element('label', { for: id + at }, text)) };
  };
  if (form.kind === 'group') {
    const entries = entriesOf(form.fields, membersOf(given));
    return group(
      entries.map((entry) => entry.element),
      () => readAll(entries),
    );
  }
  const field = form.kind === 'field' ? form.field : undefined;
  const initial = given ?? (field ?? ('initial' in form ? form : undefined))?.initial;
  if (field?.kind === 'flag') {
    const { input, row } = box(title, initial === true);
    return { name, element: element('div', {}, row, hint), read: () => input.checked };
  }
  if (field?.kind === 'several') {
    const chosen: readonly unknown[] = Array.isArray(initial) ? initial : [];
    const boxes = field.choices.map((choice, index) =>
      box(choiceName(name, choice.value, choice.title), chosen.includes(choice.value), index + 1),
    );
    return group(
      boxes.map(({ row }) => row),
      () => field.choices.flatMap(({ value }, index) => (boxes[index]?.input.checked ? [value] : [])),
    );
  }
  const isTexts = form.kind === 'texts';
  const { control, read } = controlOf(
    name,
    field,
    isTexts,
    { id, required, 'aria-describedby': hint?.id },
    initial === undefined || typeof initial === 'string'
      ? initial
      : isTexts && Array.isArray(initial)
        ? initial.join('\n')
        : JSON.stringify(initial),
  );
  return {
    name,
    element: element('div', { class: 'field' }, element('label', { for: id }, ...names), control, hint),
    read: () => (control.value.trim() === '' ? undefined : read(control.value)),
  };
}

type SingleField = Extract<Field, { kind: 'text' | 'number' | 'one' }>;

interface Control {
  readonly control: HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement;
  /** @throws {SyntaxError} for a text that is no JSON, which the form shows */
  read(text: string): unknown;
}

const TYPES: Readonly<Record<string, string>> = { email: 'email', uri: 'url', date: 'date' };

function controlOf(
  name: string,
  field: SingleField | undefined,
  isTexts: boolean,
  shared: Attributes,
  value?: string,
): Control {
  if (!field)
    return {
      control: element('textarea', { ...shared, placeholder: isTexts ? word('perLine') : 'JSON' }, value),
      read: (text) => (isTexts ? text.split('\n') : JSON.parse(text)),
    };
  if (field.kind === 'one')
    return {
      control: element(
        'select',
        shared,
        // Empty, so that a person chooses.
        value === undefined && element('option', { value: '' }, word('choose')),
        ...field.choices.map((choice) =>
          element(
            'option',
            { value: choice.value, selected: choice.value === value },
            choiceName(name, choice.value, choice.title),
          ),
        ),
      ),
      read: String,
    };
  const kind =
    field.kind === 'number'
      ? { type: 'number', min: field.minimum, max: field.maximum, step: field.type === 'number' && 'any' }
      : { type: TYPES[field.format ?? ''], minlength: field.minLength, maxlength: field.maxLength };
  return {
    control: element('input', { ...shared, ...kind, value }),
    read: field.kind === 'number' ? Number : String,
  };
}
