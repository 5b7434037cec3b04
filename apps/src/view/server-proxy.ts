/** The tools and resources of the server, which the host passes on. */
import { type HostLink, isMembers, type Members } from './host-link.ts';

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

export class ServerProxy {
  readonly #link: HostLink;
  #key: unknown;

  constructor(link: HostLink) {
    this.#link = link;
  }

  /** @throws {ViewError} if the host refuses the call or does not answer */
  async call(tool: string, args: object = {}, { signal, timeoutMs = CALL_MS }: CallOptions = {}): Promise<ToolResult> {
    const meta = this.#key === undefined ? {} : { _meta: { [KEY_MEMBER]: this.#key } };
    return this.result(
      await this.#link.request('tools/call', { name: tool, arguments: args, ...meta }, timeoutMs, signal),
    );
  }

  /** @throws {ViewError} if the host refuses it or does not answer */
  async read(uri: string, { signal, timeoutMs = CALL_MS }: CallOptions = {}): Promise<readonly ResourceContents[]> {
    const { contents } = await this.#link.request('resources/read', { uri }, timeoutMs, signal);
    return Array.isArray(contents) ? contents.filter(isContents) : [];
  }

  /** Reads a result. The calls that follow carry its key. */
  result({ content, structuredContent, isError, _meta }: Members): ToolResult {
    if (isMembers(_meta)) this.#key = _meta[KEY_MEMBER] ?? this.#key;
    return {
      content: Array.isArray(content) ? content.filter(isBlock) : [],
      ...(structuredContent === undefined ? {} : { structuredContent }),
      ...(isError === true ? { isError } : {}),
      ...(isMembers(_meta) ? { _meta } : {}),
    };
  }
}

function isBlock(value: unknown): value is ContentBlock {
  return isMembers(value) && typeof value.type === 'string';
}

function isContents(value: unknown): value is ResourceContents {
  return isMembers(value) && typeof value.uri === 'string';
}
