/** Converts results and errors into a form that can be cloned between threads, and back. */

import { isEnvelope, toolResult } from '../../core/execution/envelope.ts';
import {
  ErrorCode,
  type ErrorCodeValue,
  isProtocolError,
  isToolError,
  ProtocolError,
  ToolError,
} from '../../core/protocol/errors.ts';
import { messageOf, stackOf } from '../../core/protocol/json.ts';
import type { Thrown, TransferredResult } from './pool-protocol.ts';

export function encodeResult(value: unknown): TransferredResult {
  if (!isEnvelope(value)) return { ok: true, value, envelope: false };
  const { data, meta, error } = value;
  return { ok: true, value: { data, meta, error }, envelope: true };
}

export function encodeError(error: unknown): TransferredResult {
  const isForClient = isProtocolError(error);
  const thrown: Thrown = {
    message: messageOf(error),
    stack: stackOf(error),
    code: isForClient ? error.code : undefined,
    data: isForClient ? error.data : undefined,
    forModel: isToolError(error),
  };
  return { ok: false, thrown };
}

/** The result of a call or step in a thread. @throws the error from the thread */
export function decodeResult(result: TransferredResult): unknown {
  if (!result.ok) throw errorOf(result.thrown);
  if (!result.envelope) return result.value;
  // `encodeResult` has taken it apart.
  return toolResult(result.value as Parameters<typeof toolResult>[0]);
}

function errorOf({ message, stack, code, data, forModel }: Thrown): Error {
  if (code !== undefined && isCode(code)) return new ProtocolError(code, message, data);
  const error = forModel ? new ToolError(message) : new Error(message);
  error.stack = stack;
  return error;
}

function isCode(code: number): code is ErrorCodeValue {
  return Object.values<number>(ErrorCode).includes(code);
}
