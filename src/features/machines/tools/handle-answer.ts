/** Formats the results of a machine's tools: text for the model, the same as structured content, and the events accepted next. */

import { failed } from '../../../core/execution/tool-result.ts';
import { pathsIn } from '../../../core/kernel/charts/paths.ts';
import { ErrorCode, ProtocolError } from '../../../core/protocol/errors.ts';
import type { JsonObject } from '../../../core/protocol/json.ts';
import { namePlaces, wantsNames, withPlaces } from '../../../core/protocol/named-tools.ts';
import type { CallToolResult } from '../../../core/protocol/types.ts';
import { courseText } from '../course.ts';
import { HandleError } from '../handle-error.ts';
import type { HandleCourse, HandleView, LiveHandle } from '../handle-messages.ts';
import { plainText } from './plain-text.ts';

/** The names of a machine's tools. */
export interface Naming {
  /** The name of the machine. */
  readonly name: string;
  /** Describes the call that sends an event, such as `order_add_item (sku: string)`. */
  callOf(event: string): string;
}

/** Returns an instance as structured content, which is also the text of its resource. */
export function viewData(view: HandleView): JsonObject {
  const { handle, key, state, status, accepts, version, created, expires, course } = view;
  return {
    ...(course && tellsMore(course) ? { happened: courseText(course) } : {}),
    ...(key === undefined ? { handle } : { key }),
    state,
    status,
    ...(view.view === undefined ? {} : { view: view.view }),
    accepts,
    ...(view.asks === undefined ? {} : { asks: view.asks.map((ask) => ({ ...ask })) }),
    version,
    ...(view.output === undefined ? {} : { output: view.output }),
    ...(view.failure === undefined ? {} : { failure: view.failure }),
    ...(created === '' ? {} : { created }),
    ...(expires === '' ? {} : { expires }),
  };
}

/** Returns an instance as its views show it. */
export function liveData({
  asks,
  timers,
  blocked,
  now,
  ...view
}: LiveHandle): JsonObject & { readonly version: number } {
  return {
    ...viewData(view),
    // A view knows its instance by one name.
    ...(view.key === undefined ? {} : { handle: view.key }),
    version: view.version,
    asks: asks.map((ask) => ({ ...ask })),
    timers: timers.map((timer) => ({ ...timer })),
    blocked: blocked.map((each) => ({ ...each })),
    now,
  };
}

/**
 * @param does what the call did: the type of its event, or `create`, `get` or `end`
 * @param meta of the call, which may ask for the places of names
 */
export function answerWith(view: HandleView, naming: Naming, does: string, meta: JsonObject): CallToolResult {
  const data = [
    // The model has not caused these changes, and would otherwise act on what it knew.
    ...(view.unseen ? [`Since you last looked: ${view.unseen.join('; ')}`] : []),
    ...happened(view, does),
    `${naming.name} ${view.key ?? view.handle}: ${stateText(view)}`,
    ...about(view),
  ];
  // A call that shows a failed instance has succeeded. A call that made it fail has not.
  const failed = view.status === 'failed' && does !== 'get' && does !== 'end';
  return withNames(data, next(view, naming), naming, meta, (text) => ({
    content: [{ type: 'text', text }],
    structuredContent: viewData(view),
    ...(failed ? { isError: true } : {}),
  }));
}

/**
 * Formats a result whose text ends with advice, in which this server names its tools.
 *
 * @param data lines, in which the same words may occur
 */
function withNames(
  data: readonly string[],
  advice: readonly string[],
  { name }: Naming,
  meta: JsonObject,
  format: (text: string) => CallToolResult,
): CallToolResult {
  const text = [...data, ...advice].join('\n');
  const from = data.join('\n').length;
  return withPlaces(format(text), wantsNames(meta) ? namePlaces(text, from, `${name}_`) : []);
}

/** Says what the call has led to. The state alone does not show that a call has changed nothing, or why it came back. */
function happened({ course }: HandleView, does: string): readonly string[] {
  if (!course) return [];
  if (tellsMore(course)) return [`${does}: ${courseText(course)}`];
  return does === 'get' || does === 'create' ? [] : [`${does}: done, still in state ${course.states.join('')}`];
}

/** True if a course has more than the state of now. */
function tellsMore({ states, reasons }: HandleCourse): boolean {
  return states.length > 1 || reasons.length > 0;
}

function stateText({ state, status }: HandleView): string {
  const paths = pathsIn(state).join(' & ');
  return status === 'active' || status === 'absent'
    ? paths
    : `${status}${paths === '' || paths === status ? '' : ` (in ${paths})`}`;
}

function about({ view, output, failure }: HandleView): readonly string[] {
  return [
    ...(view === undefined ? [] : plainText(view, isLeafless(view) ? '' : 'view')),
    ...(output === undefined ? [] : plainText(output, 'result')),
    ...(failure === undefined ? [] : [`It failed: ${failure}`]),
  ];
}

/** An object is listed by its members, without a heading. */
function isLeafless(value: unknown): boolean {
  return typeof value === 'object' && value !== null;
}

function next(view: HandleView, naming: Naming): readonly string[] {
  const { status, asks, expires } = view;
  if (status === 'absent' && view.accepts.length === 0) return [`Call ${naming.name}_create to create it.`];
  const asked = (asks ?? []).map(
    ({ message }) => `Waiting for an answer from the user${message ? `: ${message}` : '.'}`,
  );
  if (status !== 'active' && status !== 'absent') return ['It accepts no more events.'];
  return [
    ...asked,
    ...(asks && asks.length > 0 ? [`Call ${naming.name}_get to ask again.`] : []),
    ...accepted(view, naming),
    ...(expires === '' ? [] : [`It expires ${expires}.`]),
  ];
}

/** The events that are accepted next, each as a call; without any, what to do instead. */
function accepted({ accepts, deadEnd }: Pick<HandleView, 'accepts' | 'deadEnd'>, naming: Naming): readonly string[] {
  if (accepts.length > 0) return ['Accepted next:', ...accepts.map((event) => `- ${naming.callOf(event)}`)];
  return [
    deadEnd === true
      ? `No event is accepted now, and nothing leads out of this state. Call ${naming.name}_end if it is not needed.`
      : `No event is accepted now: the ${naming.name} continues by itself. Call ${naming.name}_get later to see the result.`,
  ];
}

const HELP = { get: 'to see its data', list: 'to find your handles', create: 'to create a new one' } as const;

function helpful(tools: HandleError['tools'], { name }: Naming): readonly string[] {
  if (tools.length === 0) return [];
  return [`Call ${tools.map((tool) => `${name}_${tool} ${HELP[tool]}`).join(', or ')}.`];
}

/** Formats a page of instances. Anonymous callers cannot list any. */
export function answerWithList(
  views: readonly HandleView[],
  after: string | undefined,
  naming: Naming,
  anonymous: boolean,
  meta: JsonObject,
): CallToolResult {
  const lines = views.map((view) => `- ${view.handle}: ${stateText(view)}`);
  const none = anonymous
    ? `Nothing is listed because no user is signed in. To use a ${naming.name}, you need its handle.`
    : `There is no ${naming.name}${after === undefined ? '' : ' on this page'}.`;
  const more = after === undefined ? [] : [`There are more. Call ${naming.name}_list with after: "${after}".`];
  return withNames(lines.length === 0 ? [none] : lines, more, naming, meta, (text) => ({
    content: [{ type: 'text', text }],
    structuredContent: { handles: views.map(viewData), ...(after === undefined ? {} : { after }) },
  }));
}

/**
 * Converts a rejected call to a result that the model can act on. A fault that no model can correct becomes an error
 * (R-10, R-18).
 *
 * @throws {ProtocolError} if the server has no room or cannot persist the call; any other error unchanged
 */
export function answerRefused(error: unknown, naming: Naming, meta: JsonObject): CallToolResult {
  if (!(error instanceof HandleError)) throw error;
  const { reason, message, next, tools, incident } = error;
  if (reason === 'busy') throw new ProtocolError(ErrorCode.Overloaded, message, { reason: 'overloaded' });
  if (reason === 'storage') throw new ProtocolError(ErrorCode.InternalError, message, { reason: 'storage' });
  if (incident !== undefined) throw new ProtocolError(ErrorCode.InternalError, message, { incident });
  const advice = [...(next ? accepted(next, naming) : []), ...helpful(tools, naming)];
  return withNames([message], advice, naming, meta, failed);
}
