/** The statechart of a page, with the active states marked: as a picture, and as a list for readers who do not see it. */
import type { ViewState } from '../../../src/features/apps/view-definition.ts';
import { element, type Part } from '../parts/dom.ts';

/** @param drawn the picture, which the server has put into the page */
export function chartPart(states: readonly ViewState[], drawn: Element | null): Part<readonly string[]> {
  const part = element(
    'section',
    { 'aria-label': 'States' },
    // The list has the same content as the picture.
    drawn ? element('div', { class: 'picture', 'aria-hidden': 'true' }, drawn) : undefined,
    element(
      'ul',
      {},
      ...states.map(({ path, label, final }) => element('li', { 'data-state': path }, label, final && ' (final)')),
    ),
  );
  return {
    element: part,
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
