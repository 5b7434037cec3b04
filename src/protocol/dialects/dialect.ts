/** What a dialect is: the data by which one revision differs on the wire. Code elsewhere asks these questions, never which revision it is. */
import type { ErrorCode } from '../errors.ts';
import type { Era, Revision } from '../revisions.ts';

/** The objects whose members depend on the revision. */
export interface Shown {
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
  /** JSON-RPC batches are accepted and answered as one (2025-03-26 only). */
  readonly batching: boolean;
  /** Which members of each object this revision knows. */
  readonly shown: Shown;
  /** The content block types that it knows. */
  readonly content: readonly string[];
  /** Whether `structuredContent` and `outputSchema` exist, and whether they may be any JSON value or an object only. */
  readonly structured: 'none' | 'object' | 'any';
  /** What an elicitation may ask for: it has no forms; plain fields only, with a default of true and false alone; every field, with choices of several and defaults. */
  readonly forms: 'none' | 'plain' | 'full';
  /** Whether a running request's deadline may be put off by its progress ("Timeouts"). */
  readonly progressResetsDeadline: boolean;
  /** Results carry `resultType`, the server's name in `_meta`, and caching hints. */
  readonly selfDescribing: boolean;
  /** How many content blocks a sampling message may have. */
  readonly sampledBlocks: 'one' | 'many';
  /** A page that the user is asked to open has an id of the server's (2025-11-25 only). */
  readonly elicitationIds: boolean;
  /** How a call becomes a task: never; where its client asks for it (2025-11-25, experimental); where its client takes it (the extension). */
  readonly tasks: 'none' | 'asked' | 'extension';
  /** The code for a resource that does not exist. */
  readonly resourceNotFound: typeof ErrorCode.ResourceNotFound | typeof ErrorCode.InvalidParams;
  /** What stands for the id of an error whose request could not be read: JSON-RPC's `null`, or (from 2025-11-25) nothing. */
  readonly errorWithoutId: 'null' | 'absent';
  /** Over HTTP, a client can come back to an event stream that was cut. */
  readonly resumableStreams: boolean;
  /** Over HTTP, an event stream begins with an event that has an id and no data, so that its client can come back (SEP-1699). Older clients take it for a broken message. */
  readonly primesStreams: boolean;
}

/** A revision, told as what it changes in the one before: members and content types are added or dropped, the rest replaced. */
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
