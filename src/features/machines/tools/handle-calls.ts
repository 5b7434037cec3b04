/** The handlers of a machine's tools. Their arguments are already checked by their schemas. */

import type { Context } from '../../../core/execution/context.ts';
import { randomId } from '../../../core/kernel/random-id.ts';
import { describe, isJsonObject } from '../../../core/protocol/json.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import { StoreError } from '../../../core/store/store.ts';
import { keyIn, refusedInView, VIEW_META } from '../../apps/view-meta.ts';
import { HandleError } from '../handle-error.ts';
import type { HandleView } from '../handle-messages.ts';
import { handleUri, keyUri } from '../handle-record.ts';
import { type Handles, readerOf } from '../handles.ts';
import { keyIfAny } from '../keyed-instances.ts';
import { callNotBegun } from '../load-instance.ts';
import type { Caller, KeyedKind } from '../machine-definition.ts';
import { answerRefused, answerWith, answerWithList, liveData, type Naming } from './handle-answer.ts';
import type { Called, CalledAny, Paging } from './handle-arguments.ts';
import type { MachineApp } from './machine-app.ts';

/** The operations on handles that the tools call. */
export type HandlesPort = Pick<Handles, 'create' | 'createKeyed' | 'send' | 'get' | 'list' | 'end' | 'look'>;

export type Call<Args> = (args: Args, ctx: Context) => Promise<CallToolResult>;

interface Calls {
  readonly create: Call<Called>;
  /** Returns the handler that sends one event. */
  send(type: string): Call<Called>;
  /** Sends the event that the arguments name. */
  readonly sendAny: Call<CalledAny>;
  readonly get: Call<Called>;
  readonly list: Call<Paging>;
  readonly end: Call<Called>;
}

/** @param app the keys of views, and what views show; undefined for a machine without views */
export function callsOf(
  naming: Naming,
  handles: HandlesPort,
  app?: Pick<MachineApp, 'keys' | 'shown'>,
  keyed?: KeyedKind,
): Calls {
  const { name } = naming;
  /** The address of the instance of a call; undefined for a caller who has none. */
  const uriOf = (handle: string | undefined, ctx: Context): string | undefined => {
    if (!keyed) return handleUri(name, handle ?? '');
    const key = keyIfAny({ name, keyed }, handle, callerOf(ctx));
    return key === undefined ? undefined : keyUri(name, key);
  };
  /** The caller of an instance: a call with the key of a view of this instance comes from a person. */
  const callerFor = (handle: string | undefined, ctx: Context): Caller => {
    const uri = app && uriOf(handle, ctx);
    const opened = uri !== undefined && app?.keys.open(keyIn(ctx.meta), ctx.principal, uri);
    return opened ? { ...readerOf(callerOf(ctx)), inView: true } : callerOf(ctx);
  };
  const answered = async (
    does: string,
    call: () => Promise<HandleView>,
    ctx: Context,
    opens = false,
  ): Promise<CallToolResult> => {
    try {
      const view = await call();
      const result = answerWith(view, naming, does, ctx.meta);
      const { handle, key, expires } = view;
      const uri = key === undefined ? handleUri(name, handle) : keyUri(name, key);
      const { principal } = ctx;
      const isShown = app && (ctx.client.views || keyIn(ctx.meta) !== undefined);
      const meta = {
        ...(app && opens ? { key: app.keys.create(principal, uri, expires === '' ? FAR : Date.parse(expires)) } : {}),
        // The page shows all of it with its first picture, and does not grow when its watch is answered.
        ...(isShown
          ? { live: liveData(app.shown(await handles.look(name, key ?? handle, readerOf(callerOf(ctx))))) }
          : {}),
      };
      return Object.keys(meta).length === 0 ? result : { ...result, _meta: { ...result._meta, [VIEW_META]: meta } };
    } catch (error) {
      const refused = answerRefused(error, naming, ctx.meta);
      return app && error instanceof HandleError ? refusedInView(refused, error.reason) : refused;
    }
  };
  const send = ({ handle, key, data }: Called, type: string, ctx: Context): Promise<CallToolResult> => {
    if (!isJsonObject(data))
      throw new TypeError(`the schema of event "${type}": expected it to produce an object, got ${describe(data)}`);
    return answered(
      type,
      async () =>
        handles.send(name, handle, { type, data }, callerFor(handle, ctx), {
          idempotencyKey: key ?? (await ownKey(ctx)),
        }),
      ctx,
    );
  };
  return {
    create: ({ handle, key, data }, ctx) =>
      answered(
        'create',
        async () =>
          keyed
            ? handles.createKeyed(name, handle, data, callerOf(ctx))
            : handles.create(name, data, callerOf(ctx), { idempotencyKey: key ?? (await ownKey(ctx)) }),
        ctx,
        true,
      ),
    send: (type) => async (called, ctx) => send(called, type, ctx),
    sendAny: async ({ event, ...called }, ctx) => send(called, event, ctx),
    get: ({ handle }, ctx) => answered('get', () => handles.get(name, handle, callerFor(handle, ctx)), ctx, true),
    end: ({ handle }, ctx) => answered('end', () => handles.end(name, handle, callerFor(handle, ctx)), ctx),
    async list(page, ctx) {
      try {
        const { handles: views, after } = await handles.list(name, callerOf(ctx), page);
        return answerWithList(views, after, naming, ctx.principal === ANONYMOUS, ctx.meta);
      } catch (error) {
        return answerRefused(error, naming, ctx.meta);
      }
    },
  };
}

/** The principal of a request if nothing authenticates clients. */
const ANONYMOUS = 'anonymous';

/** The end of a key of a view of an instance that does not expire, in milliseconds since 1970. */
const FAR = Date.UTC(2_100, 0);

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
    return await ctx.step('troupe.call', () => randomId());
  } catch (error) {
    if (error instanceof Error && error.cause instanceof StoreError) throw callNotBegun(error.cause);
    throw error;
  }
}
