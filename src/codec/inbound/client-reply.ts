/** Reads a client's reply to an input request: its unchecked result, or its error. */
import type { Reply } from '../../messages/input-messages.ts';
import { isObject } from '../../protocol/json.ts';
import type { Incoming } from '../../protocol/jsonrpc.ts';

export function clientReply({ result, error }: Extract<Incoming, { kind: 'response' }>): Reply {
  if (error === undefined) return { ok: true, result };
  const { code, message } = isObject(error) ? error : {};
  return {
    ok: false,
    error: {
      code: typeof code === 'number' ? code : 0,
      message: typeof message === 'string' ? message : 'no reason given',
    },
  };
}
