/** Measures echo over HTTP: a child process serves, this process keeps a number of requests in flight, one on each keep-alive connection. */
import { HttpConnection } from './http-connection.ts';
import { callInSession, initialize, initialized, modernCall, type PreparedCall } from './http-requests.ts';
import { type Measured, measured } from './measured.ts';
import { type Serving, serve } from './serving.ts';
import type { Echo } from './turns.ts';

/** A session id as long as Troupe's, for a floor that has no sessions. */
const NO_SESSION = '0123456789abcdefghijkl';

export interface Served {
  /** A file below this folder. */
  readonly server: string;
  readonly era: 'legacy' | 'modern';
  /** A floor has no session to open. */
  readonly handshake: boolean;
}

/** Starts a server, and opens the session that its calls need. @throws {Error} when it does not start, or opens no session */
export async function startHttp({ server, era, handshake }: Served, text = 'x'.repeat(64)): Promise<Echo> {
  const serving = await serve(server);
  const { url, stop } = serving;
  try {
    const session = handshake && era === 'legacy' ? await openSession(url) : NO_SESSION;
    const prepare = (): PreparedCall => (era === 'modern' ? modernCall(url, text) : callInSession(url, session, text));
    return {
      stop,
      async run(count, inFlight) {
        const before = await processorTime(serving);
        const result = await callAll(url, text, count, inFlight, prepare);
        return { ...result, serverMicros: ((await processorTime(serving)) - before) / count };
      },
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Microseconds of processor time that a server has used so far. */
async function processorTime(serving: Serving): Promise<number> {
  const used = await serving.ask('cpu');
  if (typeof used !== 'object' || used === null || !('user' in used) || !('system' in used))
    throw new Error(`expected what process.cpuUsage() tells, got ${JSON.stringify(used)}`);
  return Number(used.user) + Number(used.system);
}

/** Opens a session as a client does, on a connection of its own. @returns its id */
async function openSession(url: URL): Promise<string> {
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

/**
 * Calls echo `count` times, on `inFlight` connections that are opened before the clock starts.
 *
 * @param prepare the bytes that one connection sends; asked once for each
 * @throws {Error} when an answer is not 200, has another id, or is not the echo
 */
export async function callAll(
  url: URL,
  text: string,
  count: number,
  inFlight: number,
  prepare: (connection: number) => { withId(id: number): Buffer; readonly id: number },
): Promise<Measured> {
  // Opened anew for each run: a server closes connections that were idle while the others had their turn.
  const connections = await Promise.all(Array.from({ length: inFlight }, () => HttpConnection.open(url)));
  const holds = `"${text}"`;
  try {
    return await new Promise((resolve, reject) => {
      const took: number[] = [];
      let sent = 0;
      const before = performance.eventLoopUtilization();
      const started = performance.now();
      for (const [index, connection] of connections.entries()) {
        const call = prepare(index);
        let sentAt = 0;
        const next = (): void => {
          if (sent === count) return;
          sent += 1;
          sentAt = performance.now();
          connection.send(call.withId(sent));
        };
        connection.heard((status, body, head) => {
          if (status !== 200 || !body.includes(`"id":${call.id}`) || !body.includes(holds))
            return reject(new Error(`expected 200 with the echo for id ${call.id}, got ${head}\n${body}`));
          took.push(performance.now() - sentAt);
          if (took.length === count) return resolve(measured(took, started, before));
          next();
        }, reject);
        next();
      }
    });
  } finally {
    for (const connection of connections) connection.close();
  }
}
