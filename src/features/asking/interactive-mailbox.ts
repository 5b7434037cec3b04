/** The mailbox of the interactive request that a request has become. */
import type { Clock } from '../../core/kernel/clock.ts';
import type { Mailbox } from '../../core/messages/mailbox.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { setInteractive } from '../../core/requests/active-request.ts';
import type { InteractiveRequestMail } from './input-messages.ts';
import { refuseInput } from './input-request.ts';

const mailboxes = new WeakMap<RequestView, Mailbox<InteractiveRequestMail>>();

/** The request has become an interactive request, to which its handler's outcome goes. */
export function makeInteractive(request: RequestView, mailbox: Mailbox<InteractiveRequestMail>): void {
  mailboxes.set(request, mailbox);
  setInteractive(request, mailbox);
}

/** Returns the interactive request that a request has become; undefined if it has not asked its client. */
export function interactiveOf(request: RequestView): Mailbox<InteractiveRequestMail> | undefined {
  return mailboxes.get(request);
}

/**
 * Creates the mailbox of a request that cannot ask: it rejects every question.
 *
 * @param reason makes the error, which costs 10 µs, for a handler that asks
 */
export function rejectingMailbox(reason: () => Error, clock: Clock): Mailbox<InteractiveRequestMail> {
  return {
    address: 'request/ended',
    send(mail) {
      if (mail.type === 'ask') refuseInput(mail.questions, reason(), clock);
    },
  };
}
