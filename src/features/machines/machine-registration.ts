/**
 * Registration of machines. Each machine is a kind of handle with a set of tools and resources, registered together or
 * not at all.
 */

import { skillNameOf } from '../../core/protocol/skills.ts';
import type { ResourceDefinition } from '../../core/registry/define.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import type { Registration } from '../../core/registry/registration.ts';
import type { OfferedSkills } from '../skills/offered-skills.ts';
import type { AnyMachine } from './define-machine.ts';
import type { Handles } from './handles.ts';
import type { MachineKind } from './machine-definition.ts';
import type { MachineRegistration } from './registered-machines.ts';
import type { CompiledTool } from './tools/handle-tools.ts';
import type { ViewHost } from './tools/machine-app.ts';
import { compileMachine, type Toolset } from './tools/machine-tools.ts';

interface MachinesOptions {
  readonly views: ViewHost;
  readonly handles: Handles;
  /** Separate registrations, because generated tools and resources must not be copied to another server. */
  readonly tools: Pick<Registration<CompiledTool>, 'replaceSource' | 'enable' | 'disable'>;
  readonly resources: Pick<Registration<ResourceDefinition>, 'replaceSource' | 'enable' | 'disable'>;
  /** The manuals of machines. */
  readonly skills: Pick<OfferedSkills, 'manual' | 'withdrawManual'>;
}

/** Maximum number of earlier versions of a machine that are kept while machines are replaced at run time. */
const MAX_EARLIER = 16;

interface Offered {
  readonly definition: AnyMachine;
  readonly source: string;
  readonly toolset: Toolset;
}

export function machineRegistration({
  views,
  handles,
  tools,
  resources,
  skills,
}: MachinesOptions): MachineRegistration {
  const offered = new Map<string, Offered>();
  /** The last definition of each machine, including removed ones. */
  const defined = new Map<string, MachineKind>();
  const show = (name: string, toolset: Pick<Toolset, 'tools' | 'resources'> | undefined): void => {
    tools.replaceSource(sourceOfMachine(name), toolset?.tools ?? []);
    resources.replaceSource(sourceOfMachine(name), toolset?.resources ?? []);
  };
  const showManual = ({ definition, toolset }: Omit<Offered, 'source'>): void => {
    if (definition.skill)
      skills.manual(
        definition,
        toolset.tools.map((tool) => tool.definition),
      );
    else skills.withdrawManual(definition.name);
  };
  const put = (definition: AnyMachine, source: string): void => {
    const { name } = definition;
    const before = offered.get(name);
    if (before?.definition === definition && before.source === source) return;
    const toolset = compileMachine(definition, handles, views);
    if (definition.skill && skillNameOf(name) === undefined)
      throw new DefinitionError(`machine "${name}": skill: expected a name with a letter or a digit for its manual`);
    const kind = withEarlier(toolset.kind, defined.get(name));
    try {
      show(name, toolset);
      handles.define(kind);
    } catch (error) {
      show(name, before?.toolset);
      throw error;
    }
    defined.set(name, kind);
    offered.set(name, { definition, source, toolset });
    showManual({ definition, toolset });
  };
  const remove = (name: string): void => {
    if (!offered.delete(name)) throw new DefinitionError(`no machine "${name}" is registered`);
    show(name, undefined);
    skills.withdrawManual(name);
    handles.withdraw(name);
  };
  const back = ({ definition, source }: Offered): void => {
    try {
      put(definition, source);
    } catch {
      // Another source has taken one of its names in the meantime.
    }
  };
  const named = (type: 'enable' | 'disable', name: string): void => {
    const found = offered.get(name);
    if (!found) throw new DefinitionError(`no machine "${name}" is registered`);
    for (const { key } of found.toolset.tools) tools[type](key);
    for (const { uri } of found.toolset.resources) resources[type](uri);
    if (type === 'enable') showManual(found);
    else skills.withdrawManual(name);
  };
  const enable = (name: string): void => named('enable', name);
  const disable = (name: string): void => named('disable', name);
  return {
    enable,
    disable,
    remove,
    definitions: () => [...offered.values()].map(({ definition }) => definition),
    register(definition) {
      const { name } = definition;
      const taken = offered.get(name);
      if (taken) throw new DefinitionError(alreadyThere(name, taken.source));
      put(definition, 'code');
      return { key: name, enable: () => enable(name), disable: () => disable(name), remove: () => remove(name) };
    },
    update(definition) {
      const before = offered.get(definition.name);
      if (!before) throw new DefinitionError(`no machine "${definition.name}" is registered`);
      put(definition, before.source);
    },
    replaceSource(source, definitions) {
      const names = new Set<string>();
      for (const { name } of definitions) {
        const taken = offered.get(name);
        if (names.has(name)) throw new DefinitionError(`${source} defines machine "${name}" twice: rename one of them`);
        if (taken && taken.source !== source) throw new DefinitionError(alreadyThere(name, taken.source));
        names.add(name);
      }
      const before = [...offered.values()].filter((one) => one.source === source);
      try {
        for (const { definition } of before) if (!names.has(definition.name)) remove(definition.name);
        for (const definition of definitions) put(definition, source);
      } catch (error) {
        for (const name of names)
          if (!before.some(({ definition }) => definition.name === name) && offered.has(name)) remove(name);
        for (const one of before) back(one);
        throw error;
      }
    },
  };
}

/**
 * Adds earlier versions, so that instances can finish on a machine that was replaced at run time, even if its author
 * does not list it.
 */
function withEarlier(kind: MachineKind, before: MachineKind | undefined): MachineKind {
  if (!before) return kind;
  const { [kind.version]: _, ...earlier } = { ...before.previous, [before.version]: before.machine };
  return {
    ...kind,
    previous: { ...Object.fromEntries(Object.entries(earlier).slice(-MAX_EARLIER)), ...kind.previous },
  };
}

/** The source name of a machine's tools in the registries. */
export function sourceOfMachine(name: string): string {
  return `machine "${name}"`;
}

function alreadyThere(name: string, source: string): string {
  return `machine "${name}" is already registered (by ${source}): choose another name, or update or remove the registered one`;
}
