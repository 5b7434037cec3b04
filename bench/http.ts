/** Calls a server over HTTP: keeps a number of requests in flight, one on each keep-alive connection, and looks at each answer. */
import { once } from 'node:events';
import { createServer } from 'node:net';
import { HttpConnection } from './http-connection.ts';
import { initialize, initialized } from './http-requests.ts';
import { type Measured, measured } from './measured.ts';

/** When to stop: after so many calls, or when so many milliseconds are over. */
export type Amount = { readonly calls: number } | { readonly ms: number };

/** What one connection sends: the same bytes each time, but for the id. */
export interface Sendable {
  withId(id: number): Buffer;
  readonly id: number;
}

/** Says what is wrong with an answer, or nothing. @param id that of its request */
export type Check = (body: string, id: number) => string | undefined;

/** The answer of echo. */
export function isEcho(text: string): Check {
  const holds = `"${text}"`;
  return (body, id) => (body.includes(`"id":${id}`) && body.includes(holds) ? undefined : 'expected the echo');
}

/** A port of this machine that nothing listens on. */
export async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}

/** Opens a session as a client does, on a connection of its own. @returns its id */
export async function openSession(url: URL): Promise<string> {
  const connection = await HttpConnection.open(url);
  const session = await openSessionOn(connection, url);
  connection.close();
  return session;
}

/** `initialize`, then `notifications/initialized`. @returns the id of the session */
export async function openSessionOn(connection: HttpConnection, url: URL): Promise<string> {
  const opened = await connection.exchange(initialize(url));
  const session = /\r\nmcp-session-id: *([^\r\n]+)/i.exec(opened.head)?.[1];
  if (opened.status !== 200 || session === undefined)
    throw new Error(`initialize: expected 200 with Mcp-Session-Id, got ${opened.head}\n${opened.body}`);
  const ready = await connection.exchange(initialized(url, session));
  if (ready.status !== 202)
    throw new Error(`notifications/initialized: expected 202, got ${ready.head}\n${ready.body}`);
  return session;
}

/** Opens sessions on `inFlight` connections. @returns their ids, and the milliseconds that each took */
export async function openSessions(
  url: URL,
  amount: Amount,
  inFlight: number,
): Promise<{ readonly ids: readonly string[]; readonly took: readonly number[]; readonly perSecond: number }> {
  const connections = await Promise.all(Array.from({ length: inFlight }, () => HttpConnection.open(url)));
  const ids: string[] = [];
  const took: number[] = [];
  const started = performance.now();
  const wants = wanting(amount, started);
  let begun = 0;
  await Promise.all(
    connections.map(async (connection) => {
      while (wants(begun)) {
        begun += 1;
        const at = performance.now();
        ids.push(await openSessionOn(connection, url));
        took.push(performance.now() - at);
      }
      connection.close();
    }),
  );
  return { ids, took, perSecond: (ids.length / (performance.now() - started)) * 1_000 };
}

/** Tells whether one more is to be begun. */
export function wanting(amount: Amount, started: number): (begun: number) => boolean {
  if ('calls' in amount) return (begun) => begun < amount.calls;
  // One at least: a machine that stalls for as long as a run lasts has measured nothing otherwise.
  return (begun) => begun === 0 || performance.now() - started < amount.ms;
}

/**
 * Calls until the amount is done, on `inFlight` connections that are opened before the clock starts.
 *
 * @param prepare the bytes that one connection sends; asked once for each
 * @param most calls for each second that all connections send together; default: a connection sends the next one as
 *   soon as it has an answer
 * @throws {Error} when an answer is not 200, or fails the check
 */
export async function callAll(
  url: URL,
  check: Check,
  amount: Amount,
  inFlight: number,
  prepare: (connection: number) => Sendable,
  most = Number.POSITIVE_INFINITY,
): Promise<Measured> {
  // Opened anew for each run: a server closes connections that were idle while the others had their turn.
  const connections = await Promise.all(Array.from({ length: inFlight }, () => HttpConnection.open(url)));
  try {
    return await new Promise((resolve, reject) => {
      const took: number[] = [];
      let sent = 0;
      let open = 0;
      const before = performance.eventLoopUtilization();
      const started = performance.now();
      const wants = wanting(amount, started);
      for (const [index, connection] of connections.entries()) {
        const call = prepare(index);
        let sentAt = 0;
        let turns = 0;
        const next = (): void => {
          sent += 1;
          open += 1;
          const id = sent;
          const send = (): void => {
            sentAt = performance.now();
            connection.send(call.withId(id));
          };
          const dueIn = started + ((turns * inFlight + index) / most) * 1_000 - performance.now();
          turns += 1;
          if (dueIn > 0) setTimeout(send, dueIn);
          else send();
        };
        connection.heard((status, body, head) => {
          const fault = status === 200 ? check(body, call.id) : 'expected 200';
          if (fault !== undefined)
            return reject(new Error(`request ${call.id}: ${fault}, got ${head}\n${body.slice(0, 1_000)}`));
          took.push(performance.now() - sentAt);
          open -= 1;
          if (wants(sent)) next();
          else if (open === 0) resolve(measured(took, started, before));
        }, reject);
        if (wants(sent)) next();
      }
    });
  } finally {
    for (const connection of connections) connection.close();
  }
}
