/** The statechart of a page, with the active states marked: as a picture where it has room, and as a list of steps. */
import { clipText } from '../../../src/features/charts/sketch.ts';
import { element, type Part } from '../parts/dom.ts';
import { isTranslated, nameOf, word } from '../parts/words.ts';

/** Pixels between the text and the edge of its box. */
const SIDE = 4;
/** The smallest part of its size at which people read the picture. */
const LEAST_SCALE = 0.7;
/** Pixels of the form beside the picture, and of the gap (machine.css). */
const FORM_WIDTH = 260;

/**
 * @param drawn the picture, which the server has put into the page
 * @param titles the titles of events in their schemas
 */
export function chartPart(
  states: readonly string[],
  drawn: SVGSVGElement | null,
  titles: ReadonlyMap<string, string | undefined>,
): Part<readonly string[]> & { fit(width: number): void } {
  const part = element(
    'section',
    { class: 'steps', 'aria-label': word('steps') },
    // The list has the same content as the picture.
    drawn ? element('div', { class: 'picture', 'aria-hidden': 'true' }, drawn) : undefined,
    element('ul', {}, ...states.map((path) => element('li', { 'data-state': path }, nameOf('states', path)))),
  );
  return {
    element: part,
    /** Shows the list instead of a picture that is too small to read. @param width of the page, in pixels */
    fit(width) {
      const own = drawn?.viewBox.baseVal.width ?? 0;
      part.classList.toggle('small', width - FORM_WIDTH < own * LEAST_SCALE);
      if (drawn && isTranslated()) translate(drawn, titles);
    },
    /** @param paths of the active states, without their parents */
    show(paths) {
      for (const each of part.querySelectorAll('[data-state]')) {
        const path = each.getAttribute('data-state') ?? '';
        const isActive = paths.includes(path);
        each.classList.toggle('now', isActive);
        each.classList.toggle(
          'around',
          paths.some((other) => other.startsWith(`${path}.`)),
        );
        each.ariaCurrent = isActive ? 'step' : null;
      }
    },
  };
}

/** Writes the names of the page's language into the picture, which the server has drawn in the first one, with room for all. */
function translate(drawn: SVGSVGElement, titles: ReadonlyMap<string, string | undefined>): void {
  for (const text of drawn.querySelectorAll<SVGTextElement>('[data-text]')) {
    const [kind, name = ''] = (text.getAttribute('data-text') ?? '').split(/:(.*)/s);
    if (kind !== 'states' && kind !== 'delays' && kind !== 'events') continue;
    const shown = clipText(nameOf(kind, name, kind === 'events' ? titles.get(name) : undefined));
    if (text.textContent === shown || name === '') continue;
    text.textContent = shown;
    text.removeAttribute('textLength');
    const room = (text.parentElement?.querySelector('rect')?.width.baseVal.value ?? 0) - 2 * SIDE;
    if (room > 0 && text.getComputedTextLength() > room) text.setAttribute('textLength', `${room}`);
  }
}
