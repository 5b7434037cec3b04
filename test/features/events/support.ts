/** A server with event types, and what its subscribers get by polls and streams. */
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { createServer, type ServerOptions, type Store } from '../../../src/index.ts';
import { connect, SimulatedClock, type TestClient, type TestClientOptions } from '../../../src/testing/testing.ts';

export const PAYLOAD = {
  type: 'object',
  properties: { n: { type: 'number' }, to: { type: 'string' } },
  required: ['n'],
} as const;

export const INPUT = { type: 'object', properties: { to: { type: 'string' } } } as const;

export interface EventStage {
  readonly server: ReturnType<typeof createServer>;
  readonly clock: SimulatedClock;
  readonly logged: readonly string[];
  as(principal: string, options?: TestClientOptions): Promise<TestClient>;
}

/** A server whose time passes when the test says so. */
export function eventStage(options: Partial<ServerOptions> = {}, clock = new SimulatedClock(1_000_000)): EventStage {
  const logged: string[] = [];
  const log = (level: string, message: string): void => void logged.push(`${level}: ${message}`);
  const server = createServer({ name: 'events', version: '1.0.0', clock, log, ...options });
  return {
    ...{ server, clock, logged },
    as: (principal, given = {}) => connect(server, { auth: { principal }, ...given }),
  };
}

/** The server of an event type without rules. */
export function noted(store?: Store, more: object = {}) {
  const stage = eventStage(store ? { store } : {});
  const note = stage.server.event('note', {
    description: 'A note was taken.',
    payload: PAYLOAD,
    input: INPUT,
    ...more,
  });
  return { ...stage, note };
}

export interface Polled {
  readonly ids: readonly string[];
  readonly data: readonly JsonObject[];
  readonly cursor: string;
  readonly truncated: boolean;
  readonly hasMore: boolean;
  readonly nextPollMs: number;
}

export async function poll(
  client: TestClient,
  name: string,
  params: JsonObject = {},
  meta?: JsonObject,
): Promise<Polled> {
  const result = await client.modern('events/poll', { name, arguments: {}, ...params }, meta);
  const { events, cursor, truncated, hasMore, nextPollMs } = result;
  if (!Array.isArray(events) || typeof cursor !== 'string') throw new Error(`no poll: ${JSON.stringify(result)}`);
  return {
    ids: events.map(({ eventId }: { eventId: string }) => eventId),
    data: events.map(({ data }: { data: JsonObject }) => data),
    cursor,
    truncated: truncated === true,
    hasMore: hasMore === true,
    nextPollMs: Number(nextPollMs),
  };
}

/** The id of the capability that makes a client one of SEP-3415. */
export const DECLARED = {
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/events': {} } },
};

/** The notifications of streams so far, such as `event e1`, `active`, `active truncated`, `terminated -32024`. */
export function streamed(client: TestClient): readonly string[] {
  return client.notifications.flatMap(({ method, params }) => {
    const [, name] = /^notifications\/events\/(\w+)$/.exec(method) ?? [];
    if (name === undefined) return [];
    const { eventId, truncated, error } = (params ?? {}) as JsonObject;
    if (name === 'event') return [`event ${String(eventId)}`];
    if (name === 'active') return [truncated === true ? 'active truncated' : 'active'];
    if (name === 'terminated' || name === 'error') return [`${name} ${String((error as JsonObject)?.code)}`];
    return [name];
  });
}

/** The last cursor that a stream has sent. */
export function lastCursor(client: TestClient): string {
  const cursors = client.notifications.flatMap(({ params }) => {
    const cursor = (params as JsonObject | undefined)?.cursor;
    return typeof cursor === 'string' ? [cursor] : [];
  });
  return cursors.at(-1) ?? '';
}
