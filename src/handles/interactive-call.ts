/** Keeps a call open while its instance has questions, and asks its client. */
import type { Context } from '../input/context.ts';
import type { Activation } from './activation.ts';
import type { QueuedCall } from './bounded-mailbox.ts';
import type { TurnLoop } from './turn-loop.ts';

/** Resolves when this call can ask no further question. An instance that crashes in the meantime asks again. */
export async function callInteractively(call: QueuedCall, ctx: Context, turns: TurnLoop): Promise<void> {
  for (let last: Activation | undefined; ; ) {
    await turns.settled();
    const { activation } = turns;
    if (!activation || activation === last || ctx.signal.aborted) return;
    last = activation;
    await activation.inputs.askAll(ctx, call.asked, () => turns.settled());
  }
}
