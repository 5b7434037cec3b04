/** The route for the deliveries of webhooks: reads the bytes of a body, and sends the answer of the feature that has the webhook. */
import { ErrorCode } from '../protocol/errors.ts';
import { ANONYMOUS } from '../protocol/principals.ts';
import type { TransportHost } from '../transports/transport.ts';
import type { LoadExcess } from './http-authenticator.ts';
import type { HttpRequest } from './http-message.ts';
import type { RouteAnswers } from './mcp-routes.ts';

/** A request to a webhook, whose sender is not known. */
export interface WebhookPost {
  readonly method: 'POST' | 'GET';
  readonly path: string;
  /** Without its "?". */
  readonly query: string;
  readonly body: Uint8Array;
  readonly remoteAddress: string | undefined;
  /** Each value of a header, by its name in any case, as far as they are known. */
  values(name: string): readonly string[];
}

/** The answer to a delivery; an empty one has no body. */
export interface WebhookAnswer {
  readonly status: number;
  /** Text for the sender. */
  readonly text?: string | undefined;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A webhook of a feature. */
export interface WebhookRoute {
  /** Longest body, in bytes. */
  readonly maxBytes: number;
  /** Counts a request of an address. @returns the limit that it exceeds */
  tooOften(address: string): LoadExcess | undefined;
  /** Answers a delivery, once it is durable. Never rejects. */
  receive(post: WebhookPost): Promise<WebhookAnswer>;
}

declare module '../transports/transport.ts' {
  interface TransportHost {
    /** The webhook at a path; undefined if there is none. */
    readonly webhook?: (path: string) => WebhookRoute | undefined;
  }
}

interface WebhookPlace {
  readonly method: WebhookPost['method'];
  readonly path: string;
  readonly query: string;
  readonly host: TransportHost;
}

/** Reads a request, and answers it. */
export function receiveWebhook(
  request: HttpRequest,
  webhook: WebhookRoute,
  { method, path, query, host }: WebhookPlace,
  answers: RouteAnswers,
): void {
  const refuse = (status: number, message: string): void =>
    answers.refuse(request, { status, message }, ErrorCode.InvalidRequest);
  // Signatures cover the bytes of the body, and no other part unpacks them.
  const encoding = request.header('content-encoding');
  if (encoding !== undefined && !/^identity$/i.test(encoding.trim()))
    return refuse(415, 'Content-Encoding: expected a body that is not compressed');
  const limits = { maxMessageBytes: webhook.maxBytes, retained: host.retained, raw: true } as const;
  request.body(limits, ANONYMOUS, (read) => {
    if ('fault' in read)
      switch (read.fault) {
        case 'cut':
        case 'not UTF-8':
          return request.response.destroy();
        case 'too long':
          return answers.refuse(
            request,
            {
              status: 413,
              message: `body: expected at most ${webhook.maxBytes} bytes`,
              headers: { connection: 'close' },
            },
            ErrorCode.InvalidRequest,
          );
        case 'no room':
          return refuse(503, 'the server holds too much at the moment. Send it again later');
        case 'read already':
          return refuse(500, 'the body was already read. Mount server.node or server.fetch before any body parser');
      }
    const { remoteAddress } = request;
    const values = (name: string): readonly string[] => request.values(name.toLowerCase());
    void webhook
      .receive({ method, path, query, remoteAddress, values, body: read.bytes ?? new Uint8Array() })
      .then(({ status, text, headers }) => {
        if (request.response.gone) return;
        const type = { 'content-type': 'text/plain; charset=utf-8', 'x-content-type-options': 'nosniff' };
        request.response.send(status, { ...(text === undefined ? {} : type), ...headers }, text);
      });
  });
}
