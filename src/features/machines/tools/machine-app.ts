/** The page of a machine: the chart, and a form for each event. It shows any instance, and holds the data of none. */

import { nodesOf } from '../../../core/kernel/charts/chart.ts';
import type { ChartNode } from '../../../core/kernel/charts/chart-node.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { describe, isJsonObject } from '../../../core/protocol/json.ts';
import { ANSWER_TOOL, WATCH_TOOL } from '../../../core/protocol/views.ts';
import { DefinitionError } from '../../../core/registry/definition-checks.ts';
import type { CompiledSchema } from '../../../core/schema/schema.ts';
import type { ServedPage } from '../../apps/app-page.ts';
import { generatedPage } from '../../apps/generated-page.ts';
import type { MachinePage, ViewEvent } from '../../apps/view-definition.ts';
import type { ViewKeys } from '../../apps/view-keys.ts';
import { followerOf } from '../../asking/form.ts';
import { type FormField, formFieldsOf } from '../../asking/form-model.ts';
import type { AnyMachine, MachineAppOptions } from '../define-machine.ts';
import type { LiveHandle } from '../handle-messages.ts';
import { handleUri } from '../handle-record.ts';

/** The parts of a server that the views of its machines use. */
export interface ViewHost {
  /** The name of the server. */
  readonly server: string;
  readonly clock: Clock;
  readonly keys: ViewKeys;
}

/** The view of a machine's instances. */
export interface MachineApp {
  readonly page: ServedPage;
  readonly keys: ViewKeys;
  /** The tools whose results open the page. */
  readonly on: readonly ('create' | 'get')[];
  /** The instance as its author lets views show it. */
  shown(live: LiveHandle): LiveHandle;
}

const OPENING = ['create', 'get'] as const;
const MEMBERS = ['on', 'title', 'hide', 'order', 'confirm', 'labels'];

/** @throws {DefinitionError} for an invalid option; undefined for a machine without views */
export function machineApp(
  definition: AnyMachine,
  chart: ChartNode,
  members: ReadonlyMap<string, CompiledSchema>,
  { server, clock, keys }: ViewHost,
): MachineApp | undefined {
  const { app = false, name, icons } = definition;
  if (app === false) return undefined;
  const options = optionsOf(app, `machine "${name}": app`, members);
  const { on = OPENING, title = definition.title ?? words(name), labels = {} } = options;
  const states = nodesOf(chart)
    .filter(({ path }) => path !== '')
    .map(({ path, key, type }) => ({ path, label: labelIn(labels, path) ?? words(key), final: type === 'final' }));
  const page: MachinePage = {
    kind: 'machine',
    server,
    title,
    machine: name,
    chart: { states },
    events: eventsOf(definition, options, members),
    watch: WATCH_TOOL,
    answer: ANSWER_TOOL,
    get: `${name}_get`,
    uri: handleUri(name, '{handle}'),
  };
  return {
    on,
    keys,
    shown: (live) => shownIn(live, options),
    page: generatedPage(server, {
      // A dot would make the address of one machine look like an earlier one of another.
      name: name.replaceAll('.', '~'),
      label: `machine "${name}"`,
      definition: page,
      async picture() {
        // Loaded with the first page: most servers are never asked for one.
        const { pagePictureOf } = await import('../../charts/chart-picture.ts');
        return pagePictureOf(chart, clock);
      },
      shown: { title, ...(icons ? { icons } : {}) },
      opener: `${name}_get`,
    }),
  };
}

function optionsOf(
  app: true | MachineAppOptions,
  where: string,
  members: ReadonlyMap<string, CompiledSchema>,
): MachineAppOptions {
  if (app === true) return {};
  const reject = (problem: string): never => {
    throw new DefinitionError(`${where}: ${problem}`);
  };
  if (!isJsonObject(app)) return reject(`expected true or options, got ${describe(app)}`);
  for (const [member, value] of Object.entries(app)) {
    if (!MEMBERS.includes(member)) reject(`${member}: no such option; there are ${MEMBERS.join(', ')}`);
    if (value === undefined) continue;
    if (member === 'title' ? typeof value !== 'string' : member === 'labels' ? !isJsonObject(value) : !isTexts(value))
      reject(
        `${member}: expected ${member === 'title' ? 'a string' : member === 'labels' ? 'an object' : 'a list of names'}, got ${describe(value)}`,
      );
  }
  const { on = OPENING, confirm = [] }: MachineAppOptions = app;
  for (const tool of on) if (!OPENING.includes(tool)) reject(`on: expected "create" or "get", got ${describe(tool)}`);
  for (const event of confirm)
    if (event !== 'end' && !members.has(event))
      reject(`confirm: "${event}" is no event; there are ${[...members.keys(), 'end'].join(', ')}`);
  return app;
}

function isTexts(value: unknown): value is readonly string[] {
  return Array.isArray(value) && value.every((each) => typeof each === 'string');
}

function eventsOf(
  { name, single = false, annotations = {} }: AnyMachine,
  { hide = [], order = [], labels = {}, confirm }: MachineAppOptions,
  members: ReadonlyMap<string, CompiledSchema>,
): readonly ViewEvent[] {
  const asksAgain = (event: string): boolean =>
    confirm ? confirm.includes(event) : event === 'end' || annotations[event]?.destructiveHint === true;
  const events = [...members].map(([event, { json }]): ViewEvent => {
    const fields = formFieldsOf(json, followerOf(json, `machine "${name}": events.${event}`));
    const { description, title } = json;
    return {
      name: event,
      tool: single ? `${name}_send` : `${name}_${event}`,
      title: labelIn(labels, event) ?? (typeof title === 'string' ? title : words(event)),
      ...(typeof description === 'string' ? { description } : {}),
      // One tool for all events takes the members of an event as one argument.
      fields: single && fields.length > 0 ? [dataField(fields)] : fields,
      ...(single ? { fixed: { event } } : {}),
      confirm: asksAgain(event),
    };
  });
  const end: ViewEvent = {
    name: 'end',
    tool: `${name}_end`,
    title: labelIn(labels, 'end') ?? 'End',
    fields: [],
    always: true,
    confirm: asksAgain('end'),
  };
  return ordered([...events, end], ({ name: event }) => event, order).filter(
    ({ name: event }) => !hide.includes(event),
  );
}

function dataField(fields: readonly FormField[]): FormField {
  return { name: 'data', required: true, title: undefined, description: undefined, kind: 'group', fields };
}

function shownIn(live: LiveHandle, { hide = [], order = [], labels = {} }: MachineAppOptions): LiveHandle {
  const { view, timers } = live;
  const entries = isJsonObject(view) ? Object.entries(view).filter(([name]) => !hide.includes(name)) : undefined;
  return {
    ...live,
    ...(entries ? { view: Object.fromEntries(ordered(entries, ([name]) => name, order)) } : {}),
    timers: timers.map(({ label, ...timer }) => ({ ...timer, label: labelIn(labels, label) ?? label })),
  };
}

/** The items in the order of their names; the others follow in their own. */
function ordered<T>(items: readonly T[], nameOf: (item: T) => string, order: readonly string[]): readonly T[] {
  const rank = (item: T): number => {
    const place = order.indexOf(nameOf(item));
    return place === -1 ? order.length : place;
  };
  return [...items].sort((a, b) => rank(a) - rank(b));
}

/** A label may have the name of a member that every object has, such as `toString`. */
function labelIn(labels: Readonly<Record<string, string>>, name: string): string | undefined {
  return Object.hasOwn(labels, name) ? labels[name] : undefined;
}

/** A name in words. @example words('add_item') // 'Add item' */
function words(name: string): string {
  const spaced = name
    .replace(/[_.-]+/g, ' ')
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .trim();
  return spaced.charAt(0).toUpperCase() + spaced.slice(1);
}
