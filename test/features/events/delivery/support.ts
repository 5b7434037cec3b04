/** A server that delivers to callbacks of this machine, and a receiver that answers as a test says. */
import { createHmac } from 'node:crypto';
import { type IncomingMessage, createServer as listen, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { JsonObject } from '../../../../src/core/protocol/json.ts';
import type { ServerOptions, Store, Telemetry } from '../../../../src/index.ts';
import { connect, SimulatedClock, settled, type TestClient } from '../../../../src/testing/testing.ts';
import { loggedServer } from '../../../harness/memory.ts';
import { until } from '../../../harness/wait.ts';

export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
export const OTHER_SECRET = `whsec_${Buffer.alloc(24, 9).toString('base64')}`;

/** Makes a client one of SEP-3415. */
export const SEP = {
  'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/events': {} } },
};

const PAYLOAD = {
  type: 'object',
  properties: { n: { type: 'number' }, to: { type: 'string' } },
  required: ['n'],
} as const;

/** A POST as the receiver has it. */
export interface Delivered {
  readonly id: string;
  readonly signatures: readonly string[];
  readonly seconds: number;
  readonly subscription: string;
  readonly text: string;
  readonly body: JsonObject;
}

/** Answers a POST: with a status, or by itself. Challenges are echoed unless it answers them. */
export type Answer = (post: Delivered, response: ServerResponse, request: IncomingMessage) => number | undefined;

export interface Receiver {
  readonly url: string;
  readonly origin: string;
  /** All POSTs besides challenges, in the order in which they came. */
  readonly posts: readonly Delivered[];
  readonly challenges: readonly Delivered[];
  /** Number of POSTs besides challenges that are answered. */
  readonly answered: number;
  /** Replaces the answer. */
  answer: Answer;
  close(): Promise<void>;
}

/** What this file has opened at an origin: a receiver, and the servers that may deliver to it. */
interface Ends {
  /** Number of responses of the receiver that have ended, also those to challenges. */
  responses: number;
  /** Number of POSTs of events that have not ended, also of those that have not arrived yet. */
  underway: number;
  readonly servers: Set<ReturnType<typeof loggedServer>['server']>;
}

const endsOf = new Map<string, Ends>();

/** True if the servers of a receiver have learned each response that it has given: a response crosses a socket. */
function haveLearned(hook: Receiver): boolean {
  const { servers } = endsOf.get(hook.origin) ?? { servers: new Set() };
  const ends = [...endsOf.values()].filter((each) => [...each.servers].some((server) => servers.has(server)));
  const responses = ends.reduce((sum, each) => sum + each.responses, 0);
  const all = new Set(ends.flatMap((each) => [...each.servers]));
  const learned = [...all].reduce((sum, server) => sum + attemptsOf(server.metrics()), 0);
  return learned >= responses;
}

/** The number of POSTs of events that a server has ended, by its metrics. */
function attemptsOf(metrics: string): number {
  const samples = metrics.matchAll(/^troupe_attempts_total\{troupe_kind="event",[^}]*\} (\d+)$/gm);
  return [...samples].reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Counts the POSTs of a server that are under way. */
export const counting: Telemetry = {
  begin: () => undefined,
  ask: () => undefined,
  session: () => {},
  deliver({ address, port }) {
    const ends = endsOf.get(`http://${address}:${port}`);
    if (!ends) return undefined;
    ends.underway += 1;
    return {
      end: () => {
        ends.underway -= 1;
      },
    };
  },
};

/** Opens a receiver at a free port. */
export async function receiver(answer: Answer = () => 204): Promise<Receiver> {
  const posts: Delivered[] = [];
  const challenges: Delivered[] = [];
  let answered = 0;
  const ends: Ends = { responses: 0, underway: 0, servers: new Set() };
  const server = listen((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      const body: JsonObject = JSON.parse(text);
      const header = (name: string): string => String(request.headers[name]);
      const post = {
        ...{ id: header('webhook-id'), signatures: header('webhook-signature').split(' '), text, body },
        ...{ seconds: Number(header('webhook-timestamp')), subscription: header('x-mcp-subscription-id') },
      };
      const isChallenge = body.type === 'verification';
      (isChallenge ? challenges : posts).push(post);
      response.on('close', () => {
        if (!isChallenge) answered += 1;
        ends.responses += 1;
      });
      const status = found.answer(post, response, request);
      if (status === undefined) return;
      if (isChallenge && status < 300) response.end(JSON.stringify({ challenge: body.challenge }));
      else response.writeHead(status).end();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const origin = `http://127.0.0.1:${port}`;
  endsOf.set(origin, ends);
  const found: Receiver = {
    ...{ url: `${origin}/hooks`, origin, posts, challenges, answer },
    get answered() {
      return answered;
    },
    close: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
  return found;
}

/** The signature of a POST under a secret, computed here. */
export function signatureOf(post: Delivered, secret: string): string {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  return `v1,${createHmac('sha256', key).update(`${post.id}.${post.seconds}.${post.text}`).digest('base64')}`;
}

export interface DeliveryStage {
  readonly clock: SimulatedClock;
  readonly logged: readonly string[];
  readonly server: ReturnType<typeof loggedServer>['server'];
  emit(n: number, more?: object): Promise<void>;
  as(principal: string): Promise<TestClient>;
  close(): Promise<void>;
}

/** Notes that a server may deliver to these origins, so that {@link untilDelivered} waits for what it learns. */
export function deliversTo(server: DeliveryStage['server'], origins: readonly string[]): void {
  for (const origin of origins) endsOf.get(origin)?.servers.add(server);
}

/** A server with the event type `note`, which may deliver to these origins. */
export function deliveryStage(
  origins: readonly string[],
  options: Partial<ServerOptions> & { readonly store?: Store } = {},
  type: object = {},
  clock = new SimulatedClock(1_000_000),
): DeliveryStage {
  const { events = {}, ...rest } = options;
  const { server, logged } = loggedServer({
    clock,
    events: { callbacks: { allow: origins, ...events.callbacks } },
    telemetry: counting,
    ...rest,
  });
  deliversTo(server, origins);
  const note = server.event('note', {
    description: 'A note was taken.',
    payload: PAYLOAD,
    input: { type: 'object', properties: { to: { type: 'string' } } },
    ...type,
  });
  return {
    ...{ clock, logged, server },
    async emit(n, more = {}) {
      await note.emit({ n, ...more }, { id: `e${n}` });
    },
    as: (principal) => connect(server, { auth: { principal } }),
    close: () => server.close(),
  };
}

/** The params of a subscription. */
export function subscription(url: string, more: JsonObject = {}, secret = SECRET): JsonObject {
  return { name: 'note', arguments: {}, delivery: { mode: 'webhook', url, secret }, ...more };
}

/** The ids of what a receiver has, without challenges. */
export function idsOf({ posts }: Receiver): readonly string[] {
  return posts.map(({ id }) => id);
}

/** Waits until a receiver has answered so many POSTs; lets the time of the server pass meanwhile if a step is given. */
export async function untilDelivered(hook: Receiver, count: number, clock?: SimulatedClock, stepMs = 0): Promise<void> {
  const ends = endsOf.get(hook.origin);
  if (!ends?.servers.size) throw new Error(`no server delivers to ${hook.origin}: see deliversTo`);
  await until(
    async () => {
      // Time passes only while the server waits for it: an attempt in flight takes none.
      if (
        clock &&
        stepMs > 0 &&
        hook.posts.length < count &&
        hook.posts.length === hook.answered &&
        ends.underway === 0 &&
        haveLearned(hook)
      )
        await clock.advance(stepMs);
      return hook.answered >= count && haveLearned(hook);
    },
    () => `${count} deliveries, got ${idsOf(hook).join(' ')}`,
  );
  await settled();
  await settled();
}
