/** The events that a person may send: a button for each that the instance accepts, and a form for its data. */
import type { ViewEvent } from '../../../src/features/apps/view-definition.ts';
import { button, element, type Part, quiet, section } from '../parts/dom.ts';
import { formPart } from '../parts/form.ts';
import type { Members } from '../view/host-link.ts';

/** Sends an event. @returns the reason why it was not accepted */
type Send = (event: ViewEvent, values: Members) => Promise<string | undefined>;

interface Action {
  readonly event: ViewEvent;
  /** It has a form, or asks again. */
  readonly opens: boolean;
  readonly opener: HTMLButtonElement;
  readonly panel: HTMLElement;
}

/** Shows the events that are accepted. Half-filled forms stay. */
export function actionsPart(events: readonly ViewEvent[], send: Send): Part<(event: ViewEvent) => boolean> {
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
    const { title, description, fields, confirm } = event;
    const opens = confirm || fields.length > 0;
    const no = (): void => {
      toggle();
      action.opener.focus();
    };
    const form = formPart(
      fields,
      confirm ? `Yes: ${title}` : title,
      async (values) => {
        const problem = await send(event, values);
        toggle(problem === undefined && (confirm || !opens) ? undefined : action);
        return problem;
      },
      confirm && button('No', no),
    );
    const press = (): void => {
      isChosen = true;
      if (opens) toggle(open === action ? undefined : action);
      else form.send();
    };
    const action: Action = {
      event,
      opens,
      opener: button(title, press, confirm ? 'danger' : ''),
      panel: element(
        'div',
        { class: 'panel', role: 'group', 'aria-label': title, hidden: true },
        confirm && element('strong', {}, `${title}?`),
        quiet(description),
        form.element,
      ),
    };
    return action;
  });
  const part = section('Actions');
  part.append(
    element('div', { class: 'buttons' }, ...actions.map(({ opener }) => opener)),
    ...actions.map(({ panel }) => panel),
  );
  return {
    element: part,
    show(isAccepted) {
      for (const { event, opener } of actions) opener.hidden = !isAccepted(event);
      const offered = actions.filter(({ opener }) => !opener.hidden);
      part.hidden = offered.length === 0;
      if (open?.opener.hidden) toggle();
      // The first form is open until a person chooses.
      if (!isChosen && !open) toggle(offered.find(({ event, opens }) => opens && !event.confirm));
    },
  };
}
