/** `--http` and its options: the HTTP address of `troupe serve` and `troupe dev`, and how the command line restricts the program's HTTP options. */

import { isLoopback } from '../../core/http/host-guard.ts';
import { http } from '../../core/http/http.ts';
import type { HttpOptions, SharedHttpOptions } from '../../core/http/http-options.ts';
import { type HttpTransport, isRelocatable, relocate } from '../../core/http/node-transport.ts';
import { messageOf } from '../../core/protocol/json.ts';
import type { Transport } from '../../core/transports/transport.ts';
import { type CommandLine, readAddress } from '../command-options.ts';
import { UsageError } from '../usage.ts';

/** The wildcard addresses: they bind every address of the machine. */
const EVERY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '::']);

/** The HTTP options of the command line. */
export interface HttpAddress {
  readonly port: number;
  readonly host: string;
  readonly path?: string;
  readonly allowedHosts?: readonly string[];
  readonly allowedOrigins?: readonly string[];
  readonly drainDelayMs?: number;
}

/** @returns undefined without `--http` @throws {UsageError} for an invalid address, or an HTTP option without `--http` */
export function readHttpAddress(values: CommandLine['values']): HttpAddress | undefined {
  const { http: address, path, 'allow-host': hosts, 'allow-origin': origins, 'drain-delay': delay } = values;
  if (address === undefined) {
    if (path ?? hosts ?? origins ?? delay)
      throw new UsageError('--path, --allow-host, --allow-origin and --drain-delay need --http');
    return undefined;
  }
  const read: HttpAddress = {
    ...readAddress('--http', address, '3000'),
    ...(path === undefined ? {} : { path }),
    ...(hosts === undefined ? {} : { allowedHosts: hosts.split(',') }),
    ...(origins === undefined ? {} : { allowedOrigins: origins.split(',') }),
    ...(delay === undefined ? {} : { drainDelayMs: milliseconds(delay) }),
  };
  // The program may allow the host later, so this check uses a loopback address. All other options are checked now.
  checked(() => http({ ...read, host: '127.0.0.1' }));
  return read;
}

/** @throws {UsageError} */
function milliseconds(value: string): number {
  if (/^\d{1,7}$/.test(value)) return Number(value);
  throw new UsageError(`--drain-delay: expected milliseconds from 0 to 9999999, got ${value}`);
}

/**
 * Creates the transport of `--http`, with the program's HTTP options. If the program opens its own `http()`, that transport moves
 * to the address of the command line: two ports would need two guards.
 *
 * @param shared the options of `createServer({ http })`
 * @param own the transports that the program opens
 * @throws {UsageError} if the command line allows more than the program does, or the program has several HTTP addresses
 */
export function openHttp(
  address: HttpAddress,
  shared: SharedHttpOptions | undefined,
  own: readonly Transport[],
): HttpTransport {
  const [transport, ...more] = own.filter(({ name }) => name === 'http');
  if (more.length > 0)
    throw new UsageError(
      `--http: expected a program with at most one HTTP address, got ${more.length + 1}: omit --http and let the program listen (troupe run)`,
    );
  if (!transport) return checked(() => http(restricted(shared ?? {}, address)));
  if (!isRelocatable(transport))
    throw new UsageError(
      '--http: expected a program that listens over HTTP with http(), got a custom HTTP transport, which --http cannot configure: omit --http and let the program listen (troupe run)',
    );
  checked(() => relocate(transport, (given) => restricted({ ...shared, ...given }, address)));
  return transport;
}

/**
 * Merges the program's options with the command line. Each list of the command line must be a subset of the program's list. If
 * the program has no list, the command line decides.
 *
 * @throws {UsageError} for a bind address, a Host name or an origin that the program does not allow
 */
export function restricted(program: HttpOptions, address: HttpAddress): HttpOptions {
  const { host, allowedHosts, allowedOrigins } = address;
  const bound = program.host;
  if (bound !== undefined && bound !== host && !isLoopback(host) && !EVERY_ADDRESS.has(bound))
    throw new UsageError(
      `--http: expected ${bound}, which the program binds with http({ host }), or a loopback address, got ${host}: change http({ host }) in the program`,
    );
  checkSubset('--allow-host', 'allowedHosts', allowedHosts, program.allowedHosts, coversHost);
  checkSubset(
    '--allow-origin',
    'allowedOrigins',
    allowedOrigins,
    program.allowedOrigins,
    (one, other) => one === other,
  );
  return { ...program, ...address, ownsProcess: true };
}

function checkSubset(
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
      `${flag}: expected a subset of the program's http.${option} (${allowed.join(', ') || 'none'}), got ${entry}: the command line can only restrict the list; add ${entry} to it in the program`,
    );
  }
}

/** A name without a port covers every port. */
function coversHost(allowed: string, given: string): boolean {
  const [one, other] = [allowed.toLowerCase(), given.toLowerCase()];
  return one === other || (other.startsWith(`${one}:`) && /^\d+$/.test(other.slice(one.length + 1)));
}

/** Turns errors in HTTP options into usage errors. */
function checked<T>(create: () => T): T {
  try {
    return create();
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new UsageError(`${messageOf(error)} (--allow-host for allowedHosts, --allow-origin for allowedOrigins)`);
  }
}
