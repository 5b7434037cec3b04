/** A call that stays with its instance for as long as that asks something, and puts it to its client. */
import type { Context } from '../input/context.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import type { TurnLoop } from './turn-loop.ts';

/** Resolves when nothing is open any more that this call could put. An instance that crashes meanwhile asks anew. */
export async function callInteractively(job: QueuedCall, ctx: Context, turns: TurnLoop): Promise<void> {
  for (let last: Activation | undefined; ; ) {
    await turns.settled();
    const { awake } = turns;
    if (!awake || awake === last || ctx.signal.aborted) return;
    last = awake;
    await awake.desk.put(ctx, job.asked, () => turns.settled());
  }
}
