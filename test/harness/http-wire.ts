/** A wire over HTTP for modern clients: each request is a POST, which another node may answer. */
import { isObject } from '../../src/core/protocol/json.ts';
import { LATEST_MODERN } from '../../src/core/protocol/revisions.ts';
import type { Wire } from '../../src/testing/testing.ts';

/** @param token the bearer token of each request */
export function httpWire(url: string, token: string): Wire {
  const listeners: ((text: string) => void)[] = [];
  let close: (reason: string) => void = () => {};
  const closed = new Promise<string>((resolve) => {
    close = resolve;
  });
  const post = async (body: string): Promise<void> => {
    const { method, params } = Object(JSON.parse(body));
    const { name, uri, taskId } = isObject(params) ? params : {};
    const named = [name, uri, taskId].find((each) => typeof each === 'string');
    const response = await fetch(url, {
      method: 'POST',
      body,
      headers: {
        ...{ 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
        ...{ authorization: `Bearer ${token}`, 'mcp-protocol-version': LATEST_MODERN, 'mcp-method': method },
        ...(named && { 'mcp-name': named }),
      },
    });
    const text = await response.text();
    const isStream = response.headers.get('content-type') === 'text/event-stream';
    const messages = isStream ? [...text.matchAll(/^data: (.+)$/gm)].map(([, data = '']) => data) : [text];
    for (const message of messages) for (const listener of listeners) listener(message);
  };
  return {
    send: (text) => void post(text).catch((error: unknown) => close(String(error))),
    onText: (listener) => void listeners.push(listener),
    close: () => close('closed by the test'),
    closed,
  };
}
