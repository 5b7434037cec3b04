/** The open questions of an instance: forms for the person, links, and those that others answer. */

import { withValues } from '../../../src/features/apps/view-texts.ts';
import { button, element, type Part, quiet, section } from '../parts/dom.ts';
import { formPart } from '../parts/form.ts';
import { labelled, word, words } from '../parts/words.ts';
import type { Connection } from '../view/connection.ts';
import { type Members, membersOf } from '../view/host-link.ts';
import type { Question } from './instance.ts';

/** Sends an answer (MCP 2025-11-25 client/elicitation, "Response Actions"). @returns the reason why it was not accepted */
type Send = (id: string, action: 'accept' | 'decline', content?: Members) => Promise<string | undefined>;

/** @param onNew gets the message of each question that was not open before */
export function questionsPart(
  view: Connection,
  send: Send,
  onNew: (message: string) => void,
): Part<{ readonly questions: readonly Question[]; readonly data: unknown }> {
  const part = section('questions');
  /** The elements of the open questions. One that is still open keeps its half-filled form. */
  const open = new Map<string, HTMLElement>();
  return {
    element: part,
    show({ questions: given, data }) {
      const questions = given.map((question) => ({ ...question, message: messageOf(question, data, view) }));
      const keys = questions.map(keyOf);
      for (const [key, shown] of open)
        if (!keys.includes(key)) {
          shown.remove();
          open.delete(key);
        }
      for (const question of questions) {
        const key = keyOf(question);
        if (open.has(key)) continue;
        const made = questionElement(question, view, send);
        open.set(key, made);
        part.append(made);
        onNew(question.message);
      }
      part.hidden = keys.length === 0;
    },
  };
}

/** The message of a question, in the words that the author gave for it: of its invocation, however often that has asked. */
function messageOf({ id, message = word('question') }: Question, data: unknown, { host }: Connection): string {
  const text = labelled('questions', id.replace(/\.\d+$/, ''));
  const values = membersOf(data);
  return text === undefined
    ? message
    : withValues(text, (name) => (values[name] === undefined ? undefined : words(values[name], host, name)));
}

/** The end of a question is no part of it: it changes with each use of the instance. */
function keyOf({ id, message }: Question): string {
  return [id, message].join();
}

function questionElement({ id, kind, message = '', fields = [], url, until }: Question, view: Connection, send: Send) {
  const accept = async (values?: Members): Promise<string | undefined> => {
    if (url !== undefined) await view.ask('ui/open-link', { url });
    return send(id, 'accept', url === undefined ? values : undefined);
  };
  // A person sees the host of a link before it opens.
  const text = url === undefined ? word('answer') : word('open', { host: new URL(url).host });
  const form = formPart(
    fields,
    text,
    accept,
    button(word('decline'), () => void form.run(() => send(id, 'decline'))),
  );
  const isForPerson = url !== undefined || kind === 'elicit';
  return element(
    'div',
    { class: 'panel question', role: 'group', 'aria-label': message },
    element('strong', {}, message),
    until !== undefined && quiet(word('until', { time: words(until, view.host) })),
    isForPerson ? form.element : quiet(word('forAssistant')),
  );
}
