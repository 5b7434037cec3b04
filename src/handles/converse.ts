/** A call that stays with its instance for as long as that asks something, and puts it to its client. */
import type { Context } from '../execution/context.ts';
import type { Awake } from './awake.ts';
import type { Job } from './jobs.ts';
import type { Turns } from './turns.ts';

/** Resolves when nothing is open any more that this call could put. An instance that crashes meanwhile asks anew. */
export async function converse(job: Job, ctx: Context, turns: Turns): Promise<void> {
  for (let last: Awake | undefined; ; ) {
    await turns.settled();
    const { awake } = turns;
    if (!awake || awake === last || ctx.signal.aborted) return;
    last = awake;
    await awake.desk.put(ctx, job.asked, () => turns.settled());
  }
}
