/** Registration of machines: each is a set of tools and resources, offered together or not at all, and a kind of handle. */

import type { AnyMachine } from '../handles/define-machine.ts';
import type { Handles } from '../handles/handles.ts';
import type { MachineKind } from '../handles/machine-definition.ts';
import type { CompiledTool } from '../handles/tools/handle-tools.ts';
import { compileMachine, type Toolset } from '../handles/tools/machine-tools.ts';
import type { ResourceDefinition } from '../registry/define.ts';
import { DefinitionError } from '../registry/definition-checks.ts';
import type { RegisteredElement, Registration } from '../registry/registration.ts';

/** Machines at runtime. Each change that clients can see reaches them as changed lists of tools and resources. */
export interface MachineRegistration {
  /** Offers one more. @throws {DefinitionError | SchemaError | TypeError} for an invalid definition or a name that is taken, also by a tool */
  register(definition: AnyMachine): RegisteredElement;
  /** Replaces a machine. Its instances go on: migrated, or on the machine that they began with. @throws as `register`, or for a name that is not there */
  update(definition: AnyMachine): void;
  /** Takes a machine back. Its instances are kept, out of reach, until they expire. */
  remove(name: string): void;
  /** Replaces everything that one source offers, or refuses it whole. */
  replaceSource(source: string, definitions: readonly AnyMachine[]): void;
  /** What was registered, as it was written. */
  definitions(): readonly AnyMachine[];
}

export interface MachinesOptions {
  readonly handles: Handles;
  /** Registrations of their own: what is in them is copied to no other server as a tool or a resource. */
  readonly tools: Pick<Registration<CompiledTool>, 'replaceSource' | 'enable' | 'disable'>;
  readonly resources: Pick<Registration<ResourceDefinition>, 'replaceSource' | 'enable' | 'disable'>;
}

/** Most machines of earlier versions that are kept while a server runs, where its machines are replaced again and again. */
const MAX_EARLIER = 16;

interface Offered {
  readonly definition: AnyMachine;
  readonly source: string;
  readonly toolset: Toolset;
}

export function machineRegistration({ handles, tools, resources }: MachinesOptions): MachineRegistration {
  const offered = new Map<string, Offered>();
  /** What each was when it was defined last, also while it is not offered. */
  const defined = new Map<string, MachineKind>();
  const show = (name: string, toolset: Pick<Toolset, 'tools' | 'resources'> | undefined): void => {
    tools.replaceSource(placeOf(name), toolset?.tools ?? []);
    resources.replaceSource(placeOf(name), toolset?.resources ?? []);
  };
  const put = (definition: AnyMachine, source: string): void => {
    const { name } = definition;
    const before = offered.get(name);
    if (before?.definition === definition && before.source === source) return;
    const toolset = compileMachine(definition, handles);
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
  };
  const remove = (name: string): void => {
    if (!offered.delete(name)) throw new DefinitionError(`no machine "${name}" is registered`);
    show(name, undefined);
    handles.withdraw(name);
  };
  const back = ({ definition, source }: Offered): void => {
    try {
      put(definition, source);
    } catch {
      // Another has taken one of its names meanwhile.
    }
  };
  const named = (type: 'enable' | 'disable', name: string): void => {
    const toolset = offered.get(name)?.toolset;
    if (!toolset) throw new DefinitionError(`no machine "${name}" is registered`);
    for (const { key } of toolset.tools) tools[type](key);
    for (const { uri } of toolset.resources) resources[type](uri);
  };
  return {
    remove,
    definitions: () => [...offered.values()].map(({ definition }) => definition),
    register(definition) {
      const { name } = definition;
      const taken = offered.get(name);
      if (taken) throw new DefinitionError(alreadyThere(name, taken.source));
      put(definition, 'code');
      return {
        key: name,
        enable: () => named('enable', name),
        disable: () => named('disable', name),
        remove: () => remove(name),
      };
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
        if (names.has(name))
          throw new DefinitionError(`machine "${name}" is offered twice by ${source}: rename one of them`);
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

/** What began on a machine that is replaced while the server runs can finish on it, though no author has listed it. */
function withEarlier(kind: MachineKind, before: MachineKind | undefined): MachineKind {
  if (!before) return kind;
  const { [kind.version]: _, ...earlier } = { ...before.previous, [before.version]: before.machine };
  return {
    ...kind,
    previous: { ...Object.fromEntries(Object.entries(earlier).slice(-MAX_EARLIER)), ...kind.previous },
  };
}

/** What registries call the source of a machine's tools. */
function placeOf(name: string): string {
  return `machine "${name}"`;
}

function alreadyThere(name: string, source: string): string {
  return `machine "${name}" is already registered (by ${source}): choose another name, or update or remove the registered one`;
}
