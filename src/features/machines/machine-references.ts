/** Walks a machine for the guards, actions, actors and delays that it names, before its first client reaches one of them. */
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from 'xstate';
import { isObject } from '../../core/protocol/json.ts';
import type { AuthorSchema } from '../../core/schema/schema-types.ts';
import { askedForm } from '../asking/invocations.ts';

/** The kinds of implementations, and the form in which an author writes one. */
const FORMS = {
  guard: (name: string) => `guards: { ${keyOf(name)}: ({ context, event }) => … }`,
  action: (name: string) => `actions: { ${keyOf(name)}: ({ context, event }) => … }`,
  actor: (name: string) => `actors: { ${keyOf(name)}: fromPromise(async ({ input }) => …) }`,
  delay: (name: string) => `delays: { ${keyOf(name)}: 1000 }`,
} as const;

type Kind = keyof typeof FORMS;

/** One use of a name. */
interface Reference {
  readonly kind: Kind;
  readonly name: string;
  /** Such as `state "open", on "pay"`. */
  readonly where: string;
}

/** A delay whose duration does not depend on the context. */
interface FixedDelay {
  readonly ms: number;
  readonly where: string;
}

/** A form whose schema does not depend on the context. */
interface FixedForm {
  readonly schema: AuthorSchema;
  readonly where: string;
}

/**
 * Lists the names for which a machine, or a machine that it invokes, has no implementation, each with its places and a
 * correction. An action of `enqueueActions` and an actor that `assign` spawns are not found: only their functions name
 * them.
 */
export function missingImplementations(machine: AnyStateMachine): readonly string[] {
  const missing = new Map<string, { readonly kind: Kind; readonly name: string; readonly places: string[] }>();
  for (const { kind, name, where } of new Walk(machine).missing) {
    const key = `${kind} ${name}`;
    const known = missing.get(key) ?? { kind, name, places: [] };
    if (!known.places.includes(where)) known.places.push(where);
    missing.set(key, known);
  }
  return [...missing.values()].map(
    ({ kind, name, places }) =>
      `${kind} "${name}" (${places.join('; ')}) has no implementation: write setup({ ${FORMS[kind](name)} }), or pass it to machine.provide`,
  );
}

/** The delays of a machine that are numbers, in `after`, `raise` and `sendTo`. */
export function fixedDelays(machine: AnyStateMachine): readonly FixedDelay[] {
  return new Walk(machine).delays;
}

/** The forms that a machine asks with `elicitWith(schema)`, each with its first place. */
export function fixedForms(machine: AnyStateMachine): readonly FixedForm[] {
  return new Walk(machine).forms;
}

class Walk {
  readonly missing: Reference[] = [];
  readonly forms: FixedForm[] = [];
  readonly delays: FixedDelay[] = [];
  readonly #implementations: AnyStateMachine['implementations'];
  readonly #prefix: string;
  readonly #seen: Set<object>;
  readonly #followed = new Set<string>();

  constructor(machine: AnyStateMachine, prefix = '', seen = new Set<object>()) {
    this.#implementations = machine.implementations;
    this.#prefix = prefix;
    this.#seen = seen.add(machine);
    this.#node(machine.root);
  }

  #node(node: AnyStateNode): void {
    const where = `${this.#prefix}${node.path.length === 0 ? 'the machine' : `state "${node.path.join('.')}"`}`;
    this.#actions(node.entry, `${where}, entry`);
    this.#actions(node.exit, `${where}, exit`);
    this.#actions(node.initial?.actions ?? [], `${where}, initial`);
    for (const [index, { src }] of node.invoke.entries()) this.#actor(src, node, index, `${where}, invoke`);
    for (const transition of [...[...node.transitions.values()].flat(), ...(node.always ?? [])]) {
      const on = `${where}, ${labelOf(transition)}`;
      this.#guard(transition.guard, on);
      this.#actions(transition.actions, on);
    }
    for (const child of Object.values(node.states)) this.#node(child);
  }

  #actions(actions: readonly unknown[], where: string): void {
    for (const action of actions) this.#action(action, where);
  }

  #action(action: unknown, where: string): void {
    const name = nameOf(action);
    if (name !== undefined) return this.#named('action', name, where, (found) => this.#action(found, where));
    if (typeof action !== 'function') return;
    // An action that XState creates has its options as members.
    if ('delay' in action) this.#delay(action.delay, where);
    if ('type' in action && action.type === 'xstate.spawnChild' && 'src' in action)
      this.#logic(action.src, `${where}, spawnChild`);
  }

  #guard(guard: unknown, where: string): void {
    const name = nameOf(guard);
    if (name !== undefined) return this.#named('guard', name, where, (found) => this.#guard(found, where));
    // `and`, `or` and `not` contain other guards.
    if (typeof guard !== 'function' || !('guards' in guard) || !Array.isArray(guard.guards)) return;
    for (const inner of guard.guards) this.#guard(inner, where);
  }

  #delay(delay: unknown, where: string): void {
    if (typeof delay === 'number') this.delays.push({ ms: delay, where });
    if (typeof delay === 'string') this.#named('delay', delay, where, (found) => this.#delay(found, where));
  }

  #actor(src: unknown, node: AnyStateNode, index: number, where: string): void {
    // XState names an actor that is written in place by its position.
    if (typeof src !== 'string' || !src.startsWith('xstate.')) return this.#logic(src, where);
    const config: unknown = node.config.invoke;
    const given: unknown = Array.isArray(config) ? config[index] : config;
    if (isObject(given)) this.#logic(given.src, where);
  }

  #logic(logic: unknown, where: string): void {
    if (typeof logic === 'string')
      return this.#named('actor', logic, where, (found) => this.#inner(found, `${where} of "${logic}" › `));
    this.#inner(logic, `${where} › `);
  }

  /** An actor that is a machine names implementations of its own. */
  #inner(logic: unknown, prefix: string): void {
    const form = askedForm(logic);
    if (form) this.forms.push({ ...form, where: prefix.replace(/ › $/, '') });
    if (!isMachine(logic) || this.#seen.has(logic)) return;
    const inner = new Walk(logic, prefix, this.#seen);
    this.missing.push(...inner.missing);
    this.delays.push(...inner.delays);
    this.forms.push(...inner.forms);
  }

  #named(kind: Kind, name: string, where: string, found: (implementation: unknown) => void): void {
    if (name.startsWith('xstate.')) return;
    const { guards, actions, actors, delays } = this.#implementations;
    const all: Readonly<Record<string, unknown>> | undefined = {
      guard: guards,
      action: actions,
      actor: actors,
      delay: delays,
    }[kind];
    const implementation = all && Object.hasOwn(all, name) ? all[name] : undefined;
    if (implementation === undefined) this.missing.push({ kind, name, where });
    // Once for each name: names may refer to each other in a circle.
    const key = `${kind} ${name}`;
    if (implementation === undefined || this.#followed.has(key)) return;
    this.#followed.add(key);
    found(implementation);
  }
}

/** The name in a reference: `'pay'`, or `{ type: 'pay', params }`. */
function nameOf(reference: unknown): string | undefined {
  if (typeof reference === 'string') return reference;
  return isObject(reference) && typeof reference.type === 'string' ? reference.type : undefined;
}

function isMachine(logic: unknown): logic is AnyStateMachine {
  return isObject(logic) && isObject(logic.root) && isObject(logic.implementations);
}

/** The place of a transition, as its author wrote it. */
function labelOf({ eventType, delay }: AnyTransitionDefinition & { readonly delay?: unknown }): string {
  if (delay !== undefined) return `after ${String(delay)}`;
  if (eventType === '') return 'always';
  if (eventType.startsWith('xstate.done.')) return 'onDone';
  if (eventType.startsWith('xstate.error.')) return 'onError';
  return eventType.startsWith('xstate.snapshot.') ? 'onSnapshot' : `on "${eventType}"`;
}

function keyOf(name: string): string {
  return /^[A-Za-z_$][\w$]*$/.test(name) ? name : `'${name}'`;
}
