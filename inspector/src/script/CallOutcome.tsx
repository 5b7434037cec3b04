/** The outcome of a call of a script, or the reason of its wait. */
import { isList, type LaneCall, member } from '../../../src/inspector/model/index.ts';
import { type Shape, Sign } from '../parts/icons.tsx';
import { At } from '../parts/parts.tsx';
import { known } from '../store/state.ts';

export function signOf({ outcome, what }: LaneCall): Shape {
  if (outcome !== undefined) return outcome === 'returned' ? 'ok' : 'failed';
  return what === 'called' || what === 'started' || what === 'answered' ? 'open' : 'waiting';
}

export function CallOutcome({ call }: { readonly call: LaneCall }) {
  const { outcome } = call;
  return (
    <span class={`script-outcome ${outcome ?? 'open'}`}>
      <Sign shape={signOf(call)} />
      {outcome ?? <Reason call={call} />}
    </span>
  );
}

function Reason({ call: { what, wait } }: { readonly call: LaneCall }) {
  switch (what) {
    case 'held':
      return <span>waits for the approval {String(member(wait, 'approval') ?? '')}</span>;
    case 'asked': {
      const questions = member(wait, 'questions');
      return <span>asks “{isList(questions) ? questions.map(String).join('”, “') : ''}”</span>;
    }
    case 'following':
      return <span>waits for the task {String(member(wait, 'task') ?? '')}</span>;
    case 'sleeping': {
      const due = member(wait, 'due');
      return (
        <span>
          sleeps
          {typeof due === 'number' ? (
            <>
              {' '}
              until <At at={due - (known().hello?.epoch ?? 0)} precise={false} />
            </>
          ) : null}
        </span>
      );
    }
    default:
      return <span>no result yet</span>;
  }
}
