/** The resources of a machine: each handle as JSON, and as an image of its chart with the current state marked. */

import type { Context } from '../../../core/execution/context.ts';
import type { LiveReader } from '../../../core/execution/execution.ts';
import type { ChartNode } from '../../../core/kernel/charts/chart-node.ts';
import { pathsIn } from '../../../core/kernel/charts/paths.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { AuthorizationRule, ElementAccess } from '../../../core/messages/authorization-rule.ts';
import type { Listed } from '../../../core/messages/registry-messages.ts';
import { ErrorCode, ProtocolError } from '../../../core/protocol/errors.ts';
import { writeJson } from '../../../core/protocol/json-text.ts';
import type { ResourceDefinition } from '../../../core/registry/define.ts';
import type { AnyMachine } from '../define-machine.ts';
import { HandleError } from '../handle-error.ts';
import type { HandleView, LiveHandle } from '../handle-messages.ts';
import { chartUri, handleUri } from '../handle-record.ts';
import { readerOf } from '../handles.ts';
import { keyIfAny } from '../keyed-instances.ts';
import type { Caller, KeyedKind } from '../machine-definition.ts';
import { liveData, viewData } from './handle-answer.ts';
import type { HandlesPort } from './handle-calls.ts';
import type { MachineApp } from './machine-app.ts';

/** Milliseconds that a client waits for the first layout of a machine. */
const PICTURE_MS = 2_000;
/** Maximum number of handles that a completion examines. */
const MAX_COMPLETED = 100;

/** A resource with the machine to which it belongs. */
export type MachineResource = ResourceDefinition &
  Pick<ElementAccess, 'machine'> & { readonly live?: LiveReader; readonly listed?: Listed };

export function resourcesOf(
  { name, title = name, icons, scopes = [], eventScopes = {}, allow }: AnyMachine,
  chart: ChartNode,
  handles: HandlesPort,
  clock: Clock,
  app: MachineApp | undefined,
  keyed: KeyedKind | undefined,
): readonly MachineResource[] {
  const own = keyed ? listeningRule(name, handles, allow) : allow;
  const rules = { scopes: [...scopes, ...(eventScopes.get ?? [])], allow: own, machine: { name, event: 'get' } };
  const variable = keyed ? 'key' : 'handle';
  const complete = {
    // The key of the caller itself. Who has which of the others is not listed.
    key(typed: string, _: unknown, ctx: Context): readonly string[] {
      const own = keyed && keyIfAny({ name, keyed }, undefined, { principal: ctx.principal, ctx });
      return own?.startsWith(typed) ? [own] : [];
    },
    async handle(typed: string, _: unknown, ctx: Context): Promise<readonly string[]> {
      const caller = { principal: ctx.principal, ctx: undefined };
      const { handles: views } = await handles.list(name, caller, { limit: MAX_COMPLETED });
      return views.map(({ handle }) => handle).filter((handle) => handle.startsWith(typed));
    },
  };
  const found = async <T>(uri: string, reading: Promise<T>): Promise<T> => {
    try {
      return await reading;
    } catch (error) {
      throw error instanceof HandleError ? notThere(error, uri) : error;
    }
  };
  // Reading a resource asks no questions, because the client has not called a tool.
  const readerFor = (ctx: Context): Caller => readerOf({ principal: ctx.principal, ctx });
  const look = (uri: string, handle: unknown, ctx: Context): Promise<HandleView> =>
    found(uri, handles.get(name, String(handle), readerFor(ctx)));
  const shown = app?.shown ?? ((view: LiveHandle) => view);
  const live: LiveReader = async ({ uri, variables }, ctx) =>
    liveData(shown(await found(uri, handles.look(name, String(variables[variable]), readerFor(ctx)))));
  const shared = {
    complete: keyed ? { key: complete.key } : { handle: complete.handle },
    ...(icons ? { icons } : {}),
    cacheScope: 'private',
    ...rules,
  } as const;
  return [
    {
      uri: handleUri(name, `{${variable}}`),
      name,
      title,
      description: `One ${name}: its state, and which events it accepts next`,
      mimeType: 'application/json',
      ...shared,
      live,
      // Views read it where their host does not let them wait for it.
      handler: async (asked, ctx) =>
        writeJson(
          app && ctx.client.views
            ? await live(asked, ctx)
            : viewData(await look(asked.uri, asked.variables[variable], ctx)),
          2,
        ),
    },
    {
      uri: chartUri(name, `{${variable}}`),
      name: `${name}_chart`,
      title: `${title}: the chart`,
      description: `The statechart of one ${name} as an image with its current state marked`,
      mimeType: 'image/svg+xml',
      ...shared,
      async handler({ uri, variables }, ctx) {
        const { handle, key, state } = await look(uri, variables[variable], ctx);
        const active = pathsIn(state);
        const title = `${name} ${key ?? handle}: ${active.join(' & ')}`;
        // Loaded with the first picture: most servers are never asked for one.
        const { pictureOf } = await import('../../charts/chart-picture.ts');
        return pictureOf(chart, { title, active, clock, waitMs: PICTURE_MS });
      },
    },
  ];
}

/** The rule of a machine, and a role for each subscription: what a caller may not read, it does not learn to have changed either. */
function listeningRule(name: string, handles: HandlesPort, allow: AuthorizationRule | undefined): AuthorizationRule {
  return async (call, ctx) => {
    const { method, principal, auth } = call;
    if (method === 'resources/subscribe' || method === 'subscriptions/listen') {
      const reader: Caller = { principal, auth, session: ctx.session?.id, ctx: undefined };
      try {
        await handles.get(name, String(call.arguments.key), reader);
      } catch (error) {
        if (error instanceof HandleError) return { hidden: true };
        throw error;
      }
    }
    return allow ? allow(call, ctx) : true;
  };
}

/** A handle that the caller may not read counts as not found (S-04). Other failures are reported as such. */
function notThere({ reason, message }: HandleError, uri: string): ProtocolError {
  const gone = reason === 'unknown' || reason === 'expired';
  return gone
    ? new ProtocolError(ErrorCode.ResourceNotFound, reason === 'expired' ? message : 'Resource not found', { uri })
    : new ProtocolError(reason === 'busy' ? ErrorCode.Overloaded : ErrorCode.InternalError, message);
}
