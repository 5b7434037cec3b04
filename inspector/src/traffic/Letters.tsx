/** The received webhooks and the dead letters of every kind: what became of each, its content, and another delivery. */
import { useState } from 'preact/hooks';
import type { DeadLetterLine, TrafficView } from '../../../src/inspector/traffic/traffic-messages.ts';
import { At } from '../parts/parts.tsx';
import { duration, plural } from '../parts/time.ts';
import { now } from '../store/state.ts';
import { act, clockOf, contentOf, mayAct } from './traffic.ts';

export function Deliveries({ deliveries }: Pick<TrafficView, 'deliveries'>) {
  const dead = deliveries.filter((delivery) => delivery.state === 'dead').length;
  return (
    <section aria-labelledby="events-deliveries">
      <header class="overview-head">
        <h2 id="events-deliveries">Received webhooks</h2>
        <span class={dead === 0 ? 'tally good' : 'tally bad'}>{dead === 0 ? 'none dead' : `${dead} dead`}</span>
      </header>
      {deliveries.map(({ ref, path, id, type, state, at, attempt, due, ms, error, bytes, resent }) => {
        const facts = [
          state,
          attempt > 1 ? `attempt ${attempt}` : '',
          state === 'waiting' ? nextText(due) : '',
          ms === undefined ? '' : `${ms} ms`,
          `${bytes} bytes`,
          resent === undefined ? '' : 'sent again',
        ];
        return (
          <Card
            key={ref}
            letter={{ ref: `webhook ${ref}`, at, error: error ?? '' }}
            again
            name={path}
            facts={`${type ?? ''} ${id}: ${facts.filter((fact) => fact !== '').join(', ')}`}
            button="Send again"
          />
        );
      })}
    </section>
  );
}

/** @example nextText(due) // 'next attempt in 8 s' */
function nextText(due: number): string {
  const left = clockOf(due) - now.value;
  return left > 0 ? `next attempt in ${duration(left)}` : '';
}

export function Letters({ letters }: Pick<TrafficView, 'letters'>) {
  const left = letters.filter(({ delivered }) => !delivered).length;
  return (
    <section aria-labelledby="events-letters">
      <header class="overview-head">
        <h2 id="events-letters">Dead letters</h2>
        <span class={left === 0 ? 'tally good' : 'tally bad'}>{left === 0 ? 'all delivered again' : left}</span>
      </header>
      {letters.map((letter) => (
        <Card
          key={letter.ref}
          letter={letter}
          again={letter.kind !== 'crash'}
          name={letter.kind}
          facts={`${letter.what}, ${letter.delivered ? 'delivered again' : plural(letter.attempts, 'attempt')}`}
          button="Deliver again"
        />
      ))}
    </section>
  );
}

interface CardProps {
  readonly letter: Pick<DeadLetterLine, 'ref' | 'at' | 'error'>;
  /** True if it can be delivered again. */
  readonly again: boolean;
  readonly name: string;
  readonly facts: string;
  readonly button: string;
}

function Card({ letter: { ref, at, error }, again, name, facts, button }: CardProps) {
  const [content, setContent] = useState<string>();
  return (
    <details
      class="question"
      onToggle={({ currentTarget }) => {
        if (currentTarget.open && content === undefined) void contentOf(ref).then(setContent);
      }}
    >
      <summary>
        <At at={clockOf(at)} precise={false} /> <b>{name}</b> {facts}
      </summary>
      {error === '' ? null : <p class="question-text">{error}</p>}
      <pre class="approval-text">{content ?? '…'}</pre>
      {mayAct() && again ? (
        <p class="buttons">
          <button type="button" onClick={() => void act({ action: 'redeliver', ref })}>
            {button}
          </button>
        </p>
      ) : null}
    </details>
  );
}
