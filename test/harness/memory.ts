/** Servers in the memory of the test, with a log that the test reads, and their clients. */
import type { JsonObject } from '../../src/core/protocol/json.ts';
import { createServer, type Server, type ServerOptions } from '../../src/index.ts';
import { connect, SimulatedClock, type TestClient, type TestClientOptions } from '../../src/testing/testing.ts';

export interface LoggedServer {
  readonly server: Server;
  /** The lines of its log, such as `warning: …`. */
  readonly logged: string[];
}

export interface TimedServer extends LoggedServer {
  readonly clock: SimulatedClock;
}

/** A server whose log the test reads. */
export function loggedServer(options: Partial<ServerOptions> = {}): LoggedServer {
  const logged: string[] = [];
  const log = (level: string, message: string): void => void logged.push(`${level}: ${message}`);
  return { server: createServer({ name: 'tested', version: '1.0.0', log, ...options }), logged };
}

/** A server whose log the test reads, and whose time passes when the test says so. */
export function timedServer(options: Partial<ServerOptions> = {}, clock = new SimulatedClock()): TimedServer {
  return { ...loggedServer({ clock, ...options }), clock };
}

/** Connects a client, and opens a session. */
export async function inSession(
  server: Server,
  revision?: string,
  capabilities?: JsonObject,
  options?: TestClientOptions,
): Promise<TestClient> {
  const client = await connect(server, options);
  await client.initialize(revision, capabilities);
  return client;
}
