/** Compiles an author's machine: its tools, its resources, and its definition for the handles. */
import type { AnyMachineSnapshot, AnyStateMachine } from 'xstate';
import { eventsOf, fingerprint, readChart, takers } from '../../../core/kernel/charts/chart.ts';
import type { ChartNode } from '../../../core/kernel/charts/chart-node.ts';
import { describe, isObject } from '../../../core/protocol/json.ts';
import * as option from '../../../core/protocol/option-rows.ts';
import { checkMembers, DefinitionError } from '../../../core/registry/definition-checks.ts';
import type { PageResource } from '../../apps/app-page.ts';
import { checkScheduleName, readPlan } from '../../schedules/schedule-slots.ts';
import type { AnyMachine } from '../define-machine.ts';
import { MACHINE_MEMBERS } from '../definition-members.ts';
import { unaskableForms } from '../form-checks.ts';
import type { InstanceSchedule } from '../instance-slot.ts';
import { keyedOf } from '../keyed-kind.ts';
import { checkMachine } from '../machine-checks.ts';
import type { KeyedKind, MachineKind } from '../machine-definition.ts';
import { missingImplementations } from '../machine-references.ts';
import { emitRules } from '../messages/emitted-events.ts';
import { membersOf } from './handle-arguments.ts';
import type { HandlesPort } from './handle-calls.ts';
import { type MachineResource, resourcesOf } from './handle-resources.ts';
import { type CompiledTool, toolsOf } from './handle-tools.ts';
import { machineApp, type ViewHost } from './machine-app.ts';

/** A compiled machine, ready to be offered. */
export interface Toolset {
  readonly kind: MachineKind;
  readonly tools: readonly CompiledTool[];
  readonly resources: readonly (MachineResource | PageResource)[];
}

/** @throws {DefinitionError | SchemaError} for an invalid definition, with a correction */
export function compileMachine(definition: AnyMachine, handles: HandlesPort, views: ViewHost): Toolset {
  const { name, machine } = definition;
  checkName(name);
  const label = `machine "${name}"`;
  checkMembers(MACHINE_MEMBERS, label, definition);
  checkMachine(machine, label);
  for (const [version, old] of Object.entries(definition.previous ?? {}))
    checkMachine(old, `${label}, version ${version}`);
  const chart = readChart(machine);
  const missing = [...missingEvents(definition, chart), ...missingIn(definition)];
  if (missing.length > 0) throw new DefinitionError(`${label}: ${missing.join('\n- ')}`);
  const events = Object.keys(definition.events);
  for (const type of events) checkEvent(type, chart, definition, `${label}: events.${type}`);
  for (const type of Object.keys(definition.eventScopes ?? {}))
    if (!OWN.includes(type) && !events.includes(type))
      throw new DefinitionError(
        `${label}: eventScopes.${type}: expected one of ${[...OWN, ...events].join(', ')}. Use "scopes" for all of them`,
      );
  const members = new Map(
    Object.entries(definition.events).map(([type, schema]) => [type, membersOf(schema, `${label}: events.${type}`)]),
  );
  const keyed = keyedOf(definition, label);
  const isShared = keyed?.kind === 'argument' || keyed?.kind === 'tenant';
  const emits = emitRules(definition.emits, machine, isShared, label);
  const kind = { ...kindOf(definition, chart, events, keyed), emits };
  const app = machineApp(definition, chart, members, views);
  return {
    kind: { ...kind, schedules: schedulesOf(definition, chart, label) },
    tools: toolsOf(definition, { name, chart, events, keyed }, members, handles, app),
    resources: [...resourcesOf(definition, chart, handles, views.clock, app, keyed), ...(app?.page.resources ?? [])],
  };
}

/** Leaves room for `_create` within MCP 2025-11-25 tools, "Tool Names" (SEP-986). */
function checkName(name: unknown): void {
  if (typeof name === 'string' && /^[A-Za-z0-9_.-]{1,100}$/.test(name)) return;
  throw new DefinitionError(
    `machine ${typeof name === 'string' ? `"${name}"` : describe(name)}: expected a name of 1 to 100 letters, digits, "_", "-" or "."; use "title" for a display name`,
  );
}

/** Explains how to list the events, if the definition lists none. */
function missingEvents({ events }: Partial<AnyMachine>, chart: ChartNode): readonly string[] {
  if (events !== undefined && !isObject(events))
    return [`events: expected the events that clients may send, such as { pay: true }, got ${describe(events)}`];
  if (events !== undefined && Object.keys(events).length > 0) return [];
  const accepted = eventsOf(chart);
  const all = accepted.map((type) => `${/^[A-Za-z_$][\w$]*$/.test(type) ? type : `'${type}'`}: true`).join(', ');
  const write =
    accepted.length === 0
      ? 'The machine accepts none: register it as a tool, which runs it to its final state: server.tool(name, { machine })'
      : `Write those of the machine that a client may send: events: { ${all} }, with a schema in place of true for an event that has data`;
  return [`events: expected at least one event that clients may send, got none. ${write}`];
}

/** Lists what is missing in the machine, and in the earlier versions on which instances finish. */
function missingIn({ machine, previous = {} }: AnyMachine): readonly string[] {
  const problems = (each: AnyStateMachine): readonly string[] => [
    ...missingImplementations(each),
    ...unaskableForms(each),
  ];
  const earlier = Object.entries(previous).flatMap(([version, old]) =>
    problems(old).map((text) => `version ${version}: ${text}`),
  );
  return [...problems(machine), ...earlier];
}

/** The tools that every machine has. */
const OWN = ['create', 'get', 'list', 'end'];

/** S-01: clients can send only the events that are listed. */
function checkEvent(type: string, chart: ChartNode, { name, single }: AnyMachine, where: string): void {
  const refuse = (why: string): never => {
    throw new DefinitionError(`${where}: ${why}`);
  };
  if (type.startsWith('xstate.')) refuse("clients cannot send XState's own events. Remove it");
  if (type.includes('*'))
    refuse('expected the type of one event, got a wildcard. List each event that clients may send');
  if (takers(chart, type).length === 0)
    refuse(`no state accepts this event; the machine has ${eventsOf(chart).join(', ') || 'none'}`);
  if (single) return;
  if (OWN.includes(type))
    refuse(`every machine already has a tool ${name}_${type}. Rename the event or set single: true`);
  if (!/^[A-Za-z0-9_.-]+$/.test(type) || `${name}_${type}`.length > 128)
    refuse(
      `"${name}_${type}" is not a valid tool name: expected 1 to 128 letters, digits, "_", "-" or ".". Rename the event or set single: true`,
    );
}

/** @throws {DefinitionError} for a schedule whose event no state accepts; {TypeError | RangeError} for invalid dates */
function schedulesOf({ schedules = {} }: AnyMachine, chart: ChartNode, label: string): MachineKind['schedules'] {
  const all = new Map<string, InstanceSchedule>();
  for (const [name, given] of Object.entries(schedules)) {
    const where = `${label}: schedules.${name}`;
    checkScheduleName(where, name);
    const plan = readPlan(where, given, { event: option.needed(option.filled) });
    const { event } = given;
    if (event.startsWith('xstate.') || takers(chart, event).length === 0)
      throw new DefinitionError(
        `${where}: event: no state accepts "${event}"; the machine has ${eventsOf(chart).join(', ') || 'none'}`,
      );
    all.set(name, { ...plan, event });
  }
  return all.size === 0 ? undefined : all;
}

function kindOf(
  definition: AnyMachine,
  chart: ChartNode,
  events: readonly string[],
  keyed: KeyedKind | undefined,
): MachineKind {
  const { name, machine, previous, ttlMs, idleMs, view, migrate, version = fingerprint(chart) } = definition;
  return {
    name,
    machine,
    version,
    events,
    // The types of the definition guarantee that its view accepts a snapshot of this machine.
    ...(view ? { view: (snapshot: AnyMachineSnapshot) => Reflect.apply(view, definition, [snapshot]) } : {}),
    ...(migrate ? { migrate: (old) => migrate.call(definition, old) } : {}),
    previous,
    ttlMs,
    idleMs,
    keyed,
    ...(definition.app ? { hasViews: true } : {}),
  };
}
