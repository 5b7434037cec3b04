/** The tools and resources of the server, which the host passes on. */
import { type HostLink, type Members, membersOf } from './host-link.ts';

/** The member of `_meta` for views: the key that shows the server that a person acts, the data of the view, and reasons. */
const KEY_MEMBER = 'dev.troupe/view';
/** Milliseconds for a call and a read. */
const CALL_MS = 600_000;

/** A block of content: text, a picture and so on. */
export type ContentBlock = Members & { readonly type: string };

/** The result of a tool call. A failed call is a result with `isError`. */
export interface ToolResult<Output = unknown> {
  readonly content: readonly ContentBlock[];
  readonly structuredContent?: Output;
  readonly isError?: boolean;
  readonly _meta?: Members;
  /** The reason for which a call of a view failed, as a Troupe server names it (docs/apps.md, "On the wire"). */
  readonly reason?: string;
}

/** The contents of a resource. */
export interface ResourceContents {
  readonly uri: string;
  readonly mimeType?: string;
  readonly text?: string;
  readonly blob?: string;
}

export interface CallOptions {
  /** Gives up the answer. The call itself continues. */
  readonly signal?: AbortSignal;
  /** Milliseconds until the call fails; default 10 minutes. */
  readonly timeoutMs?: number;
}

export interface ServerProxy {
  /** @throws {ViewError} if the host refuses the call or does not answer */
  call(tool: string, args?: object, options?: CallOptions): Promise<ToolResult>;
  /** @throws {ViewError} if the host refuses it or does not answer */
  read(uri: string, options?: CallOptions): Promise<readonly ResourceContents[]>;
  /** Reads a result. The calls that follow carry its key. */
  result(params: Members): ToolResult;
}

export function serverProxy({ request }: HostLink): ServerProxy {
  let key: unknown;
  const result = (params: Members): ToolResult => {
    const { key: given, reason } = forView(params);
    if (given !== undefined) key = { key: given };
    const whole = { content: [], ...params, ...(typeof reason === 'string' && { reason }) };
    // Some hosts drop what they do not know; a result has content in any case.
    return isResult(whole) ? whole : { content: [] };
  };
  return {
    result,
    async call(name, args = {}, { signal, timeoutMs = CALL_MS } = {}) {
      const meta = key === undefined ? {} : { _meta: { [KEY_MEMBER]: key } };
      return result(await request('tools/call', { name, arguments: args, ...meta }, timeoutMs, signal));
    },
    async read(uri, { signal, timeoutMs = CALL_MS } = {}) {
      const { contents } = await request('resources/read', { uri }, timeoutMs, signal);
      return Array.isArray(contents) ? contents : [];
    },
  };
}

/** The part of a result that is for views alone. */
export function forView({ _meta }: { readonly _meta?: unknown }): Members {
  return membersOf(membersOf(_meta)[KEY_MEMBER]);
}

/** True if the server has refused a call for which no later one has another answer: its subject is not there. */
export function isGone({ reason = '' }: Pick<ToolResult, 'reason'>): boolean {
  return reason === 'unknown' || reason === 'expired';
}

function isResult(value: { readonly content: unknown }): value is ToolResult {
  return Array.isArray(value.content);
}
