/** Runs seeds of the simulated world, and makes of one that fails the shortest list of events that still does. */
import type { Breaks } from './breaks.ts';
import { type Action, makePlan } from './plan.ts';
import { Random } from './random.ts';
import { live, type Report } from './world.ts';

/** Actions of a plan. */
export const LENGTH = 45;

/** Most lives that are spent on making a failing plan shorter. */
const MAX_SHRINKS = 200;

/** Lines of the trace that are told of a failure: its last. */
const TOLD = 40;

/** A seed that violates something. */
export interface Finding {
  readonly seed: number;
  readonly violation: string;
  /** What is left of its plan. */
  readonly plan: readonly Action[];
  readonly trace: readonly string[];
}

export function planOf(seed: number): readonly Action[] {
  return makePlan(new Random(seed), LENGTH);
}

/** One life of a seed's world. */
export function simulate(seed: number, breaks?: Breaks): Promise<Report> {
  return live({ seed, plan: planOf(seed), ...(breaks ? { breaks } : {}) });
}

export interface SearchOptions {
  readonly breaks?: Breaks;
  /** Most findings that are looked for. */
  readonly most?: number;
  /** False: a finding keeps its whole plan. Shrinking takes most of the time. */
  readonly shrinks?: boolean;
  /** Hears of each world. */
  lived?(report: Report): void;
}

/** What the violations of these seeds are, up to `most` of them, each shrunk. */
export async function search(
  seeds: Iterable<number>,
  { breaks, most = 3, shrinks = true, lived }: SearchOptions = {},
): Promise<readonly Finding[]> {
  const findings: Finding[] = [];
  for (const seed of seeds) {
    const report = await simulate(seed, breaks);
    lived?.(report);
    const { violation } = report;
    if (violation === undefined) continue;
    const whole = { seed, violation, plan: planOf(seed), trace: report.trace };
    findings.push(shrinks ? await shrink(seed, violation, breaks) : whole);
    if (findings.length === most) break;
  }
  return findings;
}

/** Leaves out parts of the plan, in ever smaller pieces, for as long as the rest violates the same. */
export async function shrink(seed: number, violation: string, breaks: Breaks = {}): Promise<Finding> {
  let plan = planOf(seed);
  let lives = 0;
  const fails = async (shorter: readonly Action[]): Promise<boolean> => {
    lives += 1;
    const report = await live({ seed, plan: shorter, breaks });
    return report.violation !== undefined && kindOf(report.violation) === kindOf(violation);
  };
  for (let size = Math.ceil(plan.length / 2); size >= 1; size = size === 1 ? 0 : Math.ceil(size / 2)) {
    for (let at = 0; at < plan.length && lives < MAX_SHRINKS; ) {
      const shorter = [...plan.slice(0, at), ...plan.slice(at + size)];
      if (await fails(shorter)) plan = shorter;
      else at += size;
    }
  }
  const { violation: still = violation, trace } = await live({ seed, plan, breaks });
  return { seed, violation: still, plan, trace };
}

/** The invariant that a violation names. */
export function kindOf(violation: string): string {
  return violation.split(':', 1)[0] ?? violation;
}

/** A finding as the one reads it who is to mend it. */
export function tell({ seed, violation, plan, trace }: Finding): string {
  return [
    `seed ${seed} violates ${violation}`,
    `with these ${plan.length} actions (TROUPE_SEED=${seed} runs it again):`,
    ...plan.map(({ after, act }) => `  +${after} ms ${JSON.stringify(act)}`),
    'and ended like this:',
    ...trace.slice(-TOLD).map((line) => `  ${line.slice(0, 400)}`),
  ].join('\n');
}
