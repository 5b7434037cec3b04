/** The handlers of a machine's tools. Their arguments are already checked by their schemas. */
import { nanoid } from 'nanoid';
import type { Context } from '../../input/context.ts';
import type { HandleView } from '../../messages/handle-messages.ts';
import { describe, isJsonObject } from '../../protocol/json.ts';
import type { CallToolResult } from '../../protocol/types.ts';
import type { Handles } from '../handles.ts';
import type { Caller } from '../machine-definition.ts';
import { answerRefused, answerWith, answerWithList, type Naming } from './handle-answer.ts';
import type { Called, CalledAny, Paging } from './handle-arguments.ts';

/** The operations on handles that the tools call. */
export type HandlesPort = Pick<Handles, 'create' | 'send' | 'get' | 'list' | 'end'>;

export type Call<Args> = (args: Args, ctx: Context) => Promise<CallToolResult>;

export interface Calls {
  readonly create: Call<Called>;
  /** Returns the handler that sends one event. */
  send(type: string): Call<Called>;
  /** Sends the event that the arguments name. */
  readonly sendAny: Call<CalledAny>;
  readonly get: Call<Called>;
  readonly list: Call<Paging>;
  readonly end: Call<Called>;
}

export function callsOf(naming: Naming, handles: HandlesPort): Calls {
  const { name } = naming;
  const answered = async (call: () => Promise<HandleView>): Promise<CallToolResult> => {
    try {
      return answerWith(await call(), naming);
    } catch (error) {
      return answerRefused(error, naming);
    }
  };
  const send = ({ handle, key, data }: Called, type: string, ctx: Context): Promise<CallToolResult> => {
    if (!isJsonObject(data))
      throw new TypeError(`the schema of event "${type}": expected it to produce an object, got ${describe(data)}`);
    return answered(async () =>
      handles.send(name, handle, { type, data }, callerOf(ctx), { idempotencyKey: key ?? (await ownKey(ctx)) }),
    );
  };
  return {
    create: ({ key, data }, ctx) =>
      answered(async () => handles.create(name, data, callerOf(ctx), { idempotencyKey: key ?? (await ownKey(ctx)) })),
    send: (type) => async (called, ctx) => send(called, type, ctx),
    sendAny: async ({ event, ...called }, ctx) => send(called, event, ctx),
    get: ({ handle }, ctx) => answered(() => handles.get(name, handle, callerOf(ctx))),
    end: ({ handle }, ctx) => answered(() => handles.end(name, handle, callerOf(ctx))),
    async list(page, ctx) {
      try {
        const { handles: views, after } = await handles.list(name, callerOf(ctx), page);
        return answerWithList(views, after, naming, ctx.principal === ANONYMOUS);
      } catch (error) {
        return answerRefused(error, naming);
      }
    },
  };
}

/** The principal of a request if nothing authenticates clients. */
const ANONYMOUS = 'anonymous';

function callerOf(ctx: Context): Caller {
  return { principal: ctx.principal, ctx };
}

/**
 * Creates an idempotency key for a call that may run again in another process, because its client can be asked. The recorded
 * step makes the second run a repetition of the first. Other calls run once.
 */
async function ownKey(ctx: Context): Promise<string | undefined> {
  const { era, capabilities } = ctx.client;
  const { elicitation, sampling, roots } = capabilities;
  if (era !== 'modern' || !(elicitation ?? sampling ?? roots)) return undefined;
  return ctx.step('troupe.call', () => nanoid());
}
