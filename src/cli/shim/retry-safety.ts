/** Which requests may be sent to the next server when nobody knows whether the last one has carried them out. */
import { isObject } from '../../protocol/json.ts';
import { scanMessages } from './scan.ts';

/** A request that is in flight. */
export interface PendingCall {
  readonly method: string;
  /** The whole line; undefined for a request of a batch, which cannot be sent again alone. */
  readonly line: string | undefined;
}

/** The methods that leave something behind in a session. */
export const MAX_REMEMBERED: ReadonlySet<string> = new Set([
  'initialize',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/** The methods that do no harm when they are done twice. `tools/call` is one for some tools; a server rejects what has no method. */
const HARMLESS: ReadonlySet<string> = new Set([
  '',
  ...MAX_REMEMBERED,
  'ping',
  'server/discover',
  'tools/list',
  'resources/list',
  'resources/templates/list',
  'resources/read',
  'prompts/list',
  'prompts/get',
  'completion/complete',
  'tasks/get',
  'tasks/list',
  'tasks/result',
  'subscriptions/listen',
]);

// Not from protocol/meta.ts, which loads five modules more: a shim must start fast.
const REVISION = 'io.modelcontextprotocol/protocolVersion';

/** Makes of a request without a session one that a server with a durable store can tell from its repeat. */
const IDEMPOTENCY_KEY = 'io.troupe/idempotency-key';

export class RetrySafety {
  /** Tools that may be called twice. */
  #tools: ReadonlySet<string> = new Set();

  /** Takes in which tools may be called twice: the server says so, as the wire of 2024-11-05 has no annotations. */
  learn(tools: readonly string[]): void {
    this.#tools = new Set(tools);
  }

  /** True for what does no harm when it is done twice. */
  isHarmless(asked: PendingCall): boolean {
    if (asked.method !== 'tools/call') return HARMLESS.has(asked.method);
    return this.#tools.size > 0 && this.#tools.has(String(paramsOf(asked).name));
  }
}

/** True for what names itself so that a server with a durable store can tell it from its repeat: all but a modern request without a key. */
export function hasIdempotencyKey(asked: PendingCall): boolean {
  const { _meta: meta } = paramsOf(asked);
  return !isObject(meta) || meta[REVISION] === undefined || meta[IDEMPOTENCY_KEY] !== undefined;
}

export function paramsOf({ line = '' }: PendingCall): Readonly<Record<string, unknown>> {
  return scanMessages(line)[0]?.params ?? {};
}
