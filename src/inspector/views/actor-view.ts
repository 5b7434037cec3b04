/** The current view of an actor: its state, the things for which it waits, and its possible transitions. */
import { pathsIn } from '../../core/kernel/charts/paths.ts';
import type { LiveRecord, Waits } from '../../core/kernel/inspection/records.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { ActorView, Wait } from '../frames.ts';
import { plainMembers, plainOf } from '../redaction/plain-data.ts';
import type { Redactor } from '../redaction/redact.ts';
import { nextOf } from './what-if.ts';

interface ViewContext {
  readonly seq: number;
  readonly at: number;
  readonly redactor: Redactor;
  /** True: without the context and the possible transitions. A recording has the context in each step. */
  readonly brief?: boolean;
}

/** Never throws: the view contains errors that an author's code threw. */
export function viewActor(
  actor: string,
  live: LiveRecord,
  { seq, at, redactor, brief = false }: ViewContext,
): ActorView {
  const charted = tried(() => live.chart?.());
  const chart = charted.value;
  if (chart) redactor.learn(chart.machine);
  const facts = tried(() => live.facts?.());
  const waits = tried(() => live.waits?.());
  const next = tried(() => (chart && !brief ? nextOf(chart) : []));
  const failed = [charted, facts, waits, next].flatMap(({ why }) => (why === undefined ? [] : [redactor.words(why)]));
  return {
    actor,
    kind: live.kind,
    at,
    seq,
    state: tried(() => live.state()).value ?? 'unknown',
    mailbox: tried(() => live.queued?.()).value ?? 0,
    ...(chart ? { active: pathsIn(chart.snapshot.value) } : {}),
    ...(chart && !brief ? { context: plainOf(chart.snapshot.context, redactor) } : {}),
    facts: {
      ...plainMembers(facts.value ?? {}, redactor),
      ...(failed.length === 0 ? {} : { 'not available': failed }),
    },
    waits: (waits.value ?? []).map((wait) => waitOf(wait, redactor)),
    next: next.value ?? [],
  };
}

function waitOf({ what, whom, until, lasts, because }: Waits, redactor: Redactor): Wait {
  return {
    what: redactor.words(what),
    ...(whom === undefined ? {} : { whom: redactor.words(whom) }),
    ...(until === undefined ? {} : { until }),
    ...(lasts === undefined ? {} : { lasts }),
    ...(because === undefined ? {} : { because }),
  };
}

function tried<T>(ask: () => T): { readonly value?: T; readonly why?: string } {
  try {
    return { value: ask() };
  } catch (error) {
    return { why: messageOf(error) };
  }
}
