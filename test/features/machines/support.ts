/** What the tests of handles share: a host with simulated time, a store that can lose what is not durable, and an order to put through. */
import { assign, fromPromise, setup } from 'xstate';
import { createActorSystem } from '../../../src/core/kernel/actor-system.ts';
import type { Inspection } from '../../../src/core/kernel/inspection/inspection.ts';
import { type Limits, resolveLimits } from '../../../src/core/kernel/limits.ts';
import { type Quotas, quotasOf } from '../../../src/core/kernel/server-quotas.ts';
import { memoryStore } from '../../../src/core/store/memory-store.ts';
import {
  type JournalEvent,
  type Store,
  type StoreAnswer,
  StoreError,
  type Write,
} from '../../../src/core/store/store.ts';
import { Handles } from '../../../src/features/machines/handles.ts';
import type { Caller, MachineKind } from '../../../src/features/machines/machine-definition.ts';
import { SimulatedClock } from '../../../src/testing/simulated-clock.ts';
import { type OtherQuery, TestStore } from '../../harness/test-store.ts';

export const ALICE: Caller = { principal: 'alice', ctx: undefined };
export const BOB: Caller = { principal: 'bob', ctx: undefined };
export const ANYBODY: Caller = { principal: 'anonymous', ctx: undefined };

/** A store whose disk is under the test's control. It keeps the history too, as one on a disk does. */
export class Disk extends TestStore {
  override readonly name = 'disk of a test';
  /** Batches on their way to the disk. While it is held, nothing becomes durable. */
  held = false;
  /** What the next batches fail with. */
  fails: StoreError | undefined;
  /** Which batches fail, with a failure of the disk. */
  rejects: ((writes: readonly Write[]) => boolean) | undefined;
  /** Every batch that was asked for. */
  readonly batches: (readonly Write[])[] = [];
  readonly history: Map<string, JournalEvent[]>;
  #waiting: { readonly writes: readonly Write[]; readonly done: () => void; readonly lost: (why: Error) => void }[] =
    [];

  constructor(inner = memoryStore(), history = new Map<string, JournalEvent[]>()) {
    super(inner);
    this.history = history;
  }

  override write(writes: readonly Write[]): Promise<void> {
    this.batches.push(writes);
    if (this.fails) return Promise.reject(this.fails);
    if (this.rejects?.(writes)) return Promise.reject(new StoreError('full', 'the disk is full'));
    if (this.held) return new Promise((done, lost) => this.#waiting.push({ writes, done, lost }));
    this.#keep(writes);
    return Promise.resolve();
  }

  override read(query: OtherQuery): Promise<StoreAnswer> {
    if (query.type !== 'events' || query.stream !== '') return super.read(query);
    const events = (this.history.get(query.actor) ?? []).filter(({ seq }) => seq > query.after);
    return Promise.resolve({ type: 'events', value: events.slice(0, query.limit) });
  }

  /** Makes durable what is held. */
  release(): void {
    this.held = false;
    for (const { writes, done } of this.#waiting.splice(0)) {
      this.#keep(writes);
      done();
    }
  }

  /** Refuses what is held, as a database does that has fenced this node. */
  lose(): void {
    this.held = false;
    for (const { lost } of this.#waiting.splice(0)) lost(new StoreError('fenced', 'another node owns this cell'));
  }

  /** What is on the disk when the power goes: what was held is lost. */
  crash(): Disk {
    this.#waiting = [];
    return new Disk(this.inner, this.history);
  }

  #keep(writes: readonly Write[]): void {
    void this.inner.commit(writes);
    for (const write of writes)
      if (write.type === 'event' && write.stream === '')
        this.history.set(write.actor, [...(this.history.get(write.actor) ?? []), write]);
  }
}

export function disk(): Disk {
  return new Disk();
}

export const FULL = new StoreError('full', 'the disk is full');

export interface Stage {
  readonly handles: Handles;
  readonly quotas: Quotas;
  readonly clock: SimulatedClock;
  readonly store: Store;
  readonly inspection: Inspection;
  readonly incidents: { readonly id: string; readonly where: string; readonly error: unknown }[];
  /** What the operator is told. */
  readonly logged: readonly string[];
  /** Another process on the same store. */
  again(options?: {
    readonly store?: Store;
    readonly kinds?: readonly MachineKind[];
    readonly laterMs?: number;
  }): Promise<Stage>;
}

export async function stage(
  kinds: readonly MachineKind[],
  {
    store = memoryStore(),
    clock = new SimulatedClock(),
    limits = {},
    takes,
  }: {
    readonly store?: Store;
    readonly clock?: SimulatedClock;
    readonly limits?: Partial<Limits>;
    /** The cells that it takes up; all by default. */
    readonly takes?: readonly number[];
  } = {},
): Promise<Stage> {
  const logged: string[] = [];
  const system = createActorSystem({ clock, log: (level, message) => void logged.push(`${level}: ${message}`) });
  const { inspection } = system;
  const incidents: { id: string; where: string; error: unknown }[] = [];
  const incident = (where: string, error: unknown): string => {
    const id = `i${incidents.length}`;
    incidents.push({ id, where, error });
    return id;
  };
  const quotas = quotasOf(resolveLimits(limits));
  const handles = new Handles({
    system: { ...system, incident },
    store,
    limits: resolveLimits(limits),
    quotas,
  });
  for (const kind of kinds) handles.define(kind);
  await handles.restore();
  await handles.take(takes);
  return {
    handles,
    quotas,
    clock,
    store,
    inspection,
    incidents,
    logged,
    async again(other = {}) {
      const later = new SimulatedClock(clock.now() + (other.laterMs ?? 0));
      return stage(other.kinds ?? kinds, { store: other.store ?? store, clock: later, limits });
    },
  };
}

interface Order {
  readonly items: readonly string[];
  readonly paid?: string;
  readonly note?: unknown;
}

/** Work that a test brings to its end by hand. */
export class Work {
  readonly began: unknown[] = [];
  #ends: ((output: unknown) => void)[] = [];

  readonly logic = fromPromise(({ input }: { input: unknown }) => {
    this.began.push(input);
    return new Promise<unknown>((resolve) => this.#ends.push(resolve));
  });

  end(output: unknown): void {
    for (const resolve of this.#ends.splice(0)) resolve(output);
  }
}

export type OrderEvent =
  | { type: 'add'; item: string }
  | { type: 'note'; note: unknown }
  | { type: 'pay' }
  | { type: 'boom' }
  | { type: 'ship' }
  | { type: 'cancel' };

/** A cart that is paid by work of the test's, and shipped a minute later by itself. */
export function orderMachine(pay: Work['logic'] = new Work().logic, told: (what: string) => void = () => {}) {
  return setup({
    types: { context: {} as Order, events: {} as OrderEvent, input: {} as { items?: readonly string[] } },
    actors: { pay },
    guards: { hasItems: ({ context }) => context.items.length > 0 },
    actions: {
      tell: (_, { what }: { what: string }) => told(what),
      explode: () => {
        throw new Error('boom');
      },
    },
  }).createMachine({
    id: 'order',
    context: ({ input }) => ({ items: input?.items ?? [] }),
    initial: 'cart',
    output: ({ context }) => ({ items: context.items }),
    states: {
      cart: {
        on: {
          add: {
            actions: [
              assign({ items: ({ context, event }) => [...context.items, event.item] }),
              { type: 'tell', params: ({ event }) => ({ what: event.item }) },
            ],
          },
          note: { actions: assign({ note: ({ event }) => event.note }) },
          boom: {
            actions: assign({
              items: () => {
                throw new Error('boom');
              },
            }),
          },
          pay: { guard: 'hasItems', target: 'paying' },
          cancel: 'cancelled',
        },
      },
      paying: {
        invoke: {
          id: 'charge',
          src: 'pay',
          input: ({ context }: { context: Order }) => ({ count: context.items.length }),
          onDone: { target: 'paid', actions: assign({ paid: ({ event }) => String(event.output) }) },
        },
      },
      paid: { after: { 60000: 'shipped' }, on: { ship: 'shipped' } },
      shipped: { type: 'final' },
      cancelled: { type: 'final' },
    },
  });
}

export const ORDER_EVENTS = ['add', 'note', 'pay', 'boom', 'ship', 'cancel'];

export function orderKind(
  machine: MachineKind['machine'] = orderMachine(),
  more: Partial<MachineKind> = {},
): MachineKind {
  return { name: 'order', machine, version: '1', events: ORDER_EVENTS, view: (snapshot) => snapshot.context, ...more };
}
