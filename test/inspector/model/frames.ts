/** Frames by hand: a shop with one client, one order, and a question. */
import type { ChartFrame, ChartNode, Frame, HelloFrame, Plain, TraceRecord } from '../../../src/inspector/frames.ts';
import { Model, type ModelOptions } from '../../../src/inspector/model/index.ts';

export const hello: HelloFrame = {
  type: 'hello',
  format: 1,
  server: { name: 'shop', version: '1.0.0' },
  troupe: '0.1.0',
  pid: 7,
  epoch: 1_000_000,
  now: 0,
  control: false,
  live: true,
};

export const leaf = (path: string, edges: ChartNode['edges'] = [], type: ChartNode['type'] = 'atomic'): ChartNode => ({
  key: path.split('.').at(-1) ?? '',
  path,
  type,
  initial: path === 'cart',
  invokes: [],
  edges,
  nodes: [],
});

/** cart → confirming → paid; `paid` has two regions. */
export const order: ChartFrame = {
  type: 'chart',
  id: 'order-1',
  chart: {
    ...leaf(''),
    key: 'order',
    type: 'compound',
    nodes: [
      leaf('cart', [
        { id: 'cart#0', on: 'add', label: 'add', targets: [] },
        { id: 'cart#1', on: 'checkout', label: 'checkout', targets: ['confirming'] },
      ]),
      leaf('confirming', [
        { id: 'confirming#0', on: 'yes', label: 'yes', targets: ['paid'] },
        { id: 'confirming#1', on: 'no', label: 'no', targets: ['cart'] },
      ]),
      { ...leaf('paid', [], 'parallel'), nodes: [leaf('paid.packing'), leaf('paid.billing')] },
    ],
  },
};

type NewRecord<R = TraceRecord> = R extends TraceRecord ? Omit<R, 'seq' | 'at' | 'cause'> : never;

/** Tells records to a model: each gets the next place, and comes ten milliseconds after the one before. */
export class FrameFeed {
  readonly model: Model;
  seq = 0;
  now = 0;

  constructor(options?: ModelOptions) {
    this.model = new Model(options);
    this.model.take(hello);
  }

  frame(frame: Frame): void {
    this.model.take(frame);
  }

  /** @returns the record's place */
  record(record: NewRecord, cause = 0, after = 10): number {
    this.seq += 1;
    this.now += after;
    this.model.take({ type: 'records', records: [{ ...record, seq: this.seq, at: this.now, cause }] });
    return this.seq;
  }

  wire(direction: 'in' | 'out', message: Plain, { cause = 0, about = 0, connection = 'c1', after = 10 } = {}): number {
    return this.record({ type: 'wire', connection, direction, message, bytes: 20, about }, cause, after);
  }

  state(actor: string, state: string, cause = 0): number {
    return this.record({ type: 'state', actor, state }, cause);
  }

  step(
    actor: string,
    event: string,
    edges: readonly string[],
    active: readonly string[],
    cause = 0,
    context?: Plain,
  ): number {
    return this.record(
      {
        type: 'step',
        actor,
        event,
        edges,
        active,
        status: 'active',
        handled: edges.length > 0,
        ...(context === undefined ? {} : { context }),
      },
      cause,
    );
  }
}

/** A server, a session of "claude", and an order in its cart. */
export function shop(options?: ModelOptions): FrameFeed {
  const feed = new FrameFeed(options);
  feed.frame(order);
  feed.record({ type: 'created', actor: 'server', kind: 'server' });
  feed.state('server', 'running');
  feed.record({ type: 'created', actor: 'session c1', kind: 'session', connection: 'c1', label: 'claude' });
  feed.state('session c1', 'ready');
  feed.record({ type: 'created', actor: 'requests c1', kind: 'requests', connection: 'c1' });
  feed.record({ type: 'created', actor: 'executor tools', kind: 'executor' });
  feed.record({ type: 'created', actor: 'order_1', kind: 'handle', chart: 'order-1' });
  feed.state('order_1', 'cart');
  return feed;
}

export const call = (id: number, name: string, args: Plain = {}): Plain => ({
  jsonrpc: '2.0',
  id,
  method: 'tools/call',
  params: { name, arguments: args },
});

export const result = (id: number, value: Plain = {}): Plain => ({ jsonrpc: '2.0', id, result: value });
