/** Finds the row of the methods table that serves a request, or says why none does. */
import type { Dialect } from '../../protocol/dialects/index.ts';
import { ErrorCode, ProtocolError } from '../../protocol/errors.ts';
import { META } from '../../protocol/meta.ts';
import { METHODS, SERVED, type ServedMethod } from '../../protocol/methods.ts';
import { LATEST_MODERN, SUPPORTED_REVISIONS } from '../../protocol/revisions.ts';

/** What a request is told that neither carries what a modern one does nor follows an `initialize`. */
export function unopened(method: string): ProtocolError {
  const keys = `params._meta["${META.protocolVersion}"] and params._meta["${META.clientCapabilities}"]`;
  return new ProtocolError(
    ErrorCode.InvalidParams,
    `${method}: expected ${keys} (revision 2026-07-28), or "initialize" first (2025-11-25 and earlier); got neither`,
    { supported: SUPPORTED_REVISIONS },
  );
}

/** Why a notification or response cannot be taken on a connection that clients share, and that has no session for it. */
export function misplacedWithoutSession(kind: 'notification' | 'response', modern: boolean): string | undefined {
  // 2026-07-28 streamable-http "Sending Messages": clients send requests and notifications, never responses.
  if (modern) return kind === 'notification' ? undefined : `revision ${LATEST_MODERN} has no responses from clients`;
  return `a ${kind} belongs to a session: expected the header Mcp-Session-Id, as "initialize" was answered with, got none`;
}

/** The row of the methods table. @throws {ProtocolError} -32601, saying whether the method is unknown or belongs to another era */
export function methodFor(name: string, dialect: Dialect): ServedMethod {
  const method = SERVED[dialect.era].get(name);
  if (method) return method;
  const known = METHODS.get(name);
  if (known?.kind === 'notification')
    throw new ProtocolError(ErrorCode.InvalidRequest, `${name} is a notification: send it without an id`);
  const elsewhere =
    known && !known.eras.includes(dialect.era) ? ` (it belongs to the ${known.eras.join(' and ')} era)` : '';
  throw new ProtocolError(
    ErrorCode.MethodNotFound,
    `revision ${dialect.revision} of this server has no method "${name.slice(0, 100)}"${elsewhere}`,
  );
}
