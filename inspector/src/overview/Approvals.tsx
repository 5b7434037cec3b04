/** The calls that wait for the approval of people, and what was remembered. A viewer decides in the name that they give. */
import { signal } from '@preact/signals';
import { useEffect, useState } from 'preact/hooks';
import type { ApprovalControl, ApprovalsView } from '../../../src/inspector/calls/call-messages.ts';
import { Icon } from '../parts/icons.tsx';
import { Left } from '../parts/parts.tsx';
import { ask, control, Refused } from '../store/api.ts';
import { poll } from '../store/poll.ts';
import { known, say } from '../store/state.ts';
import '../server/server.css';

/** Milliseconds between two looks: an approval may also come from another node, or be decided elsewhere. */
const LOOK_MS = 2_000;

const state = signal<ApprovalsView>({ open: [], grants: [] });
/** The person who decides, as the audit names them. */
const person = signal('operator');

const approvals = poll(async () => {
  const response = await ask('api/approvals');
  state.value = await response.json();
}, LOOK_MS);

async function decide(given: ApprovalControl): Promise<void> {
  try {
    say(await control(given));
  } catch (error) {
    say(error instanceof Refused ? error.message : 'The server cannot be reached.');
  }
  await approvals.look();
}

export function Approvals() {
  useEffect(approvals.begin, []);
  const { open, grants } = state.value;
  if (open.length === 0 && grants.length === 0) return null;
  return (
    <section class="questions" aria-label="approvals">
      {open.map((approval) => (
        <Card key={approval.id} approval={approval} />
      ))}
      {grants.length === 0 ? null : (
        <details class="question">
          <summary>{grants.length} remembered</summary>
          {grants.map(({ id, tool, principal, text }) => (
            <p key={id} class="question-text">
              <b>{tool}</b> of {principal}: {text}{' '}
              <button
                type="button"
                onClick={() => void decide({ action: 'revoke', approval: id, person: person.value })}
              >
                Revoke
              </button>
            </p>
          ))}
        </details>
      )}
    </section>
  );
}

function Card({ approval }: { readonly approval: ApprovalsView['open'][number] }) {
  const { id, title, tool, principal, text, by, until, remembers } = approval;
  const [reason, setReason] = useState('');
  const [remember, setRemember] = useState(false);
  const given = { approval: id, person: person.value, ...(reason === '' ? {} : { reason }) };
  const needed = by
    .filter(({ missing }) => missing > 0)
    .map(({ who, missing }) => (missing > 1 ? `${missing} people: ${who}` : who))
    .join('; ');
  return (
    <section class="question" aria-label={`approval: ${title}`}>
      <p class="question-head">
        <Icon name="ask" size={14} />
        <b>{title}</b> {principal} calls {tool}
        <span class="beside">
          <Left until={until - (known().hello?.epoch ?? 0)} />
        </span>
      </p>
      <pre class="approval-text">{text}</pre>
      <p class="question-text">Needs: {needed}.</p>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          void decide({ action: 'approve', remember, ...given });
        }}
      >
        <div class="form form-fields">
          <div class="form-field">
            <label for={`as-${id}`}>decide as</label>
            <input
              id={`as-${id}`}
              value={person.value}
              onInput={({ currentTarget }) => {
                person.value = currentTarget.value;
              }}
            />
          </div>
          <div class="form-field">
            <label for={`reason-${id}`}>reason, which the caller reads</label>
            <input
              id={`reason-${id}`}
              maxLength={500}
              value={reason}
              onInput={({ currentTarget }) => setReason(currentTarget.value)}
            />
          </div>
          {remembers === undefined ? null : (
            <label>
              <input
                type="checkbox"
                checked={remember}
                onChange={({ currentTarget }) => setRemember(currentTarget.checked)}
              />{' '}
              do not ask again: {remembers}
            </label>
          )}
        </div>
        <p class="buttons">
          <button type="submit" class="primary">
            Approve
          </button>
          <button type="button" onClick={() => void decide({ action: 'deny', ...given })}>
            Deny
          </button>
        </p>
      </form>
    </section>
  );
}
