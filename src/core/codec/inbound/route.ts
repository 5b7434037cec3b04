/** The errors for messages that no entry of the methods table serves. */
import type { Dialect } from '../../protocol/dialects/index.ts';
import { ErrorCode, ProtocolError } from '../../protocol/errors.ts';
import { META } from '../../protocol/meta.ts';
import type { Method } from '../../protocol/methods.ts';
import { LATEST_MODERN, SUPPORTED_REVISIONS } from '../../protocol/revisions.ts';

/** The error for a request that neither has the `_meta` of a modern request nor follows an `initialize`. */
export function unopened(method: string): ProtocolError {
  const keys = `params._meta["${META.protocolVersion}"] and params._meta["${META.clientCapabilities}"]`;
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `${method}: expected ${keys} (revision 2026-07-28), or "initialize" first (2025-11-25 and earlier); got neither`,
    { supported: SUPPORTED_REVISIONS },
  );
}

/** The reason why a notification or response is rejected on a shared connection without a session. */
export function misplacedWithoutSession(kind: 'notification' | 'response', modern: boolean): string | undefined {
  // 2026-07-28 streamable-http "Sending Messages": clients send requests and notifications, never responses.
  if (modern) return kind === 'notification' ? undefined : `revision ${LATEST_MODERN} has no responses from clients`;
  return `a ${kind} belongs to a session: expected the header Mcp-Session-Id, as "initialize" was answered with, got none`;
}

/**
 * A dialect does not have a method. @throws {ProtocolError} -32601, which states whether the method is unknown or belongs
 * to another era
 *
 * @param known the method of this name in another era, if there is one
 */
export function methodMissing(name: string, dialect: Dialect, known: Method | undefined): never {
  if (known?.kind === 'notification')
    throw new ProtocolError(ErrorCode.InvalidRequest, `${name} is a notification: send it without an id`);
  const elsewhere =
    known && !known.eras.includes(dialect.era) ? ` (it belongs to the ${known.eras.join(' and ')} era)` : '';
  throw new ProtocolError(
    ErrorCode.MethodNotFound,
    `revision ${dialect.revision} of this server has no method "${name.slice(0, 100)}"${elsewhere}`,
  );
}
