/** What could happen next to a statechart: the transitions out of where it is, and which of them a guard does not let pass. */
import type { Next } from '../../../src/inspector/frames.ts';
import type { ActorLine } from '../../../src/inspector/model/index.ts';
import { Section } from '../parts/parts.tsx';
import { known } from '../store/state.ts';

const WORDS = { yes: '', no: 'its guard says no', unknown: 'its guard decides by the event' } as const;

export function NextSteps({ line, next }: { readonly line: ActorLine; readonly next?: readonly Next[] }) {
  const chart = known().chartOf(line.address);
  if (!chart || next === undefined || next.length === 0) return null;
  return (
    <Section title="What could happen next">
      <ul class="next">
        {next.map(({ edge, event, guard, allowed }) => {
          const to = chart.edges.get(edge)?.edge;
          const targets = to?.targets.join(', ') ?? '';
          return (
            <li key={edge} class={allowed}>
              <span class="mono">{to?.label ?? event}</span>
              {guard === undefined ? null : <span class="guard">[{guard === '' ? 'if' : guard}]</span>}
              <span class="beside">{targets === '' ? 'stays' : `→ ${targets}`}</span>
              {allowed === 'yes' ? null : <span class="why">{WORDS[allowed]}</span>}
            </li>
          );
        })}
      </ul>
    </Section>
  );
}
