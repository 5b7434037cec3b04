/** What the tools of a machine answer: words for the model, the same as data, and what is accepted next. */

import { pathsIn } from '../../charts/paths.ts';
import type { HandleView } from '../../messages/handle-messages.ts';
import { ErrorCode, ProtocolError } from '../../protocol/errors.ts';
import type { JsonObject } from '../../protocol/json.ts';
import type { CallToolResult } from '../../protocol/types.ts';
import { failed } from '../../results/tool-result.ts';
import { HandleError } from '../handle-error.ts';
import { plainText } from './plain-text.ts';

/** How a machine's tools are called. */
export interface Naming {
  /** The machine's name. */
  readonly name: string;
  /** How an event is sent, such as `order_add_item (sku: string)`. */
  callOf(event: string): string;
}

export const VIEW_SCHEMA = {
  type: 'object',
  properties: {
    handle: { type: 'string', description: 'What the other tools of this machine take' },
    state: { description: 'The state; an object, where states are inside of states' },
    status: { type: 'string', enum: ['active', 'done', 'failed', 'ended'] },
    view: { description: 'What it is about' },
    accepts: { type: 'array', items: { type: 'string' }, description: 'The events that are taken now' },
    asks: {
      type: 'array',
      items: {
        type: 'object',
        properties: { id: { type: 'string' }, kind: { type: 'string' }, message: { type: 'string' } },
        required: ['id', 'kind'],
      },
      description: 'What it waits for its user to answer',
    },
    version: { type: 'integer', description: 'Grows with each change' },
    output: { description: 'The result, once it is done' },
    failure: { type: 'string', description: 'Why it failed' },
    created: { type: 'string' },
    expires: { type: 'string' },
  },
  required: ['handle', 'state', 'status', 'accepts', 'version', 'created', 'expires'],
} as const satisfies JsonObject;

export const LIST_SCHEMA = {
  type: 'object',
  properties: {
    handles: { type: 'array', items: VIEW_SCHEMA },
    after: { type: 'string', description: 'Give it as "after" for the next page' },
  },
  required: ['handles'],
} as const satisfies JsonObject;

/** An instance as structured content, and as the text of its resource. */
export function viewData(view: HandleView): JsonObject {
  const { handle, state, status, accepts, version, created, expires } = view;
  return {
    handle,
    state,
    status,
    ...(view.view === undefined ? {} : { view: view.view }),
    accepts,
    ...(view.asks === undefined ? {} : { asks: view.asks.map((ask) => ({ ...ask })) }),
    version,
    ...(view.output === undefined ? {} : { output: view.output }),
    ...(view.failure === undefined ? {} : { failure: view.failure }),
    created,
    expires,
  };
}

export function answerWith(view: HandleView, naming: Naming): CallToolResult {
  return { content: [{ type: 'text', text: viewText(view, naming) }], structuredContent: viewData(view) };
}

function viewText(view: HandleView, naming: Naming): string {
  return [`${naming.name} ${view.handle}: ${stateText(view)}`, ...about(view), ...next(view, naming)].join('\n');
}

function stateText({ state, status }: HandleView): string {
  const paths = pathsIn(state).join(' & ');
  return status === 'active' ? paths : `${status}${paths === '' || paths === status ? '' : ` (in ${paths})`}`;
}

function about({ view, output, failure }: HandleView): readonly string[] {
  return [
    ...(view === undefined ? [] : plainText(view, isLeafless(view) ? '' : 'view')),
    ...(output === undefined ? [] : plainText(output, 'result')),
    ...(failure === undefined ? [] : [`It failed: ${failure}`]),
  ];
}

/** An object's members speak for themselves. */
function isLeafless(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function next({ status, accepts, asks, expires }: HandleView, naming: Naming): readonly string[] {
  const asked = (asks ?? []).map(({ message }) => `It waits for its user to answer${message ? `: ${message}` : '.'}`);
  if (status !== 'active') return ['It takes no more events.'];
  return [
    ...asked,
    ...(asks && asks.length > 0 ? [`${naming.name}_get asks again.`] : []),
    ...accepted(accepts, naming),
    `It expires ${expires}.`,
  ];
}

function accepted(events: readonly string[], naming: Naming): readonly string[] {
  if (events.length === 0) return ['No event is accepted now: it goes on by itself.'];
  return ['Accepted next:', ...events.map((event) => `- ${naming.callOf(event)}`)];
}

/** A page of instances. Without a principal there is none to list. */
export function answerWithList(
  views: readonly HandleView[],
  after: string | undefined,
  naming: Naming,
  anonymous: boolean,
): CallToolResult {
  const lines = views.map((view) => `- ${view.handle}: ${stateText(view)}`);
  const none = anonymous
    ? `Nobody has signed in, so nothing is listed: each ${naming.name} is known to whoever has its handle.`
    : `There is no ${naming.name}${after === undefined ? '' : ' on this page'}.`;
  const more = after === undefined ? [] : [`There are more: call ${naming.name}_list with after: "${after}".`];
  return {
    content: [{ type: 'text', text: [...(lines.length === 0 ? [none] : lines), ...more].join('\n') }],
    structuredContent: { handles: views.map(viewData), ...(after === undefined ? {} : { after }) },
  };
}

/**
 * A call that was refused, as a result that the model can act on; but what no model can mend is an error (RELIABILITY 3.2, R-10,
 * R-18).
 *
 * @throws {ProtocolError} for a server that has no room, or cannot keep what came of the call; anything that is no refusal, as it is
 */
export function answerRefused(error: unknown, naming: Naming): CallToolResult {
  if (!(error instanceof HandleError)) throw error;
  const { reason, message, accepts, incident } = error;
  if (reason === 'busy') throw new ProtocolError(ErrorCode.Overloaded, message, { reason: 'overloaded' });
  if (reason === 'storage') throw new ProtocolError(ErrorCode.InternalError, message, { reason: 'storage' });
  if (incident !== undefined) throw new ProtocolError(ErrorCode.InternalError, message, { incident });
  return failed([message, ...(accepts === undefined ? [] : accepted(accepts, naming))].join('\n'));
}
