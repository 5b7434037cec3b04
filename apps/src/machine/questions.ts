/** The open questions of an instance: forms for the person, links, and those that others answer. */
import { button, element, type Part, quiet, section } from '../parts/dom.ts';
import { formPart } from '../parts/form.ts';
import { words } from '../parts/words.ts';
import type { Connection } from '../view/connection.ts';
import type { Members } from '../view/host-link.ts';
import type { Question } from './instance.ts';

/** Sends an answer (MCP 2025-11-25 client/elicitation, "Response Actions"). @returns the reason why it was not accepted */
type Send = (id: string, action: 'accept' | 'decline', content?: Members) => Promise<string | undefined>;

/** @param onNew gets the message of each question that was not open before */
export function questionsPart(
  view: Connection,
  send: Send,
  onNew: (message: string) => void,
): Part<readonly Question[]> {
  const part = section('Questions');
  /** The elements of the open questions. One that is still open keeps its half-filled form. */
  const open = new Map<string, HTMLElement>();
  return {
    element: part,
    show(questions) {
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
        onNew(question.message ?? 'A question');
      }
      part.hidden = keys.length === 0;
    },
  };
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
  const text = url === undefined ? 'Answer' : `Open ${new URL(url).host}`;
  const form = formPart(
    fields,
    text,
    accept,
    button('Decline', () => void form.run(() => send(id, 'decline'))),
  );
  const isForPerson = url !== undefined || kind === 'elicit';
  return element(
    'div',
    { class: 'panel question', role: 'group', 'aria-label': message },
    element('strong', {}, message),
    until !== undefined && quiet(`Until ${words(until, view.host)}`),
    isForPerson ? form.element : quiet('Waits for the model'),
  );
}
