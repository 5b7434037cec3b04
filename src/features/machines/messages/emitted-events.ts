/** The events of topics that a machine emits when it enters a state or takes an event (`emits`): their options, and the messages that they become. */
import type { AnyMachineSnapshot, AnyStateMachine, InspectedMicrostepEvent } from 'xstate';
import { nodeOf } from '../../../core/kernel/charts/chart.ts';
import { activeNodes, transitionsOf } from '../../../core/kernel/xstate-internals.ts';
import { describe, isObject, type JsonObject } from '../../../core/protocol/json.ts';
import { ANONYMOUS } from '../../../core/protocol/principals.ts';
import { DefinitionError } from '../../../core/registry/definition-checks.ts';
import { NotSerializable, serializable } from '../serializable.ts';
import type { MessageTarget } from './out-message.ts';

/** The source of the data of an emitted event: the context after the step, and the event that has led to it. */
export interface EmittedFrom<Context = unknown> {
  readonly context: Context;
  readonly event: { readonly type: string; readonly [member: string]: unknown };
}

/** One event type that a machine emits. */
export interface EmitOption<Context = unknown> {
  /** The state that it enters, such as `paid` or `open.waiting`; or the event that it takes. One of the two. */
  readonly entered?: string | undefined;
  readonly event?: string | undefined;
  /** Returns the data of the event: pure and synchronous. */
  data(from: EmittedFrom<Context>): object;
  /** The subscribers that may get it: the owner of the instance, or all that may subscribe to the type. Default: `owner`. */
  readonly audience?: 'owner' | 'all' | undefined;
}

/** An event type that a machine emits, as its instances use it. */
export interface EmitRule {
  readonly name: string;
  readonly isFor: 'owner' | 'all';
  readonly entered: string | undefined;
  readonly event: string | undefined;
  data(from: EmittedFrom): unknown;
}

const MEMBERS = ['entered', 'event', 'data', 'audience'];

/**
 * Reads the option `emits`.
 *
 * @param isShared true if several principals share an instance, so that it has no owner
 * @throws {DefinitionError} for a state or an event that the machine does not have, and for other members
 */
export function emitRules(
  emits: unknown,
  machine: AnyStateMachine,
  isShared: boolean,
  label: string,
): readonly EmitRule[] {
  if (emits === undefined) return [];
  const refuse = (why: string): never => {
    throw new DefinitionError(`${label}: emits${why}`);
  };
  if (!isObject(emits))
    return refuse(`: expected an object such as { 'order.paid': { entered: 'paid', data } }, got ${describe(emits)}`);
  return Object.entries(emits).map(([name, each]): EmitRule => {
    if (!isObject(each)) return refuse(`: ${name}: expected { entered, data }, got ${describe(each)}`);
    const { entered, event, data, audience } = each;
    const other = Object.keys(each).find((member) => !MEMBERS.includes(member));
    if (other !== undefined) refuse(`: ${name}: unknown member "${other}": expected ${MEMBERS.join(', ')}`);
    if (!isData(data))
      return refuse(`: ${name}: data: expected a function that returns the data of the event, got ${describe(data)}`);
    if ((entered === undefined) === (event === undefined)) refuse(`: ${name}: expected one of "entered" and "event"`);
    if (entered !== undefined && (typeof entered !== 'string' || !nodeOf(machine.root, `${machine.id}.${entered}`)))
      refuse(`: ${name}: entered: expected a state of the machine, such as "paid", got ${describe(entered)}`);
    if (event !== undefined && (typeof event !== 'string' || !machine.events.some((known) => known === event)))
      refuse(`: ${name}: event: expected one of ${machine.events.join(', ')}, got ${describe(event)}`);
    if (audience !== undefined && audience !== 'owner' && audience !== 'all')
      refuse(`: ${name}: audience: expected "owner" or "all", got ${describe(audience)}`);
    if (isShared && audience !== 'all')
      refuse(
        `: ${name}: audience: several principals share an instance, so that it has no owner. Write audience: 'all' if all subscribers may get the event`,
      );
    return {
      ...{ name, data: (from: EmittedFrom): unknown => Reflect.apply(data, each, [from]) },
      entered: typeof entered === 'string' ? `${machine.id}.${entered}` : undefined,
      event: typeof event === 'string' ? event : undefined,
      isFor: audience === 'all' ? 'all' : 'owner',
    };
  });
}

function isData(value: unknown): value is (from: EmittedFrom) => unknown {
  return typeof value === 'function';
}

/** Takes the messages that a turn writes. */
interface MessageWriter {
  write(to: MessageTarget, body: JsonObject): void;
}

/** Follows the steps of one instance, and writes the events that they emit as messages. */
export class EmittedEvents {
  readonly #rules: readonly EmitRule[];
  readonly #messages: MessageWriter;
  readonly #owner: string;
  readonly #maxDepth: number;
  #states: ReadonlySet<string> = new Set();

  constructor(rules: readonly EmitRule[], messages: MessageWriter, owner: string, maxDepth: number) {
    this.#rules = rules;
    this.#messages = messages;
    this.#owner = owner;
    this.#maxDepth = maxDepth;
  }

  /** The instance resumes in these states. */
  resumes(snapshot: AnyMachineSnapshot): void {
    this.#states = statesOf(snapshot);
  }

  /** The instance is new. @throws see {@link EmittedEvents.stepped} */
  begins(snapshot: AnyMachineSnapshot): void {
    this.#entered(snapshot, { type: 'xstate.init' });
  }

  /** @throws what `data` throws; {@link NotSerializable} for data that is no JSON object */
  stepped(inspected: InspectedMicrostepEvent, snapshot: AnyMachineSnapshot): void {
    const { event } = inspected;
    if (transitionsOf(inspected).length > 0)
      for (const rule of this.#rules)
        if (rule.event === event.type) this.#emit(rule, { context: snapshot.context, event });
    this.#entered(snapshot, event);
  }

  #entered(snapshot: AnyMachineSnapshot, event: EmittedFrom['event']): void {
    const before = this.#states;
    this.#states = statesOf(snapshot);
    for (const rule of this.#rules) {
      const { entered } = rule;
      if (entered === undefined || before.has(entered) || !this.#states.has(entered)) continue;
      this.#emit(rule, { context: snapshot.context, event });
    }
  }

  #emit({ name, isFor, data }: EmitRule, from: EmittedFrom): void {
    // All anonymous clients have one principal, so that nothing is theirs alone.
    if (isFor === 'owner' && this.#owner === ANONYMOUS) return;
    const where = `emits ${name}: data`;
    const body = serializable(data(from), where, this.#maxDepth);
    if (!isObject(body) || Array.isArray(body))
      throw new NotSerializable(`${where}: expected an object, got ${describe(body)}`);
    const owner = isFor === 'owner' ? { owner: this.#owner } : {};
    // The result of `serializable` is JSON data.
    this.#messages.write({ kind: 'topic', name, ...owner }, body as JsonObject);
  }
}

function statesOf(snapshot: AnyMachineSnapshot): ReadonlySet<string> {
  return new Set(activeNodes(snapshot).map(({ id }) => id));
}
