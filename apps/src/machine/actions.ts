/** The events that a person may send: a button for each that the instance accepts, a form for its data, and why others are off. */
import type { ViewEvent } from '../../../src/features/apps/view-definition.ts';
import { button, element, type Part, quiet, section } from '../parts/dom.ts';
import { formPart } from '../parts/form.ts';
import { labelled, nameOf, word } from '../parts/words.ts';
import type { Members } from '../view/host-link.ts';

/** Sends an event. @returns the reason why it was not accepted */
type Send = (event: ViewEvent, values: Members) => Promise<string | undefined>;

/** `off`: the instance knows the event in its state, and it cannot happen now. */
export type Offer = 'on' | 'none' | { readonly off: string };

interface Action {
  readonly event: ViewEvent;
  /** It has a form, or asks again. */
  readonly opens: boolean;
  readonly opener: HTMLButtonElement;
  readonly reason: HTMLElement;
  readonly panel: HTMLElement;
}

let last = 0;

/** Shows the events that are accepted. Half-filled forms stay. */
export function actionsPart(events: readonly ViewEvent[], send: Send): Part<(event: ViewEvent) => Offer> {
  let open: Action | undefined;
  let isChosen = false;
  /** Shows one panel, or none. */
  const toggle = (to?: Action): void => {
    open = to;
    for (const action of actions) {
      action.panel.hidden = action !== open;
      if (action.opens) action.opener.ariaExpanded = String(action === open);
    }
  };
  const actions = events.map((event): Action => {
    const { name, description, fields, confirm, always } = event;
    const title = always ? (labelled('events', name) ?? word('discard')) : nameOf('events', name, event.title);
    const opens = confirm || fields.length > 0;
    const back = (): void => {
      toggle();
      action.opener.focus();
    };
    const form = formPart(
      fields,
      title,
      async (values) => {
        const problem = await send(event, values);
        toggle(problem === undefined && (confirm || !opens) ? undefined : action);
        return problem;
      },
      confirm && button(word('back'), back),
    );
    const press = (): void => {
      if (isOff(action)) return;
      isChosen = true;
      if (opens) toggle(open === action ? undefined : action);
      else form.send();
    };
    last += 1;
    const reason = element('p', { class: 'quiet', id: `reason${last}`, hidden: true });
    const action: Action = {
      event,
      opens,
      opener: button(title, press, always ? 'always' : confirm ? 'danger' : ''),
      reason,
      panel: element(
        'div',
        { class: 'panel', role: 'group', 'aria-label': title, hidden: true },
        confirm && element('strong', {}, word('confirm', { event: title })),
        quiet(always ? word('discardHint') : description),
        form.element,
      ),
    };
    return action;
  });
  const part = section('actions');
  const of = (isEnd: boolean): readonly Action[] => actions.filter(({ event }) => (event.always === true) === isEnd);
  const row = (isEnd: boolean, name: string): HTMLElement =>
    element('div', { class: name }, ...of(isEnd).map(({ opener }) => opener));
  // The end of the instance is no event of it, and stands apart from those that may mean an end, too.
  part.append(
    row(false, 'buttons'),
    ...of(false).map(({ reason }) => reason),
    ...of(false).map(({ panel }) => panel),
    row(true, 'buttons end'),
    ...of(true).map(({ panel }) => panel),
  );
  return {
    element: part,
    show(offerOf) {
      for (const action of actions) {
        const { event, opener, reason, panel } = action;
        const offer = offerOf(event);
        const off = typeof offer === 'object' ? offer.off : undefined;
        opener.hidden = offer === 'none';
        // A disabled button would lose the focus, and no one could read its reason.
        opener.ariaDisabled = off === undefined ? null : 'true';
        reason.hidden = off === undefined;
        reason.textContent = off === undefined ? '' : `${opener.textContent}: ${off}`;
        if (off === undefined) opener.removeAttribute('aria-describedby');
        else opener.setAttribute('aria-describedby', reason.id);
        if (offer !== 'on') panel.hidden = true;
      }
      const offered = actions.filter(({ opener }) => !opener.hidden);
      part.hidden = offered.length === 0;
      if (open && (open.opener.hidden || isOff(open))) toggle();
      // The first form is open until a person chooses.
      if (!isChosen && !open) toggle(offered.find((action) => action.opens && !action.event.confirm && !isOff(action)));
    },
  };
}

function isOff({ opener }: Action): boolean {
  return opener.ariaDisabled === 'true';
}
