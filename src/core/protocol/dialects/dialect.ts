/**
 * A dialect: what one revision changes on the wire, as data. Other code queries these members and never compares
 * revisions.
 */
import type { ErrorCode } from '../errors.ts';
import type { Era, Revision } from '../revisions.ts';

/** The objects whose members depend on the revision. */
interface Shown {
  readonly implementation: readonly string[];
  readonly capabilities: readonly string[];
  readonly tool: readonly string[];
  readonly resource: readonly string[];
  readonly resourceTemplate: readonly string[];
  readonly prompt: readonly string[];
  readonly promptArgument: readonly string[];
  readonly progress: readonly string[];
}

export interface Dialect {
  readonly revision: Revision;
  readonly era: Era;
  /** The server accepts JSON-RPC batches and responds with one batch (2025-03-26 only). */
  readonly batching: boolean;
  /** The members of each object in this revision. */
  readonly shown: Shown;
  /** The supported types of content blocks. */
  readonly content: readonly string[];
  /** Values of `structuredContent` and `outputSchema`: they do not exist, must be objects, or may be any JSON value. */
  readonly structured: 'none' | 'object' | 'any';
  /**
   * Form fields of an elicitation. `none`: no forms. `plain`: simple fields, defaults for booleans only. `full`: all
   * fields, multiple choice, defaults.
   */
  readonly forms: 'none' | 'plain' | 'full';
  /** True if progress may extend the deadline of a running request ("Timeouts"). */
  readonly progressResetsDeadline: boolean;
  /** Results carry `resultType`, the server's name in `_meta`, and caching hints. */
  readonly selfDescribing: boolean;
  /** Number of content blocks that a sampling message may have. */
  readonly sampledBlocks: 'one' | 'many';
  /** Clients that may be sent a sampling request with `includeContext`: all, or those that have declared `sampling.context`. */
  readonly samplingContext: 'all' | 'declared';
  /** A URL elicitation has an id that the server assigns (2025-11-25 only). */
  readonly elicitationIds: boolean;
  /**
   * Condition for a call to become a task: never; if the client requests it (2025-11-25, experimental); if the client supports it
   * (the extension).
   */
  readonly tasks: 'none' | 'asked' | 'extension';
  /** The error code for a resource that does not exist. */
  readonly resourceNotFound: typeof ErrorCode.ResourceNotFound | typeof ErrorCode.InvalidParams;
  /** The id of an error response to an unreadable request: JSON-RPC's `null`, or (from 2025-11-25) no id. */
  readonly errorWithoutId: 'null' | 'absent';
  /** Over HTTP, a client can resume an event stream that was cut. */
  readonly resumableStreams: boolean;
  /**
   * Over HTTP, an event stream begins with an event that has an id and no data, so that the client can resume it
   * (SEP-1699). Older clients treat it as a broken message.
   */
  readonly primesStreams: boolean;
}

/** Derives a dialect from the previous one: adds or drops members and content types, and replaces the other values. */
export function extend(
  base: Dialect,
  change: Omit<Partial<Dialect>, 'shown'> & {
    readonly revision: Revision;
    readonly adds?: Partial<Shown>;
    readonly drops?: Partial<Shown>;
  },
): Dialect {
  const { adds = {}, drops = {}, content = [], ...replaced } = change;
  const members = (of: keyof Shown): readonly string[] =>
    [...base.shown[of], ...(adds[of] ?? [])].filter((member) => !drops[of]?.includes(member));
  return {
    ...base,
    ...replaced,
    content: [...base.content, ...content],
    shown: {
      implementation: members('implementation'),
      capabilities: members('capabilities'),
      tool: members('tool'),
      resource: members('resource'),
      resourceTemplate: members('resourceTemplate'),
      prompt: members('prompt'),
      promptArgument: members('promptArgument'),
      progress: members('progress'),
    },
  };
}
