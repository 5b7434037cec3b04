/**
 * The definitions and results of a server, in the fullest form of any revision. The dialects define what each revision
 * shows.
 */
import type { JsonObject, JsonValue } from './json.ts';

export interface Icon {
  readonly src: string;
  readonly mimeType?: string | undefined;
  readonly sizes?: readonly string[] | undefined;
  readonly theme?: 'light' | 'dark' | undefined;
}

export interface Implementation {
  readonly name: string;
  readonly version: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly icons?: readonly Icon[] | undefined;
  readonly websiteUrl?: string | undefined;
}

export interface Annotations {
  readonly audience?: readonly ('user' | 'assistant')[] | undefined;
  /** 0 (optional) to 1 (required). */
  readonly priority?: number | undefined;
  /** ISO 8601. */
  readonly lastModified?: string | undefined;
}

export interface ToolAnnotations {
  readonly title?: string | undefined;
  readonly readOnlyHint?: boolean | undefined;
  readonly destructiveHint?: boolean | undefined;
  readonly idempotentHint?: boolean | undefined;
  readonly openWorldHint?: boolean | undefined;
}

interface Described {
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly icons?: readonly Icon[];
  readonly _meta?: JsonObject;
}

export interface Tool extends Described {
  readonly inputSchema: JsonObject;
  readonly outputSchema?: JsonObject;
  readonly annotations?: ToolAnnotations;
  /** True if a call can be a task (2025-11-25). */
  readonly execution?: { readonly taskSupport: 'optional' | 'required' };
}

export interface Resource extends Described {
  readonly uri: string;
  readonly mimeType?: string;
  readonly annotations?: Annotations;
  /** Bytes. */
  readonly size?: number;
}

export interface ResourceTemplate extends Described {
  readonly uriTemplate: string;
  readonly mimeType?: string;
  readonly annotations?: Annotations;
}

export interface PromptArgument {
  readonly name: string;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly required?: boolean | undefined;
}

export interface Prompt extends Described {
  readonly arguments?: readonly PromptArgument[];
}

interface Content {
  readonly annotations?: Annotations;
  readonly _meta?: JsonObject;
}

export interface TextContent extends Content {
  readonly type: 'text';
  readonly text: string;
}

export interface ImageContent extends Content {
  readonly type: 'image';
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
}

export interface AudioContent extends Content {
  readonly type: 'audio';
  /** Base64. */
  readonly data: string;
  readonly mimeType: string;
}

export interface ResourceLink extends Content {
  readonly type: 'resource_link';
  readonly uri: string;
  readonly name: string;
  readonly title?: string;
  readonly description?: string;
  readonly mimeType?: string;
  readonly size?: number;
  readonly icons?: readonly Icon[];
}

export interface EmbeddedResource extends Content {
  readonly type: 'resource';
  readonly resource: ResourceContents;
}

export type ContentBlock = TextContent | ImageContent | AudioContent | ResourceLink | EmbeddedResource;

export type ResourceContents = {
  readonly uri: string;
  readonly mimeType?: string;
  readonly _meta?: JsonObject;
} & ({ readonly text: string } | { readonly blob: string });

export interface CallToolResult {
  readonly content: readonly ContentBlock[];
  /** Any JSON value from 2026-07-28; earlier revisions show it only when it is an object. */
  readonly structuredContent?: JsonValue;
  readonly isError?: boolean;
  readonly _meta?: JsonObject;
}

export interface CacheHints {
  /** Milliseconds for which the result counts as fresh; at least 0. */
  readonly ttlMs?: number | undefined;
  readonly cacheScope?: 'public' | 'private' | undefined;
}

export interface ReadResourceResult extends CacheHints {
  readonly contents: readonly ResourceContents[];
  readonly _meta?: JsonObject;
}

export interface PromptMessage {
  readonly role: 'user' | 'assistant';
  readonly content: ContentBlock;
}

export interface GetPromptResult {
  readonly description?: string;
  readonly messages: readonly PromptMessage[];
  readonly _meta?: JsonObject;
}

export interface CompleteResult {
  readonly completion: { readonly values: readonly string[]; readonly total?: number; readonly hasMore?: boolean };
  readonly _meta?: JsonObject;
}

/** RFC 5424 severities, least severe first (MCP "Logging"). */
export const LOG_LEVELS = ['debug', 'info', 'notice', 'warning', 'error', 'critical', 'alert', 'emergency'] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

export function isLogLevel(value: unknown): value is LogLevel {
  return LOG_LEVELS.some((level) => level === value);
}

/** The capabilities that a client declares. Clients may declare more than these. */
export interface ClientCapabilities {
  readonly roots?: { readonly listChanged?: boolean };
  readonly sampling?: JsonObject;
  readonly elicitation?: JsonObject;
  readonly experimental?: JsonObject;
  readonly extensions?: JsonObject;
  readonly tasks?: JsonObject;
}

/** The capabilities of a server, before a dialect selects what to show. */
/** An event type that a server offers (SEP-3415). */
export interface EventType {
  readonly name: string;
  readonly title?: string;
  readonly description: string;
  readonly delivery: readonly ('poll' | 'push' | 'webhook')[];
  readonly inputSchema: JsonObject;
  readonly payloadSchema: JsonObject;
  readonly _meta?: JsonObject;
}

export interface ServerCapabilities {
  readonly tools?: { readonly listChanged?: boolean };
  readonly resources?: { readonly subscribe?: boolean; readonly listChanged?: boolean };
  readonly prompts?: { readonly listChanged?: boolean };
  readonly completions?: JsonObject;
  /** Events: as an extension, and here for clients that follow its design sketch. */
  readonly events?: JsonObject;
  readonly logging?: JsonObject;
  readonly experimental?: JsonObject;
  readonly extensions?: JsonObject;
  /** 2025-11-25 only; the modern era uses an extension. */
  readonly tasks?: JsonObject;
}
