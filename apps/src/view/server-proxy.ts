/** The tools and resources of the server, which the host passes on. */
import { type HostLink, type Members, membersOf } from './host-link.ts';

/** The member of `_meta` with the key that shows the server that a person acts in a view. */
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
    key = membersOf(params._meta)[KEY_MEMBER] ?? key;
    const whole = { content: [], ...params };
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

function isResult(value: { readonly content: unknown }): value is ToolResult {
  return Array.isArray(value.content);
}
