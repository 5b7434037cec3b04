/** The results of requests, before a dialect renders them. */
import type { WireError } from '../protocol/errors.ts';
import { isObject, type JsonObject } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import type { SkillEntry } from '../protocol/skills.ts';
import type { TaskStatus } from '../protocol/task-params.ts';
import type {
  CacheHints,
  CallToolResult,
  CompleteResult,
  GetPromptResult,
  Implementation,
  Prompt,
  ReadResourceResult,
  Resource,
  ResourceTemplate,
  ServerCapabilities,
  Tool,
} from '../protocol/types.ts';
import type { InputRequest } from './client-input.ts';

/** One page of a list. All clients receive the same object, so that it is serialized once for each dialect. */
export type Page =
  | PageOf<'tools', Tool>
  | PageOf<'resources', Resource>
  | PageOf<'resourceTemplates', ResourceTemplate>
  | PageOf<'prompts', Prompt>
  | PageOf<'skills', SkillEntry>;

interface PageOf<K, D> {
  readonly of: K;
  readonly items: readonly D[];
  readonly nextCursor: string | undefined;
  /** Set if the page may differ between clients, so that no shared cache may keep it. */
  readonly scope?: 'private';
  /** Milliseconds for which clients may cache it; undefined: those of all lists. */
  readonly ttlMs?: number | undefined;
}

/** The server's description of itself. */
export interface ServerDescription {
  readonly info: Implementation;
  readonly capabilities: ServerCapabilities;
  readonly instructions: string | undefined;
}

/** The current state of a task, before a dialect renders it. */
export interface TaskState {
  readonly id: string;
  readonly status: TaskStatus;
  readonly message: string | undefined;
  /** ISO 8601. */
  readonly createdAt: string;
  readonly updatedAt: string;
  readonly ttlMs: number;
  readonly pollMs: number;
  /** The input requests for its client. No key is used twice in the life of a task. */
  readonly inputs: Readonly<Record<string, InputRequest>>;
  /** The outcome of its handler; undefined until then, and for a cancelled task. */
  readonly outcome: Outcome | undefined;
}

export type Result =
  | { readonly kind: 'empty' }
  | { readonly kind: 'initialize'; readonly introduction: ServerDescription }
  | { readonly kind: 'discover'; readonly introduction: ServerDescription; readonly scope?: 'private' }
  | { readonly kind: 'list'; readonly page: Page }
  | { readonly kind: 'call'; readonly result: CallToolResult }
  | { readonly kind: 'read'; readonly result: ReadResourceResult }
  | { readonly kind: 'skill'; readonly skill: SkillEntry; readonly hints: CacheHints }
  | { readonly kind: 'prompt'; readonly result: GetPromptResult }
  | { readonly kind: 'completion'; readonly result: CompleteResult }
  /** The result of a method that a program has added, as the program has made it. */
  | { readonly kind: 'object'; readonly result: JsonObject }
  /** The server has ended the subscription that this request opened. */
  | { readonly kind: 'subscription ended'; readonly id: RequestId }
  /**
   * The client must answer these input requests, by key, and retry with the state (2026-07-28 MRTR,
   * "InputRequiredResult").
   */
  | { readonly kind: 'input'; readonly requests: Readonly<Record<string, InputRequest>>; readonly state: string }
  /** The request has become this task. */
  | { readonly kind: 'task created'; readonly task: TaskState }
  | { readonly kind: 'task'; readonly task: TaskState }
  | { readonly kind: 'tasks'; readonly tasks: readonly TaskState[]; readonly nextCursor: string | undefined }
  /** The outcome of a task's call, for a request that asks only for it (2025-11-25). */
  | { readonly kind: 'task result'; readonly id: string; readonly result: Result };

export type Outcome =
  | { readonly ok: true; readonly result: Result }
  | { readonly ok: false; readonly error: WireError };

export const EMPTY: Outcome = { ok: true, result: { kind: 'empty' } };

/** True if a stored value is an outcome. Its contents are trusted: they are as they were written. */
export function isOutcome(value: unknown): value is Outcome {
  return isObject(value) && isObject(value.ok === true ? value.result : value.error);
}
