/** `--http` and its options: where `troupe serve` serves over HTTP, and how far they may restrict what the program allows. */
import { messageOf } from '../../protocol/json.ts';
import { isLoopback } from '../../transports/http/host-guard.ts';
import { type HttpTransport, http, isRelocatable, relocate } from '../../transports/http/http.ts';
import type { HttpOptions, SharedHttpOptions } from '../../transports/http/http-options.ts';
import type { Transport } from '../../transports/transport.ts';
import type { CommandLine } from '../command-options.ts';
import { UsageError } from '../usage.ts';

/** The addresses that stand for every address of the machine. */
const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** What the command line says of HTTP. */
export interface HttpAddress {
  readonly port: number;
  readonly host: string;
  readonly path?: string;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
}

/** @returns undefined without `--http` @throws {UsageError} for an address that is none, or an option that does not fit */
export function readHttpAddress(values: CommandLine['values']): HttpAddress | undefined {
  const { http: address, path, 'allow-host': hosts, 'allow-origin': origins } = values;
  if (address === undefined) {
    if (path ?? hosts ?? origins)
      throw new UsageError('troupe serve: --path, --allow-host and --allow-origin are of --http: expected it, too');
    return undefined;
  }
  const [, bracketed, plain, port] = /^(?:(?:\[([^\]]+)\]|([^:]+)):)?(\d{1,5})$/.exec(address) ?? [];
  if (port === undefined)
    throw new UsageError(
      `troupe serve: --http: expected PORT or HOST:PORT, such as 3000 or 0.0.0.0:3000, got ${address}`,
    );
  const read: HttpAddress = {
    port: Number(port),
    host: bracketed ?? plain ?? '127.0.0.1',
    ...(path === undefined ? {} : { path }),
    ...(hosts === undefined ? {} : { allowedHosts: hosts.split(',') }),
    ...(origins === undefined ? {} : { allowedOrigins: origins.split(',') }),
  };
  // Whether others may reach the host, the program may have a say in; the rest is known now.
  made(() => http({ ...read, host: '127.0.0.1' }));
  return read;
}

/**
 * The transport of `--http`, with the program's HTTP options. If the program opens an `http()` of its own, that is the one, at
 * the address of the command line: two ports would need two guards.
 *
 * @param shared the options of `createServer({ http })`
 * @param own the transports that the program opens
 * @throws {UsageError} when the command line would allow what the program does not, or the program has several addresses
 */
export function openHttp(
  address: HttpAddress,
  shared: SharedHttpOptions | undefined,
  own: readonly Transport[],
): HttpTransport {
  const [transport, ...more] = own.filter(({ name }) => name === 'http');
  if (more.length > 0)
    throw new UsageError(
      `troupe serve: --http: expected a program with one HTTP address at most, got one that opens ${more.length + 1}: leave --http out, and let the program listen (troupe run)`,
    );
  if (!transport) return made(() => http(restricted(shared ?? {}, address)));
  if (!isRelocatable(transport))
    throw new UsageError(
      'troupe serve: --http: expected a program that listens over HTTP with http(), got one with a transport of its own, whose options the command does not know: leave --http out, and let the program listen (troupe run)',
    );
  made(() => relocate(transport, (given) => restricted({ ...shared, ...given }, address)));
  return transport;
}

/**
 * The program's options at the address of the command line. A list of the command line must be within the program's list;
 * where the program has none, the choice is with whoever starts it.
 *
 * @throws {UsageError} for a host, a name or an origin that the program does not allow
 */
export function restricted(program: HttpOptions, address: HttpAddress): HttpOptions {
  const { host, allowedHosts, allowedOrigins } = address;
  const bound = program.host;
  if (bound !== undefined && bound !== host && !isLoopback(host) && !EVERY_ADDRESS.has(bound))
    throw new UsageError(
      `troupe serve: --http: expected ${bound}, which the program binds with http({ host }), or a loopback address, got ${host}: change the program to serve there`,
    );
  within('--allow-host', 'allowedHosts', allowedHosts, program.allowedHosts, coversHost);
  within('--allow-origin', 'allowedOrigins', allowedOrigins, program.allowedOrigins, (one, other) => one === other);
  return { ...program, ...address, ownsProcess: true };
}

function within(
  flag: string,
  option: 'allowedHosts' | 'allowedOrigins',
  given: readonly string[] | undefined,
  allowed: readonly string[] | undefined,
  covers: (allowed: string, given: string) => boolean,
): void {
  if (!allowed) return;
  for (const entry of given ?? []) {
    if (allowed.some((each) => covers(each, entry))) continue;
    throw new UsageError(
      `troupe serve: ${flag}: expected some of what the program allows (http.${option}: ${allowed.join(', ') || 'none'}), got ${entry}: the command line can only restrict it; add it to the program's ${option}`,
    );
  }
}

/** A name without a port stands for every port of it. */
function coversHost(allowed: string, given: string): boolean {
  const [one, other] = [allowed.toLowerCase(), given.toLowerCase()];
  return one === other || (other.startsWith(`${one}:`) && /^\d+$/.test(other.slice(one.length + 1)));
}

function made<T>(make: () => T): T {
  try {
    return make();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(
      `troupe serve: ${messageOf(error)} (--allow-host for allowedHosts, --allow-origin for allowedOrigins)`,
    );
  }
}
