/**
 * Compares the headers of a modern HTTP request with its body, so that no intermediary routes by a value that differs
 * from what is served.
 */
import type { Exchange } from '../../messages/connection-events.ts';
import { ErrorCode, ProtocolError } from '../../protocol/errors.ts';
import { decodeMirrored } from '../../protocol/header-values.ts';
import { METHODS } from '../../protocol/methods.ts';
import type { Params } from '../../protocol/operations.ts';
import { SUPPORTED_REVISIONS } from '../../protocol/revisions.ts';

/**
 * @param revision the revision in the body's `_meta`
 * @throws {ProtocolError} -32020 if `MCP-Protocol-Version` is missing or differs
 * @see 2026-07-28 streamable-http "Protocol Version Header"
 */
export function checkRevisionHeader(exchange: Exchange, revision: string): void {
  const header = exchange.incoming.header('mcp-protocol-version');
  if (header !== revision) throw mismatch('MCP-Protocol-Version', header, revision);
}

/**
 * @throws {ProtocolError} -32022 if `MCP-Protocol-Version` names an unsupported revision
 * @see 2025-11-25 basic/transports "Protocol Version Header"
 */
export function checkKnownRevision(exchange: Exchange): void {
  const requested = exchange.incoming.header('mcp-protocol-version');
  if (requested === undefined || SUPPORTED_REVISIONS.some((revision) => revision === requested)) return;
  throw new ProtocolError(
    ErrorCode.UnsupportedProtocolVersion,
    `MCP-Protocol-Version: expected one of ${SUPPORTED_REVISIONS.join(', ')}, got ${quote(requested)}`,
    { supported: SUPPORTED_REVISIONS, requested: requested.slice(0, 100) },
  );
}

/**
 * @throws {ProtocolError} -32020 if `Mcp-Method` or `Mcp-Name` is missing, malformed, or differs from the body
 * @see 2026-07-28 streamable-http "Standard Request Headers", "Server Validation"
 */
export function checkStandardHeaders(exchange: Exchange, method: string, params: Params): void {
  const header = exchange.incoming.header('mcp-method');
  if (header !== method) throw mismatch('Mcp-Method', header, method);
  const row = METHODS.get(method);
  if (row?.kind !== 'request' || !row.named) return;
  const named = params?.[row.named];
  // A body without the name is rejected later, with a better message.
  if (typeof named !== 'string') return;
  const name = exchange.incoming.header('mcp-name');
  // Two headers arrive joined by a comma, and together could equal the value in the body.
  const repeats = name?.includes(',') && exchange.incoming.repeats('mcp-name');
  if (name === undefined || repeats || decodeMirrored(name) !== named) throw mismatch('Mcp-Name', name, named);
}

function mismatch(header: string, got: string | undefined, expected: string): ProtocolError {
  const came = got === undefined ? 'the header is missing' : `got ${quote(got)}`;
  return new ProtocolError(ErrorCode.HeaderMismatch, `${header}: expected ${quote(expected)}, as in the body; ${came}`);
}

function quote(text: string): string {
  return `"${text.length > 100 ? `${text.slice(0, 100)}…` : text}"`;
}
