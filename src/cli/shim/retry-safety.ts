/** Decides which requests the shim may resend to the next server, when the outcome on the last server is unknown. */
import { isObject } from '../../core/protocol/json.ts';
import { scanMessages } from './scan.ts';

/** A request in flight. */
export interface PendingCall {
  readonly method: string;
  /** The whole line; undefined for a request of a batch, which cannot be resent alone. */
  readonly line: string | undefined;
}

/** The methods that change the state of a session. */
export const SESSION_METHODS: ReadonlySet<string> = new Set([
  'initialize',
  'logging/setLevel',
  'resources/subscribe',
  'resources/unsubscribe',
]);

/** The methods that are safe to repeat. `tools/call` depends on the tool. The empty string is a message without a method, which a server rejects. */
const REPEATABLE: ReadonlySet<string> = new Set([
  '',
  ...SESSION_METHODS,
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

// Repeated from protocol/meta.ts, which would load five more modules: a shim must start fast.
const REVISION = 'io.modelcontextprotocol/protocolVersion';

/** The `_meta` key by which a server with a durable store recognises a repeated request of 2026-07-28. */
const IDEMPOTENCY_KEY = 'io.troupe/idempotency-key';

export class RetrySafety {
  /** The tools that are safe to call twice. */
  #tools: ReadonlySet<string> = new Set();

  /** Sets the tools that are safe to call twice. The server reports them, because 2024-11-05 has no annotations on the wire. */
  learn(tools: readonly string[]): void {
    this.#tools = new Set(tools);
  }

  /** True if the request is safe to repeat. */
  isRepeatable(call: PendingCall): boolean {
    if (call.method !== 'tools/call') return REPEATABLE.has(call.method);
    return this.#tools.size > 0 && this.#tools.has(String(paramsOf(call).name));
  }
}

/** True if a server with a durable store can recognise a repeat of the request: every legacy request, and modern requests with a key. */
export function hasIdempotencyKey(call: PendingCall): boolean {
  const { _meta: meta } = paramsOf(call);
  return !isObject(meta) || meta[REVISION] === undefined || meta[IDEMPOTENCY_KEY] !== undefined;
}

export function paramsOf({ line = '' }: PendingCall): Readonly<Record<string, unknown>> {
  return scanMessages(line)[0]?.params ?? {};
}
