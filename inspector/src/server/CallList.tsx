/** Calls in a list, the newest first: each with its arguments, its outcome, and a button that sends it again. */
import type { ViewerCall } from '../../../src/inspector/calls/call-messages.ts';
import type { Plain } from '../../../src/inspector/frames.ts';
import { Sign } from '../parts/icons.tsx';
import { At } from '../parts/parts.tsx';
import { duration, short } from '../parts/time.ts';
import { now } from '../store/state.ts';
import { again, nameOf } from './calls.ts';

export interface CallListProps {
  readonly calls: readonly ViewerCall[];
  readonly chosen: number | undefined;
  readonly onChoose: (call: ViewerCall) => void;
  /** Shows the name of each call. */
  readonly named?: boolean;
}

export function CallList({ calls, chosen, onChoose, named = false }: CallListProps) {
  return (
    <ul class="calls">
      {calls.map((call) => (
        <li key={call.id} class={call.id === chosen ? 'chosen' : ''}>
          <button
            type="button"
            class="calls-row"
            aria-current={call.id === chosen ? 'true' : undefined}
            onClick={() => onChoose(call)}
          >
            <Sign {...signOf(call)} />
            <span class="beside">
              <At at={call.at} />
            </span>
            <span class="calls-what mono">
              {named ? <b>{short(nameOf(call.request), 40)} </b> : null}
              {argumentText(call)}
            </span>
            <span class="beside">{duration((call.endedAt ?? now.value) - call.at)}</span>
          </button>
          <button
            type="button"
            class="link"
            aria-label={`again: ${nameOf(call.request)}`}
            onClick={() => void again(call.id)}
          >
            again
          </button>
        </li>
      ))}
    </ul>
  );
}

/** The outcome as a sign with a name. */
export function signOf({ status, isError }: ViewerCall) {
  if (status === 'running') return { shape: 'open', title: 'running' } as const;
  if (status === 'cancelled') return { shape: 'cancelled', title: 'cancelled' } as const;
  if (status === 'failed') return { shape: 'failed', title: 'error' } as const;
  return isError ? ({ shape: 'failed', title: 'failed' } as const) : ({ shape: 'ok', title: 'done' } as const);
}

function argumentText({ request }: ViewerCall): string {
  const members: { readonly [name: string]: unknown } =
    request.kind === 'tool' || request.kind === 'prompt'
      ? request.arguments
      : request.kind === 'template'
        ? request.variables
        : request.kind === 'request'
          ? request.params
          : {};
  const text = Object.entries(members)
    .map(([name, value]) => `${name}: ${valueText(value)}`)
    .join(', ');
  return short(text, 120);
}

function valueText(value: unknown): Plain {
  return typeof value === 'string' ? value : JSON.stringify(value);
}
