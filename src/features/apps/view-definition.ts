/** The data of a generated page, which the server puts into it: the same for every user. Types only. */
import type { FormField } from '../asking/form-model.ts';
import type { Translations, ViewTexts } from './view-texts.ts';

/** The page has a placeholder for the JSON of its definition, and one for the picture of a chart (apps/build.ts). */
export type ViewDefinition = MachinePage | ToolPage;

interface Common {
  /** The name of the server. */
  readonly server: string;
  readonly title: string;
}

/** The page of a machine: one instance, and the events that it accepts. */
export interface MachinePage extends Common {
  readonly kind: 'machine';
  /** The name of the machine. */
  readonly machine: string;
  /** The paths of its states, such as `waiting.reminders`. */
  readonly states: readonly string[];
  readonly texts: ViewTexts;
  readonly translations: Translations;
  readonly events: readonly ViewEvent[];
  /** The names of the tools that wait for a change and answer a question. */
  readonly watch: string;
  readonly answer: string;
  /** The name of the tool that shows an instance, for hosts that proxy neither `watch` nor reads. */
  readonly get: string;
  /** The template of the address of an instance: `troupe://order/{handle}`. */
  /** The argument of the tools that has the handle, or the key in its place; the empty text if they take none. */
  readonly address: string;
  readonly uri: string;
}

/** An event that a person may send, by a tool. */
export interface ViewEvent {
  readonly name: string;
  readonly tool: string;
  /** The title of its schema. */
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  /** Arguments of the tool besides `handle`. */
  readonly fields: readonly FormField[];
  /** Arguments that every call has, such as the event's name for a machine with a single tool. */
  readonly fixed?: Readonly<Record<string, string>> | undefined;
  /** True for the end of an instance, which is offered while the instance is active. */
  readonly always?: true | undefined;
  /** True if the page asks again before it sends the event. */
  readonly confirm: boolean;
}

/** The page of a tool: a form and its result. */
export interface ToolPage extends Common {
  readonly kind: 'tool';
  readonly tool: string;
  readonly description?: string | undefined;
  readonly fields: readonly FormField[];
  /** The titles of members of the result, at any depth, by their names. */
  readonly output: Readonly<Record<string, string>>;
}
