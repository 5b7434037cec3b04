/** Senders of webhooks: what GitHub, Stripe, Slack and Standard Webhooks sign, and a server that receives it. */
import { createHmac } from 'node:crypto';
import type { HookAttempt, HookDelivery, HookOptions } from '../../../src/features/hooks/define-hook.ts';
import type { HookRequest } from '../../../src/features/hooks/hook-request.ts';
import type { Hook } from '../../../src/features/hooks/registered-hooks.ts';
import { memory, type Server, type ServerOptions } from '../../../src/index.ts';
import { SimulatedClock } from '../../../src/testing/testing.ts';
import { github } from '../../../src/webhooks.ts';
import { timedServer } from '../../harness/memory.ts';

export const SECRET = 'the secret of a sender';
export const PATH = '/hooks/github';

export type HeaderLines = Readonly<Record<string, string>>;

export function hmacOf(secret: string | Buffer, text: string | Uint8Array, encoding: 'hex' | 'base64' = 'hex'): string {
  return createHmac('sha256', secret).update(text).digest(encoding);
}

/** The headers of a delivery of GitHub. */
export function byGithub(body: string | Uint8Array, more: HeaderLines = {}, secret = SECRET): HeaderLines {
  return {
    'content-type': 'application/json',
    'x-hub-signature-256': `sha256=${hmacOf(secret, body)}`,
    'x-github-delivery': '72d3162e-cc78-11e3-81ab-4c9367dc0958',
    'x-github-event': 'push',
    ...more,
  };
}

/** A request as a verifier sees it. @param headers several values of one header in a list */
export function requestOf(
  body: string | Uint8Array,
  headers: Readonly<Record<string, string | readonly string[]>>,
  now: number,
): HookRequest {
  const bytes = Buffer.from(body);
  const valuesOf = (name: string): readonly string[] => [headers[name.toLowerCase()] ?? []].flat();
  return {
    ...{ method: 'POST', path: '/hooks', query: '', body: bytes, now },
    header: (name) => (valuesOf(name).length === 0 ? undefined : valuesOf(name).join(', ')),
    only: (name) => (valuesOf(name).length === 1 ? valuesOf(name)[0] : undefined),
    json() {
      try {
        return JSON.parse(bytes.toString());
      } catch {
        return undefined;
      }
    },
  };
}

/** A handled delivery. */
export interface Handled {
  readonly delivery: HookDelivery;
  readonly attempt: HookAttempt;
}

export interface Receiver {
  readonly server: Server;
  readonly clock: SimulatedClock;
  readonly hook: Hook;
  readonly logged: readonly string[];
  readonly handled: readonly Handled[];
  /** The result of the next attempts; it may throw. */
  work: (handled: Handled) => unknown;
  /** Delivers to the path of the webhook. */
  send(body: string | Uint8Array, headers?: HeaderLines, path?: string): Promise<Response>;
}

/** A server with a webhook of GitHub, mounted in nothing: its requests need no socket. */
export async function receiver(
  options: Partial<HookOptions> = {},
  server: Partial<ServerOptions> = {},
  clock = new SimulatedClock(),
  define: (server: Server) => void = () => {},
): Promise<Receiver> {
  const timed = timedServer(server, clock);
  define(timed.server);
  const handled: Handled[] = [];
  const hook = timed.server.webhook(PATH, {
    verify: github({ secret: SECRET }),
    ...(options.emit === undefined && {
      to(delivery: HookDelivery, attempt: HookAttempt) {
        const each = { delivery, attempt };
        handled.push(each);
        return received.work(each);
      },
    }),
    ...options,
  });
  await timed.server.listen(memory().transport);
  const received: Receiver = {
    ...{ ...timed, hook, handled, work: () => undefined },
    send: (body, headers = byGithub(body), path = PATH) =>
      timed.server.fetch(new Request(`http://hooks.example.com${path}`, { method: 'POST', body, headers })),
  };
  return received;
}
