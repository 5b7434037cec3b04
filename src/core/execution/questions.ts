/**
 * The questions that authors ask and the types of their answers: `ctx.elicit`, `ctx.elicitUrl`, `ctx.sample`, `ctx.roots`
 * and `ctx.ask`. Types only.
 */
import type { JsonObject } from '../protocol/json.ts';
import type { AudioContent, ImageContent, TextContent, Tool } from '../protocol/types.ts';
import type { AuthorSchema, Infer } from '../schema/schema-types.ts';

/** Asks the user to fill in a form. */
export interface Elicitation<S extends AuthorSchema = AuthorSchema> {
  /** The text for the user. */
  readonly message: string;
  /** The schema of the answer: a flat object of strings, numbers, booleans and choices (MCP "Elicitation", "Requested Schema"). */
  readonly schema: S;
}

/** Sends the user to a page, for data that must not pass through the client (MCP "Elicitation", URL mode). */
export interface UrlElicitation {
  readonly message: string;
  /** An absolute URL. */
  readonly url: string;
  /** Identifies the question to the page behind the URL. Default: random. Sent to clients of revision 2025-11-25. */
  readonly elicitationId?: string;
}

export interface ToolUseContent {
  readonly type: 'tool_use';
  readonly id: string;
  readonly name: string;
  readonly input: JsonObject;
}

export interface ToolResultContent {
  readonly type: 'tool_result';
  readonly toolUseId: string;
  readonly content: readonly JsonObject[];
  readonly structuredContent?: JsonObject;
  readonly isError?: boolean;
}

export type SamplingContent = TextContent | ImageContent | AudioContent | ToolUseContent | ToolResultContent;

export interface SamplingMessage {
  readonly role: 'user' | 'assistant';
  readonly content: SamplingContent | readonly SamplingContent[];
}

/** Asks the client's model (MCP "Sampling"). */
export interface Sampling {
  readonly messages: readonly SamplingMessage[];
  readonly maxTokens: number;
  readonly systemPrompt?: string;
  readonly temperature?: number;
  readonly stopSequences?: readonly string[];
  readonly modelPreferences?: JsonObject;
  /**
   * Context of the client's servers for its model. Not sent to a client of 2025-11-25 or later that has not declared
   * `sampling.context`; the log says so once.
   */
  readonly includeContext?: 'none' | 'thisServer' | 'allServers';
  readonly metadata?: JsonObject;
  /** Tools that the model may use; the client must declare `sampling.tools`. */
  readonly tools?: readonly Tool[];
  readonly toolChoice?: { readonly mode?: 'auto' | 'required' | 'none' };
}

export interface Root {
  readonly uri: string;
  readonly name?: string;
}

/** One question of `ctx.ask`. */
export type AnyQuestion =
  | { readonly elicit: Elicitation }
  | { readonly elicitUrl: UrlElicitation }
  | { readonly sample: Sampling }
  | { readonly roots: true };

export type Questions = Readonly<Record<string, AnyQuestion>>;

/** The user's answer to a form. `content` matches the schema. */
export type Answered<T> =
  | { readonly status: 'accepted'; readonly content: T }
  | { readonly status: 'declined' }
  | { readonly status: 'cancelled' };

/** The user's answer about a page. `accepted` means that they opened it, not that they completed it. */
export interface UrlAnswered {
  readonly status: 'accepted' | 'declined' | 'cancelled';
}

export interface Sampled {
  readonly role: 'user' | 'assistant';
  readonly content: SamplingContent | readonly SamplingContent[];
  readonly model: string;
  readonly stopReason?: string;
}

/** The answer to a question. */
export type AnswerTo<Q> = Q extends { readonly elicit: { readonly schema: infer S extends AuthorSchema } }
  ? Answered<Infer<S>>
  : Q extends { readonly elicitUrl: unknown }
    ? UrlAnswered
    : Q extends { readonly sample: unknown }
      ? Sampled
      : Q extends { readonly roots: true }
        ? readonly Root[]
        : never;

export type Answers<Q extends Questions> = { readonly [K in keyof Q]: AnswerTo<Q[K]> };

export interface AskOptions {
  /** Aborts the questions when their answers are no longer needed. They are withdrawn as far as the revision allows. */
  readonly signal?: AbortSignal;
}

/** The asking methods of a handler, the same in every revision. */
export interface Asking {
  /**
   * Asks the user to fill in a form and waits. An answer that does not match the schema is asked for again.
   *
   * @throws {CannotAsk} if the client does not declare `elicitation`
   * @throws {Unanswered} if the answer took too long (`limits.askMs`) or the client rejected the question
   * @throws {SchemaError} if no form supports the schema
   * @example
   * const answer = await ctx.elicit({ message: 'Which size?', schema: z.object({ size: z.enum(['S', 'L']) }) });
   * if (answer.status === 'accepted') order(answer.content.size);
   */
  elicit<const S extends AuthorSchema>(question: Elicitation<S>): Promise<Answered<Infer<S>>>;
  /**
   * Asks the user to open a page, for data that must not pass through the client: passwords, payment, consent of a third
   * party.
   *
   * @throws {CannotAsk} if the client does not declare `elicitation.url`
   * @throws {Unanswered} as for `elicit`
   */
  elicitUrl(question: UrlElicitation): Promise<UrlAnswered>;
  /**
   * Asks the client's model.
   *
   * @throws {CannotAsk} if the client does not declare `sampling`, or `sampling.tools` for tools
   * @throws {Unanswered} as for `elicit`, and if the user does not allow it
   */
  sample(question: Sampling): Promise<Sampled>;
  /**
   * Asks for the user's directories.
   *
   * @throws {CannotAsk} if the client does not declare `roots`
   * @throws {Unanswered} as for `elicit`
   */
  roots(): Promise<readonly Root[]>;
  /**
   * Asks several questions in one round. The names identify the answers when the request runs again.
   *
   * @throws as for each question; and the reason of `options.signal`
   * @example const { name, dirs } = await ctx.ask({ name: { elicit: { message: 'Who?', schema } }, dirs: { roots: true } });
   */
  ask<const Q extends Questions>(questions: Q, options?: AskOptions): Promise<Answers<Q>>;
}
