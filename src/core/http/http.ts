/** Creates the HTTP transport. What it consists of loads with the first one. */
import type { HttpOptions } from './http-options.ts';
import { type HttpTransport, NodeTransport } from './node-transport.ts';

export type { HttpTransport } from './node-transport.ts';

/**
 * Serves HTTP to clients of every revision at once. Clients up to 2025-11-25 have a session each; later ones need none.
 * Bound to loopback, it serves only clients that use a loopback name; bound elsewhere, only names in `allowedHosts`. An
 * option that is not given here falls back to `createServer({ http })`, then to the default.
 *
 * @throws {TypeError | RangeError} for an invalid option, with the expected value
 * @example
 * const transport = http({ port: 3000 });
 * await server.listen(transport);
 * console.error(transport.url); // http://127.0.0.1:3000/mcp
 */
export function http(options: HttpOptions = {}): HttpTransport {
  return new NodeTransport(options);
}
