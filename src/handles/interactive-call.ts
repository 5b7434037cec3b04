/** Keeps a call open while its instance has questions, and asks its client. */
import type { Context } from '../input/context.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import type { TurnLoop } from './turn-loop.ts';

/** Resolves when this call can ask no further question. An instance that crashes in the meantime asks again. */
export async function callInteractively(job: QueuedCall, ctx: Context, turns: TurnLoop): Promise<void> {
  for (let last: Activation | undefined; ; ) {
    await turns.settled();
    const { awake } = turns;
    if (!awake || awake === last || ctx.signal.aborted) return;
    last = awake;
    await awake.desk.put(ctx, job.asked, () => turns.settled());
  }
}
