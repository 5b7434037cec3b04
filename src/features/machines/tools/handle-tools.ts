/** The tools of a machine: create, one for each event (or one for all), get, list and end. */
import type { ToolImplementation } from '../../../core/execution/execution.ts';
import type { ElementAccess } from '../../../core/messages/authorization-rule.ts';
import { cellIn } from '../../../core/protocol/cell.ts';
import type { JsonObject } from '../../../core/protocol/json.ts';
import type { Tool, ToolAnnotations } from '../../../core/protocol/types.ts';
import { opensPage } from '../../../core/protocol/views.ts';
import { DefinitionError } from '../../../core/registry/definition-checks.ts';
import type { Compiled } from '../../../core/registry/offers.ts';
import { compileOutput } from '../../../core/schema/compile-schema.ts';
import type { CompiledSchema } from '../../../core/schema/schema.ts';
import { compileLimits } from '../../guard/limits/call-limits.ts';
import type { AnyMachine } from '../define-machine.ts';
import { handleIn, type KeyedMachine, keyIfAny } from '../keyed-instances.ts';
import type { KeyedKind } from '../machine-definition.ts';
import type { Naming } from './handle-answer.ts';
import {
  addressArgument,
  creating,
  creatingKeyed,
  naming,
  paging,
  sending,
  sendingAny,
  signature,
} from './handle-arguments.ts';
import { type Call, callsOf, type HandlesPort } from './handle-calls.ts';
import type { MachineApp } from './machine-app.ts';
import {
  createDescription,
  eventDescription,
  getDescription,
  type MachineDescription,
  sendDescription,
} from './tool-descriptions.ts';
import { viewSchema } from './view-schema.ts';

export type CompiledTool = Compiled<Tool, ToolImplementation>;

/**
 * @param members the schema of each event's data, by type
 * @param app the view of the instances; undefined without one
 * @throws {DefinitionError | SchemaError}
 */
export function toolsOf(
  definition: AnyMachine,
  said: MachineDescription,
  members: ReadonlyMap<string, CompiledSchema>,
  handles: HandlesPort,
  app?: MachineApp,
): readonly CompiledTool[] {
  const { name, input, single = false, description } = definition;
  const label = `machine "${name}"`;
  const address = addressArgument(definition, label);
  const calls = callsOf(namingOf(name, single, members, said.keyed?.argument), handles, app, said.keyed);
  const view = {
    ...compileOutput(viewSchema(definition, said.chart), label),
    // An instance that began before a reload may finish on its earlier machine, whose states are others.
    check: compileOutput(viewSchema(definition, undefined), label).check,
  };
  const tool = <Args>(does: string, what: What<Args>): CompiledTool => {
    const opens = app?.on.some((each) => each === does) ? app.page.uri : undefined;
    return compiled(definition, does, what, opens, said.keyed);
  };
  const sends = single
    ? [
        tool('send', {
          description: sendDescription(said),
          input: sendingAny(members, `${label}: events`, address),
          annotations: { readOnlyHint: false },
          call: calls.sendAny,
        }),
      ]
    : [...members].map(([type, schema]) =>
        tool(type, {
          description: eventDescription(said, type, schema),
          input: sending(schema, `${label}: events.${type}`, address),
          annotations: { readOnlyHint: false },
          call: calls.send(type),
        }),
      );
  const { keyed } = said;
  const tools = [
    ...(keyed && keyed.create !== 'create'
      ? []
      : [
          tool('create', {
            description: createDescription(said, description),
            input: keyed ? creatingKeyed(input, `${label}: input`, address) : creating(input, `${label}: input`),
            output: view,
            annotations: { readOnlyHint: false, destructiveHint: false, idempotentHint: false },
            call: calls.create,
          }),
        ]),
    ...sends,
    tool('get', {
      description: getDescription(said, description),
      input: naming(label, address),
      output: view,
      annotations: { readOnlyHint: true },
      call: calls.get,
    }),
    // A caller with a key needs no list, and a list of all keys would reveal those of others.
    ...(keyed
      ? []
      : [
          tool('list', {
            description: `Lists your ${name} instances with their handles and states, oldest first.`,
            input: paging(label),
            annotations: { readOnlyHint: true, openWorldHint: false },
            call: calls.list,
          }),
        ]),
    tool('end', {
      description: `Ends the ${name} permanently: its work is aborted, and it accepts no more events.`,
      input: naming(label, address),
      annotations: { readOnlyHint: false, destructiveHint: true, openWorldHint: false },
      call: calls.end,
    }),
  ];
  const named = tools.map(({ key }) => key.slice(name.length + 1));
  for (const each of Object.keys(definition.limits ?? {}))
    if (!named.includes(each))
      throw new DefinitionError(`${label}: limits.${each}: there is no such tool; there are ${named.join(', ')}`);
  return tools;
}

function namingOf(
  name: string,
  single: boolean,
  members: ReadonlyMap<string, CompiledSchema>,
  argument: string | undefined,
): Naming {
  return {
    name,
    callOf(type) {
      const schema = members.get(type);
      const said = schema ? signature(schema) : '';
      const named = argument === undefined ? '' : `${argument}: string`;
      if (!single) return `${name}_${type} (${[named, said].filter((each) => each !== '').join(', ')})`;
      return `${name}_send (${named === '' ? '' : `${named}, `}event: "${type}"${said === '' ? '' : `, data: { ${said} }`})`;
    },
  };
}

/** The rules for a tool of a machine. */
function machineAccess(
  { name, scopes = [], eventScopes = {}, allow }: AnyMachine,
  does: string,
  keyed: KeyedKind | undefined,
): ElementAccess {
  const access: ElementAccess = {
    ...(keyed && { cellOf: cellOfCalls({ name, keyed }) }),
    scopes: [...scopes, ...(ownOf(eventScopes, does) ?? [])],
    allow,
    machine: { name, event: does },
  };
  if (does !== 'send') return access;
  // One tool sends every event.
  const demands = (args: JsonObject): readonly string[] => {
    const { event } = args;
    return (typeof event === 'string' ? ownOf(eventScopes, event) : undefined) ?? [];
  };
  return { ...access, demands };
}

/** The cells of calls on instances of keys. */
function cellOfCalls(kind: Pick<KeyedMachine, 'keyed' | 'name'>): NonNullable<ElementAccess['cellOf']> {
  return (args, { client, auth }) => {
    const given = kind.keyed.argument === undefined ? undefined : args[kind.keyed.argument];
    const caller = { principal: client.principal, auth, session: client.session?.id, ctx: undefined };
    const key = keyIfAny(kind, typeof given === 'string' ? given : undefined, caller);
    return key === undefined ? undefined : cellIn(handleIn(kind, key));
  };
}

/** An option of one event. An event may have the name of a member that every object has, such as `toString`. */
function ownOf<T>(options: Readonly<Partial<Record<string, T>>> | undefined, event: string): T | undefined {
  return options && Object.hasOwn(options, event) ? options[event] : undefined;
}

/** `output` is listed with the tools that start from nothing: the results of all others but the list have the same shape. */
interface What<Args> {
  readonly description: string;
  readonly input: CompiledSchema<Args>;
  readonly output?: CompiledSchema;
  readonly annotations: ToolAnnotations;
  readonly call: Call<Args>;
}

function compiled<Args>(
  machine: AnyMachine,
  does: string,
  { description, input, output, annotations, call }: What<Args>,
  opens: string | undefined,
  keyed: KeyedKind | undefined,
): CompiledTool {
  const { name, icons, timeoutMs, annotations: own, limits } = machine;
  const key = `${name}_${does}`;
  return {
    key,
    access: machineAccess(machine, does, keyed),
    definition: {
      name: key,
      description,
      ...(icons ? { icons } : {}),
      inputSchema: input.json,
      ...(output ? { outputSchema: output.json } : {}),
      annotations: { ...annotations, ...ownOf(own, does) },
      ...(opens === undefined ? {} : { _meta: opensPage(undefined, opens) }),
    },
    implementation: {
      label: `tool "${key}"`,
      input,
      output,
      timeoutMs,
      rerun: true,
      task: 'never',
      limits: compileLimits(ownOf(limits, does)),
      // The schema has checked the arguments against the type of the call.
      handler: (args, ctx) => call(args as Args, ctx),
    },
  };
}
