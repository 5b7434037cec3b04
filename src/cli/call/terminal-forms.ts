/** Answers the questions of a server: from `--answer`, or field by field on a terminal. */
import { openInBrowser } from '../../client/browser.ts';
import type { ElicitationForm, ElicitationPage, FormAnswer, PageAnswer } from '../../client/client-options.ts';
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { matchesWithin } from '../../core/schema/bounded.ts';
import { resolveReference } from '../../core/schema/object-shapes.ts';
import { TerminalLines } from '../terminal-lines.ts';
import { byKey, convert, readValue, type Word } from './call-arguments.ts';

export interface TerminalFormsOptions {
  /** The terminal; undefined if there is none. */
  readonly terminal: { readonly input: NodeJS.ReadableStream; readonly output: NodeJS.WritableStream } | undefined;
  /** The values of `--answer`. */
  readonly answers: readonly Word[];
  /** Opens pages in the browser. */
  readonly open: boolean;
  /** `--answer` does not fill a form, and there is no terminal to ask: the call must end. */
  mistake(text: string): void;
  /** Prints a line on stderr. */
  say(line: string): void;
  /** Ctrl-C on the terminal while a question is open. */
  interrupt(): void;
}

/** One field of a form, read from its schema. */
interface Field {
  readonly name: string;
  readonly title: string;
  readonly description: string | undefined;
  readonly required: boolean;
  readonly schema: JsonObject;
  /** The schema of the form, into which references point. */
  readonly root: JsonObject;
  readonly kind: 'text' | 'number' | 'boolean' | 'choice' | 'choices' | 'list';
  /** The values to choose from, with their titles. */
  readonly choices: readonly { readonly value: JsonValue; readonly title: string }[];
}

type Read = { readonly value: JsonValue | undefined } | { readonly problem: string };

export class TerminalForms {
  readonly #options: TerminalFormsOptions;
  /** TerminalForms are asked one after the other, also if the server asks several at once. */
  #turn: Promise<unknown> = Promise.resolve();
  /** The names of the fields of all forms. */
  readonly #asked = new Set<string>();

  constructor(options: TerminalFormsOptions) {
    this.#options = options;
  }

  /** Describes the answers whose field no form had; undefined if there are none. */
  get unused(): string | undefined {
    const keys = [...byKey(this.#options.answers).keys()].filter((key) => !this.#asked.has(key));
    if (keys.length === 0) return undefined;
    const fields = [...this.#asked].map((name) => visibleLine(name));
    const expected = fields.length === 0 ? 'it showed no form' : `expected ${fields.join(', ')}`;
    const named = keys.map((key) => `${visibleLine(key)}${suggestion(key, fields)}`).join(', ');
    return `troupe call: --answer: no question of the call has the field ${named}: ${expected}`;
  }

  form(form: ElicitationForm, signal: AbortSignal): Promise<FormAnswer> {
    return this.#inTurn(() => this.#form(form, signal));
  }

  page(page: ElicitationPage, signal: AbortSignal): Promise<PageAnswer> {
    return this.#inTurn(() => this.#page(page, signal));
  }

  #inTurn<T>(ask: () => Promise<T>): Promise<T> {
    const asked = this.#turn.then(ask);
    this.#turn = asked.catch(() => {});
    return asked;
  }

  async #form({ message, requestedSchema }: ElicitationForm, signal: AbortSignal): Promise<FormAnswer> {
    const { terminal, answers, say, mistake } = this.#options;
    const fields = fieldsOf(requestedSchema);
    for (const { name } of fields) this.#asked.add(name);
    const rejected = new Map<string, string>();
    const given: Record<string, JsonValue> = {};
    for (const [key, words] of byKey(answers)) {
      const field = fields.find(({ name }) => name === key);
      if (!field) continue;
      const read = readValue(words, field.schema, requestedSchema);
      const problem = 'problem' in read ? read.problem : problemOf(read.value, field);
      if ('value' in read && problem === undefined) given[key] = read.value;
      else
        rejected.set(
          key,
          `--answer ${visibleLine(key)}: ${problem}${'value' in read ? `, got ${words.map(({ text }) => text).join(', ')}` : ''}`,
        );
    }
    const open = fields.filter(({ name }) => !Object.hasOwn(given, name));
    const missing = open.filter(
      ({ name, required, schema }) => required && schema.default === undefined && !rejected.has(name),
    );
    if (answers.length > 0 && missing.length === 0 && rejected.size === 0) return given;
    if (!terminal) {
      const lacking = missing.length === 0 ? [] : [whyLacking(missing, answers, fields)];
      mistake(`troupe call: the form "${visibleLine(message)}": ${[...rejected.values(), ...lacking].join('; ')}`);
      // A refusal is the decision of a person.
      return 'cancel';
    }
    for (const problem of rejected.values()) say(`troupe call: ${problem}`);
    const lines = new TerminalLines(terminal.input, terminal.output, () => this.#options.interrupt());
    const abort = (): void => lines.close();
    signal.addEventListener('abort', abort, { once: true });
    try {
      lines.write(`${visibleLine(message)}\n`);
      lines.write('  (Ctrl-D declines; an empty answer takes the default, or leaves the field out)\n');
      for (const field of open) {
        const value = await ask(lines, field);
        if (value === END) return signal.aborted ? 'cancel' : 'decline';
        if (value !== undefined) given[field.name] = value;
      }
      return given;
    } finally {
      signal.removeEventListener('abort', abort);
      lines.close();
    }
  }

  async #page({ message, url }: ElicitationPage, signal: AbortSignal): Promise<PageAnswer> {
    const { terminal, say, open } = this.#options;
    // The whole address, before anything opens it (MCP elicitation, "Safe URL Handling").
    if (!terminal) {
      say(
        `troupe call: cancelled the page "${visibleLine(message)}", because there is no terminal: ${visibleLine(url)}`,
      );
      return 'cancel';
    }
    const lines = new TerminalLines(terminal.input, terminal.output, () => this.#options.interrupt());
    const abort = (): void => lines.close();
    signal.addEventListener('abort', abort, { once: true });
    try {
      lines.write(`${visibleLine(message)}\n  ${visibleLine(url)}\n`);
      const answer = await lines.question(
        open ? 'Open this page? [y/N] ' : 'Continue when you have opened this page? [y/N] ',
      );
      if (answer === undefined) return signal.aborted ? 'cancel' : 'decline';
      if (!/^y(es)?$/i.test(answer.trim())) return 'decline';
      if (open) openInBrowser(new URL(url), () => say('troupe call: cannot start a browser: open the page yourself'));
      return 'accept';
    } finally {
      signal.removeEventListener('abort', abort);
      lines.close();
    }
  }
}

/** The end of the input. */
const END = Symbol('end of input');

/** Asks for one field until the answer is valid. @returns {@link END} if the input ends */
async function ask(lines: TerminalLines, field: Field): Promise<JsonValue | undefined | typeof END> {
  for (const [at, { title }] of field.choices.entries()) lines.write(`  ${at + 1}) ${visibleLine(title)}\n`);
  for (;;) {
    const answer = await lines.question(promptOf(field));
    if (answer === undefined) return END;
    const read = readAnswer(field, answer.trim());
    if ('value' in read) return read.value;
    lines.write(`  ${read.problem}\n`);
  }
}

/** @example '  Size (1 to 3) [2]: ' */
function promptOf({ title, description, kind, schema, choices, required }: Field): string {
  const hint =
    kind === 'boolean'
      ? ' (y/n)'
      : kind === 'choice'
        ? ` (1 to ${choices.length})`
        : kind === 'choices'
          ? ` (1 to ${choices.length}, several with commas)`
          : kind === 'list'
            ? ' (several with commas)'
            : '';
  const about = description === undefined || description === title ? '' : `: ${visibleLine(description)}`;
  const fallback =
    schema.default === undefined ? (required ? '' : ' [none]') : ` [${defaultText(schema.default, kind, choices)}]`;
  return `  ${visibleLine(title)}${about}${hint}${fallback}: `;
}

function defaultText(value: JsonValue, kind: Field['kind'], choices: Field['choices']): string {
  if (kind === 'boolean') return value === true ? 'y' : 'n';
  const numbers = (Array.isArray(value) ? value : [value]).map(
    (each) => choices.findIndex((choice) => choice.value === each) + 1,
  );
  if (kind === 'choice' || kind === 'choices') return numbers.filter((number) => number > 0).join(',');
  return visibleLine(String(value));
}

/** Reads the answer to one field. */
function readAnswer(field: Field, answer: string): Read {
  const { kind, schema, root, choices, required } = field;
  if (answer === '') {
    if (schema.default !== undefined) return { value: schema.default };
    return required ? { problem: 'This field needs a value.' } : { value: undefined };
  }
  switch (kind) {
    case 'boolean':
      if (/^(y|yes|true)$/i.test(answer)) return { value: true };
      if (/^(n|no|false)$/i.test(answer)) return { value: false };
      return { problem: 'Expected y or n.' };
    case 'number': {
      const converted = convert(answer, { type: 'number' }, schema);
      return converted.ok ? checked(converted.value, field) : { problem: 'Expected a number.' };
    }
    case 'list': {
      const texts = answer.split(',').map((text) => ({ key: field.name, text: text.trim(), json: false }));
      const read = readValue(texts, schema, root);
      return 'value' in read ? checked(read.value, field) : { problem: capital(read.problem) };
    }
    case 'choice': {
      const chosen = choiceOf(answer, choices);
      return chosen ? { value: chosen.value } : { problem: `Expected a number from 1 to ${choices.length}.` };
    }
    case 'choices': {
      const chosen = answer.split(',').map((each) => choiceOf(each.trim(), choices));
      if (chosen.some((choice) => !choice))
        return { problem: `Expected numbers from 1 to ${choices.length}, with commas.` };
      return checked([...new Set(chosen.flatMap((choice) => (choice ? [choice.value] : [])))], field);
    }
    case 'text':
      return checked(answer, field);
  }
}

function checked(value: JsonValue, field: Field): Read {
  const problem = problemOf(value, field);
  return problem === undefined ? { value } : { problem: capital(problem) };
}

function capital(problem: string): string {
  return `${problem[0]?.toUpperCase()}${problem.slice(1)}.`;
}

function choiceOf(answer: string, choices: Field['choices']): Field['choices'][number] | undefined {
  return choices[Number(answer) - 1] ?? choices.find(({ value, title }) => value === answer || title === answer);
}

/** Describes why the schema of a field does not allow a value; undefined if it does. */
function problemOf(value: JsonValue, { kind, schema, choices }: Field): string | undefined {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, format, type } = schema;
  switch (kind) {
    case 'boolean':
      return typeof value === 'boolean' ? undefined : 'expected true or false';
    case 'choice':
      return choices.some((choice) => choice.value === value) ? undefined : 'expected one of the choices';
    case 'choices':
    case 'list': {
      if (!Array.isArray(value)) return 'expected a list';
      if (kind === 'choices' && !value.every((each) => choices.some((choice) => choice.value === each)))
        return 'expected some of the choices';
      if (typeof minItems === 'number' && value.length < minItems) return `expected at least ${minItems}`;
      return typeof maxItems === 'number' && value.length > maxItems ? `expected at most ${maxItems}` : undefined;
    }
    case 'number':
      if (typeof value !== 'number') return 'expected a number';
      if (type === 'integer' && !Number.isInteger(value)) return 'expected a whole number';
      if (typeof minimum === 'number' && value < minimum) return `expected at least ${minimum}`;
      return typeof maximum === 'number' && value > maximum ? `expected at most ${maximum}` : undefined;
    case 'text': {
      if (typeof value !== 'string') return 'expected a text';
      const { length } = [...value];
      if (typeof minLength === 'number' && length < minLength) return `expected at least ${minLength} characters`;
      if (typeof maxLength === 'number' && length > maxLength) return `expected at most ${maxLength} characters`;
      // A pattern that does not compile, or takes too long, is for the server to check.
      if (typeof pattern === 'string' && matchesWithin(pattern, value, PATTERN_MS) === false)
        return `expected a text that matches ${visibleLine(pattern)}`;
      const form = typeof format === 'string' && Object.hasOwn(FORMATS, format) ? FORMATS[format] : undefined;
      return form?.test(value) === false ? `expected the format ${visibleLine(String(format))}` : undefined;
    }
  }
}

/** The formats of MCP elicitation ("Requested Schema"). The server checks them in full. */
const FORMATS: Readonly<Record<string, RegExp>> = {
  email: /^[^\s@]+@[^\s@]+$/,
  uri: /^[a-z][a-z0-9+.-]*:\S+$/i,
  date: /^\d{4}-\d\d-\d\d$/,
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d/i,
};

/** Milliseconds for the pattern of a field: a server can send one that takes for ever. */
const PATTERN_MS = 250;

/** The fields of a form, in the order of its schema. */
function fieldsOf(form: JsonObject): Field[] {
  const needed: readonly unknown[] = Array.isArray(form.required) ? form.required : [];
  return Object.entries(isObject(form.properties) ? form.properties : {}).map(([name, value]) => {
    const schema = resolved(value, form);
    const { title, description, type } = schema;
    const choices = choicesOf(type === 'array' ? resolved(schema.items, form) : schema);
    const kind =
      type === 'array'
        ? choices.length > 0
          ? 'choices'
          : 'list'
        : choices.length > 0
          ? 'choice'
          : type === 'boolean'
            ? 'boolean'
            : type === 'number' || type === 'integer'
              ? 'number'
              : 'text';
    return {
      name,
      title: typeof title === 'string' ? title : name,
      description: typeof description === 'string' ? description : undefined,
      required: needed.includes(name),
      schema,
      root: form,
      kind,
      choices,
    };
  });
}

/** A schema with the members of the schema that it refers to, as Pydantic writes an enumeration. */
function resolved(value: unknown, form: JsonObject): JsonObject {
  if (!isJsonObject(value)) return {};
  const target = typeof value.$ref === 'string' ? resolveReference(value.$ref, form) : undefined;
  return isJsonObject(target) ? { ...target, ...value } : value;
}

function choicesOf({ enum: values, enumNames, oneOf, anyOf }: JsonObject): Field['choices'] {
  if (Array.isArray(values))
    return values.map((value, at) => {
      const name = Array.isArray(enumNames) ? enumNames[at] : undefined;
      return { value, title: typeof name === 'string' ? name : String(value) };
    });
  const list = Array.isArray(oneOf) ? oneOf : Array.isArray(anyOf) ? anyOf : [];
  return list.flatMap((each) =>
    isJsonObject(each) && each.const !== undefined
      ? [{ value: each.const, title: typeof each.title === 'string' ? each.title : String(each.const) }]
      : [],
  );
}

function whyLacking(missing: readonly Field[], answers: readonly Word[], fields: readonly Field[]): string {
  const unused = answers.filter(({ key }) => !fields.some(({ name }) => name === key));
  const meant = unused.map(
    ({ key }) =>
      `${key}${suggestion(
        key,
        missing.map(({ name }) => name),
      )}`,
  );
  const extra = meant.length === 0 ? '' : `; it has no field ${meant.join(', ')}`;
  return `--answer lacks ${missing.map(({ name }) => name).join(', ')}${extra}`;
}
