/** The possible transitions of a statechart, and those that a guard prevents. */
import type { Next } from '../../../src/inspector/frames.ts';
import type { ActorLine } from '../../../src/inspector/model/index.ts';
import { Section } from '../parts/parts.tsx';
import { known } from '../store/state.ts';

const WORDS = { yes: '', no: 'guard: no', unknown: 'guard: depends on the event' } as const;

export function NextSteps({ line, next }: { readonly line: ActorLine; readonly next?: readonly Next[] }) {
  const chart = known().chartOf(line.address);
  if (!chart || next === undefined || next.length === 0) return null;
  return (
    <Section title="Next transitions">
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
