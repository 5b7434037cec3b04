/** The pages on which people who have signed in decide about calls: a list of what waits for a person, and one page for each approval. */
import { isoOf } from '../../core/kernel/clock.ts';
import type { Auth } from '../../core/messages/auth.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import { htmlText, plainPage, UNKNOWN_PERSON } from '../../core/transports/plain-page.ts';
import type { PageRequest, PersonPage } from '../../core/transports/transport.ts';
import { ApprovalError, FAULT_STATUS } from './approval-error.ts';
import type { Approval, Approvals } from './approval-interface.ts';
import { isOpen } from './approval-record.ts';
import { APPROVALS_PATH } from './approvals-options.ts';

/** Longest reason that a form takes; see `ApprovalDecision`. */
const MAX_REASON = 500;
const FORM_SCOPE = 'approval form';
const UNKNOWN =
  'There is no approval here about which you may decide. Perhaps it is over, or you have signed in as somebody else.';

export class ApprovalPages {
  readonly #approvals: Approvals;
  readonly #keys: StateKeys;
  readonly #isListed: boolean;

  /** @param isListed there is a list of approvals beside their pages */
  constructor(approvals: Approvals, keys: StateKeys, isListed = true) {
    this.#isListed = isListed;
    this.#approvals = approvals;
    this.#keys = keys;
  }

  /** Shows the list or an approval, or takes a decision. Only a form that this page has shown to the same person decides. */
  async page({ rest, person, form }: PageRequest): Promise<PersonPage> {
    if (!person) return sentence(401, UNKNOWN_PERSON);
    try {
      // Relative links need the address without a slash at its end.
      if (rest === '/') return { ...sentence(303, ''), headers: { location: `..${APPROVALS_PATH}` } };
      if (rest === '') return form === undefined ? await this.#list(person) : sentence(405, 'This page takes no form.');
      return await this.#one(idIn(rest), person, form);
    } catch (error) {
      if (error instanceof ApprovalError)
        return sentence(FAULT_STATUS[error.fault], `Nothing was decided: ${error.message}.`);
      throw error;
    }
  }

  async #list(person: Auth): Promise<PersonPage> {
    const [waiting, own] = await Promise.all([
      this.#approvals.list({ approver: person }),
      this.#approvals.list({ principal: person.principal }),
    ]);
    const others = own.filter(({ id }) => !waiting.some((each) => each.id === id));
    const item = ({ id, title, tool, principal, until }: Approval): string =>
      `<li><a href="${APPROVALS_PATH.slice(1)}/${encodeURIComponent(id)}">${line(title)}</a><br><span class="note">${line(principal)} calls ${line(tool)}, until ${isoOf(until)}</span>`;
    const list = (heading: string, items: readonly Approval[], none: string): string =>
      `<h1>${heading}</h1>${items.length === 0 ? `<p>${none}` : `<ul>${items.map(item).join('')}</ul>`}`;
    return plainPage(
      200,
      'Approvals',
      `<p class="note">You are ${line(person.principal)}.</p>` +
        list(
          'Calls that wait for you',
          waiting,
          'Nothing waits for you. Load this page again to see what has come since.',
        ) +
        (others.length === 0 ? '' : list('Your calls that wait for others', others, '')),
    );
  }

  async #one(id: string, person: Auth, form: string | undefined): Promise<PersonPage> {
    const approval = await this.#approvals.get(id);
    const mayDecide = approval !== undefined && (await this.#approvals.mayDecide(id, person));
    // A person who has nothing to do with it does not learn if it exists.
    if (!approval || !(mayDecide || isConcerned(approval, person))) return sentence(404, UNKNOWN);
    const bound = [FORM_SCOPE, id, person.principal];
    if (form === undefined) {
      const mark = mayDecide ? this.#keys.ring.seal(true, bound) : undefined;
      return onePage(approval, person, mark, this.#isListed);
    }
    const fields = new URLSearchParams(form);
    // The form of another page has no such mark, even if that page knows the address.
    if (!this.#keys.ring.open(fields.get('mark') ?? '', bound).ok)
      return sentence(403, 'Nothing was decided: this form was not shown to you by this page. Load the page again.');
    const decision = fields.get('decision');
    if (decision !== 'approve' && decision !== 'deny')
      return sentence(400, 'Nothing was decided: choose one of the two buttons.');
    const reason = fields.get('reason')?.trim() ?? '';
    await this.#approvals.decide(id, {
      ...{ approver: person, decision, via: 'page' },
      ...(reason === '' ? {} : { reason: reason.slice(0, MAX_REASON) }),
      ...(decision === 'approve' && fields.get('remember') === 'yes' ? { remember: true } : {}),
    });
    // The browser loads the page again, so that a reload sends nothing.
    return { ...sentence(303, ''), headers: { location: encodeURIComponent(id), 'cache-control': 'no-store' } };
  }
}

/** True for the caller, and for those who have decided. */
function isConcerned({ principal, given, ended }: Approval, person: Auth): boolean {
  return [principal, ended?.principal, ...given.map((each) => each.principal)].includes(person.principal);
}

/** The id in the rest of a path; empty for one that is none. */
function idIn(rest: string): string {
  try {
    return decodeURIComponent(rest.slice(1)) || ' ';
  } catch {
    return ' ';
  }
}

/** @param mark permits a decision; undefined for a person who may not decide now */
function onePage(approval: Approval, person: Auth, mark: string | undefined, isListed: boolean): PersonPage {
  const { state, text, title, given, by, ended, remembers } = approval;
  const missing = by
    .filter((each) => each.missing > 0)
    .map((each) => `${each.missing > 1 ? `${each.missing} people: ` : ''}${line(each.who)}`);
  const decided = given.map(
    ({ principal, at, reason }) =>
      `<li>${line(principal)} approved at ${isoOf(at)}${reason === undefined ? '' : `: “${line(reason)}”`}`,
  );
  const end = ended
    ? `<li>${htmlText(state)} at ${isoOf(ended.at)}${ended.principal === undefined ? '' : ` by ${line(ended.principal)}`}${ended.reason === undefined ? '' : `: “${line(ended.reason)}”`}`
    : '';
  const form =
    mark === undefined
      ? `<p>${isOpen(state) ? 'You cannot decide about this call.' : `This call is ${htmlText(state)}.`}`
      : `<form method="post"><input type="hidden" name="mark" value="${htmlText(mark)}">` +
        `<p><label>Reason (the caller reads it)<br><textarea name="reason" rows="2" maxlength="${MAX_REASON}"></textarea></label>` +
        (remembers === undefined
          ? ''
          : `<p><label><input type="checkbox" name="remember" value="yes"> Do not ask again: ${line(remembers)}</label>`) +
        '<p><button name="decision" value="approve">Approve</button><button name="decision" value="deny">Deny</button></form>';
  return plainPage(
    200,
    title,
    `<p class="note">You are ${line(person.principal)}.${isListed ? ` <a href="../${APPROVALS_PATH.slice(1)}">All that wait for you</a>` : ''}</p>` +
      `<h1>${line(title)}</h1><pre>${htmlText(text)}</pre>` +
      (isOpen(state) && missing.length > 0 ? `<p>Still needed: ${missing.join('; ')}.` : '') +
      (decided.length > 0 || end !== '' ? `<ul>${decided.join('')}${end}</ul>` : '') +
      form,
  );
}

/** The page of an address that leads to no approval. */
export function noPage(): PersonPage {
  return sentence(404, UNKNOWN);
}

function line(text: string): string {
  return htmlText(visibleLine(text));
}

function sentence(status: number, text: string): PersonPage {
  return plainPage(status, 'Approvals', `<p>${htmlText(text)}`);
}
