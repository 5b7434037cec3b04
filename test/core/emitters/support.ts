/** What the tests of subscriptions share: a server that can change, and how what a subscription was told is put in short. */
import { systemClock } from '../../../src/core/kernel/clock.ts';
import { isObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import type { Clock, Limits, Server } from '../../../src/index.ts';
import { SimulatedClock, type TestClient } from '../../../src/testing/testing.ts';
import { loggedServer } from '../../harness/memory.ts';

export interface Stage {
  readonly server: Server;
  readonly clock: SimulatedClock;
  readonly told: string[];
}

/** Offers the tool `good`, and the resources `doc://1` and `doc://{id}`; no prompts. */
export function stage(limits: Partial<Limits> = {}, time?: Clock): Stage {
  const clock = new SimulatedClock();
  const { server, logged: told } = loggedServer({ name: 'changing', clock: time ?? clock, limits });
  offer(server);
  return { server, clock, told };
}

export function offer(server: Server): void {
  server.tool('good', {}, () => 'good');
  server.resource('doc://1', {}, () => 'one');
  server.resource('doc://{id}', { name: 'doc' }, () => 'any');
}

/** Shows and hides a tool: the list has changed twice. */
export function flicker(server: Server): void {
  server.tool('flicker', {}, () => 'here');
  server.tools.remove('flicker');
}

/** One turn of the event loop. */
export function turn(): Promise<void> {
  return new Promise((resolve) => systemClock.soon(resolve));
}

/** Looks in each turn of the event loop while something happens. @returns how much the count grew in one turn at most */
export async function mostInOneTurn(count: () => number, happen: () => Promise<void>): Promise<number> {
  let over = false;
  let [before, most] = [count(), 0];
  const happened = happen().then(() => {
    over = true;
  });
  while (!over) {
    most = Math.max(most, count() - before);
    before = count();
    await turn();
  }
  await happened;
  return most;
}

/** A subscription as it is on the wire. */
export function listen(id: string | number, notifications: object): object {
  const _meta = { [META.protocolVersion]: '2026-07-28', [META.clientCapabilities]: {} };
  return { jsonrpc: '2.0', id, method: 'subscriptions/listen', params: { notifications, _meta } };
}

/** Opens subscriptions to the same things. */
export function open(client: TestClient, notifications: object, ...ids: readonly (string | number)[]): void {
  for (const id of ids) client.raw(JSON.stringify(listen(id, notifications)));
}

/** A message in short: `1 acknowledged`, `1 tools`, `1 doc://1`, `1 over`; without a number for a session. */
export function short(message: unknown): string {
  if (!isObject(message)) return JSON.stringify(message);
  const { id, method, params, result, error } = message;
  if (isObject(error)) return `${String(id)} ${String(error.code)}`;
  const bearer = isObject(result) ? result : params;
  const meta = isObject(bearer) && isObject(bearer._meta) ? bearer._meta : {};
  const subscription = meta[META.subscriptionId];
  const of = subscription === undefined ? '' : `${String(subscription)} `;
  if (isObject(result)) return subscription === id ? `${of}over` : `answer ${String(id)}`;
  switch (method) {
    case 'notifications/subscriptions/acknowledged':
      return `${of}acknowledged`;
    case 'notifications/resources/updated':
      return `${of}${isObject(params) ? String(params.uri) : ''}`;
    default:
      return `${of}${String(method).replace(/notifications\/(.*)\/list_changed/, '$1')}`;
  }
}

/** What came that nobody has taken, in short. */
export function heard(client: TestClient): string[] {
  return client.rest().map(short);
}
