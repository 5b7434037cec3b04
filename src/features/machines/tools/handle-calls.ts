/** The handlers of a machine's tools. Their arguments are already checked by their schemas. */
import { nanoid } from 'nanoid';
import type { Context } from '../../../core/execution/context.ts';
import { describe, isJsonObject } from '../../../core/protocol/json.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import { StoreError } from '../../../core/store/store.ts';
import type { ViewKeys } from '../../apps/view-keys.ts';
import { keyIn, VIEW_META } from '../../apps/view-meta.ts';
import type { HandleView } from '../handle-messages.ts';
import { handleUri } from '../handle-record.ts';
import type { Handles } from '../handles.ts';
import { callNotBegun } from '../load-instance.ts';
import type { Caller } from '../machine-definition.ts';
import { answerRefused, answerWith, answerWithList, type Naming } from './handle-answer.ts';
import type { Called, CalledAny, Paging } from './handle-arguments.ts';

/** The operations on handles that the tools call. */
export type HandlesPort = Pick<Handles, 'create' | 'send' | 'get' | 'list' | 'end' | 'look'>;

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

/** @param keys the keys of views; undefined for a machine without views */
export function callsOf(naming: Naming, handles: HandlesPort, keys?: ViewKeys): Calls {
  const { name } = naming;
  /** The caller of an instance: a call with the key of a view of this instance comes from a person. */
  const callerFor = (handle: string, ctx: Context): Caller => {
    const opened = keys?.open(keyIn(ctx.meta), ctx.principal, handleUri(name, handle));
    return opened ? { principal: ctx.principal, ctx: undefined, inView: true } : callerOf(ctx);
  };
  const answered = async (call: () => Promise<HandleView>, opensFor?: string): Promise<CallToolResult> => {
    try {
      const view = await call();
      const result = answerWith(view, naming);
      if (!keys || opensFor === undefined) return result;
      const { handle, expires } = view;
      const key = keys.create(opensFor, handleUri(name, handle), Date.parse(expires));
      return { ...result, _meta: { [VIEW_META]: { key } } };
    } catch (error) {
      return answerRefused(error, naming);
    }
  };
  const send = ({ handle, key, data }: Called, type: string, ctx: Context): Promise<CallToolResult> => {
    if (!isJsonObject(data))
      throw new TypeError(`the schema of event "${type}": expected it to produce an object, got ${describe(data)}`);
    return answered(async () =>
      handles.send(name, handle, { type, data }, callerFor(handle, ctx), {
        idempotencyKey: key ?? (await ownKey(ctx)),
      }),
    );
  };
  return {
    create: ({ key, data }, ctx) =>
      answered(
        async () => handles.create(name, data, callerOf(ctx), { idempotencyKey: key ?? (await ownKey(ctx)) }),
        ctx.principal,
      ),
    send: (type) => async (called, ctx) => send(called, type, ctx),
    sendAny: async ({ event, ...called }, ctx) => send(called, event, ctx),
    get: ({ handle }, ctx) => answered(() => handles.get(name, handle, callerFor(handle, ctx)), ctx.principal),
    end: ({ handle }, ctx) => answered(() => handles.end(name, handle, callerFor(handle, ctx))),
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
  try {
    return await ctx.step('troupe.call', () => nanoid());
  } catch (error) {
    if (error instanceof Error && error.cause instanceof StoreError) throw callNotBegun(error.cause);
    throw error;
  }
}
