/** The page of a machine: the chart, and a form for each event. It shows any instance, and holds the data of none. */

import { nodesOf } from '../../../core/kernel/charts/chart.ts';
import type { ChartNode } from '../../../core/kernel/charts/chart-node.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import { describe, isJsonObject, type JsonValue } from '../../../core/protocol/json.ts';
import * as option from '../../../core/protocol/option-rows.ts';
import { ANSWER_TOOL, WATCH_TOOL } from '../../../core/protocol/views.ts';
import { DefinitionError } from '../../../core/registry/definition-checks.ts';
import type { CompiledSchema } from '../../../core/schema/schema.ts';
import type { ServedPage } from '../../apps/app-page.ts';
import { generatedPage } from '../../apps/generated-page.ts';
import { chartForView } from '../../apps/view-chart.ts';
import type { MachinePage, ViewEvent } from '../../apps/view-definition.ts';
import type { ViewKeys } from '../../apps/view-keys.ts';
import { textRows, translationsRow } from '../../apps/view-text-checks.ts';
import { label, textsFor, type ViewTexts } from '../../apps/view-texts.ts';
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

/** @throws {DefinitionError} for an invalid option; undefined for a machine without views */
export function machineApp(
  definition: AnyMachine,
  chart: ChartNode,
  members: ReadonlyMap<string, CompiledSchema>,
  { server, clock, keys }: ViewHost,
): MachineApp | undefined {
  const { app = false, name, icons } = definition;
  if (app === false) return undefined;
  const options = optionsOf(app, `machine "${name}": app`, members, chart);
  const { on = OPENING, title = definition.title ?? label(name), labels, words, translations = {} } = options;
  const texts: ViewTexts = { title, labels, words };
  const states = statesOf(chart);
  const events = eventsOf(definition, options, members);
  const page: MachinePage = {
    kind: 'machine',
    server,
    title,
    machine: name,
    states,
    texts,
    translations,
    events,
    watch: WATCH_TOOL,
    answer: ANSWER_TOOL,
    get: `${name}_get`,
    address: addressOfCalls(definition),
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
        if (options.chart === 'steps') return undefined;
        const { drawn, widest } = chartForView(chart, {
          titles: new Map(events.map(({ name: event, title: own }) => [event, own])),
          texts: [texts, ...Object.keys(translations).map((tag) => textsFor(texts, translations, tag))],
        });
        // Loaded with the first page: most servers are never asked for one.
        const { pagePictureOf } = await import('../../charts/chart-picture.ts');
        return pagePictureOf(drawn, clock, widest);
      },
      shown: { title, ...(icons ? { icons } : {}) },
      opener: `${name}_get`,
    }),
  };
}

function addressOfCalls({ key }: AnyMachine): string {
  if (key === undefined) return 'handle';
  return typeof key === 'string' ? '' : key.argument;
}

/** The paths of all states, each before its children. */
function statesOf(chart: ChartNode): readonly string[] {
  return nodesOf(chart).flatMap(({ path }) => (path === '' ? [] : [path]));
}

function optionsOf(
  app: true | MachineAppOptions,
  where: string,
  members: ReadonlyMap<string, CompiledSchema>,
  chart: ChartNode,
): MachineAppOptions {
  if (app === true) return {};
  if (!isJsonObject(app)) throw new DefinitionError(`${where}: expected true or options, got ${describe(app)}`);
  const events = [...members.keys(), 'end'];
  const known = { states: statesOf(chart), events };
  const rows: option.Rows<MachineAppOptions> = {
    on: option.expected('a list of "create" and "get"', (on) => areNamesOf(on, OPENING)),
    ...textRows(known),
    hide: option.expected('a list of names', option.areStrings),
    order: option.expected('a list of names', option.areStrings),
    confirm: option.expected(`a list of events: ${events.join(', ')}`, (confirm) => areNamesOf(confirm, events)),
    chart: option.oneOf('picture', 'steps'),
    translations: translationsRow(known),
  };
  option.check(`${where}: `, app, rows, DefinitionError);
  return app;
}

function areNamesOf(value: unknown, names: readonly string[]): boolean {
  return option.areStrings(value) && value.every((each) => names.includes(each));
}

function eventsOf(
  { name, single = false, annotations = {} }: AnyMachine,
  { hide = [], order = [], confirm }: MachineAppOptions,
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
      ...(typeof title === 'string' ? { title } : {}),
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

function shownIn(live: LiveHandle, options: MachineAppOptions): LiveHandle {
  const { view, output } = live;
  const blocked = live.blocked.filter(({ event }) => options.hide?.includes(event) !== true);
  return {
    ...live,
    blocked,
    ...(view === undefined ? {} : { view: membersIn(view, options) }),
    ...(output === undefined ? {} : { output: membersIn(output, options) }),
  };
}

/** The members that views show, in their order. */
function membersIn(value: JsonValue, { hide = [], order = [] }: MachineAppOptions): JsonValue {
  if (!isJsonObject(value)) return value;
  const entries = Object.entries(value).filter(([name]) => !hide.includes(name));
  return Object.fromEntries(ordered(entries, ([name]) => name, order));
}

/** The items in the order of their names; the others follow in their own. */
function ordered<T>(items: readonly T[], nameOf: (item: T) => string, order: readonly string[]): readonly T[] {
  const rank = (item: T): number => {
    const place = order.indexOf(nameOf(item));
    return place === -1 ? order.length : place;
  };
  return [...items].sort((a, b) => rank(a) - rank(b));
}
