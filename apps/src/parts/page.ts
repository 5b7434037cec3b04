/** The frame of a generated page: its definition, its connection to the host, and the colours of the host where they are complete. */

import { type Connection, connect } from '../view/connection.ts';
import type { Host } from '../view/host-context.ts';
import { parentWindow } from '../view/parent-window.ts';
import { browserWindow } from '../view/surroundings.ts';
import { element } from './dom.ts';
import { reasonOf } from './words.ts';

/**
 * The colours of the host that the style of the pages uses (style.css). A host that has only some of them would mix with the
 * page's own, so that a text may have the colour of its background.
 */
const COLOURS = ['background-primary', 'background-secondary', 'text-primary', 'text-secondary', 'border-primary'];

/** Milliseconds between two sentences for readers of the screen. */
const SENTENCE_MS = 1_000;

/** Connects the page and shows it. The definition is the server's and the same for every user. */
export async function openPage<Definition extends { readonly title: string }>(
  show: (view: Connection, definition: Definition, say: (sentence: string) => void) => HTMLElement,
): Promise<void> {
  keepPolicy();
  const main = element('main');
  document.body.append(main);
  try {
    const definition: Definition = JSON.parse(document.getElementById('definition')?.textContent ?? '');
    document.title = definition.title;
    const view = await connect(parentWindow(), browserWindow(), {
      name: definition.title,
      version: '1',
      displayModes: ['inline', 'fullscreen'],
    });
    const colour = ({ styles }: Host): void => {
      const { variables = {} } = styles ?? {};
      if (styles)
        document.body.classList.toggle(
          'hosted',
          COLOURS.every((name) => variables[`--color-${name}`]),
        );
    };
    colour(view.host);
    view.on('host', colour);
    main.append(show(view, definition, announcer()));
  } catch (error) {
    main.append(reasonOf(error));
  }
}

/**
 * Some hosts put the page into the body of one of theirs, where a browser ignores a policy (HTML, "Pragma directives"). Moved to
 * the head, it holds from then on.
 */
function keepPolicy(): void {
  const policy = document.body.querySelector('meta[http-equiv="Content-Security-Policy"]');
  if (policy) document.head.append(policy);
}

/** Says sentences to readers of the screen, politely and at most one each second: the last one counts. */
function announcer(): (sentence: string) => void {
  const status = element('p', { class: 'unseen', role: 'status' });
  document.body.append(status);
  let next: string | undefined;
  return (sentence) => {
    if (next === undefined)
      setTimeout(() => {
        status.textContent = next ?? '';
        next = undefined;
      }, SENTENCE_MS);
    next = sentence;
  };
}
