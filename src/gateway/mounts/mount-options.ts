/** The options of `server.mount`, their check and defaults, and the object that it returns. */
import type { ConnectTarget } from '../../client/client-options.ts';
import type { ServerInMemory } from '../../client/in-memory.ts';
import type { Guarded } from '../../core/messages/authorization-rule.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { type CallLimits, problemOfLimits } from '../../features/guard/limits/call-limits.ts';
import type { DirectTarget } from './direct-target.ts';
import { type MountApproval, problemOfApprovals } from './mount-approvals.ts';
import type { NameOptions } from './names.ts';
import type { Exposure, FoundBy } from './tool-finder.ts';
import type { UpstreamAuth } from './upstream-grants.ts';

/** A server to mount: what `connect` accepts, a `Server` of `createServer`, or an API (`openapi()`). */
export type MountTarget = ConnectTarget | ServerInMemory | DirectTarget;

/** Options of one mount. Durations are in milliseconds. */
export interface MountOptions extends NameOptions, Guarded {
  /**
   * The authorization at an upstream with an address. Default: each principal signs in where the upstream demands it, unless
   * the target has headers or an authorization of its own.
   */
  readonly auth?: UpstreamAuth | undefined;
  /**
   * The calls that people must approve before they run (docs/approvals.md): patterns of the upstream's names, by the caller, or entries
   * with more. A call needs what each entry about it demands. Default: none.
   */
  readonly approve?: readonly MountApproval[] | undefined;
  /** Limits of each tool of the mount, for each principal. */
  readonly limits?: CallLimits | undefined;
  /**
   * `owner` (default): a legacy upstream gets a connection for each client that calls, so that it can ask that client. `everyone`:
   * one for all, on which it can ask no client.
   */
  readonly share?: 'everyone' | 'owner' | undefined;
  /** The eras to speak with the upstream, as for `connect`. Default `auto`. */
  readonly eras?: 'auto' | 'legacy' | 'modern' | undefined;
  /** Deadline of a call, a read, a prompt and a completion. Default: that of the server, `limits.timeoutMs`. */
  readonly timeoutMs?: number | undefined;
  /**
   * `search`: no list contains the tools; `find_tools` finds them, and `call_tool` calls them (docs/gateway.md). `code`: nor does
   * one; scripts call them as functions (docs/code-mode.md). `['search', 'code']`: both. Default `all`; of an OpenAPI document with
   * more than 100 operations `search`.
   */
  readonly expose?: Exposure | undefined;
  /** Text for models about this server, in at most 4,000 characters: a paragraph of the instructions of this server. Default: none. */
  readonly instructions?: string | undefined;
  /** Checks the arguments of calls against the input schema before they are sent. Default false: the upstream checks them. */
  readonly validate?: boolean | undefined;
  /**
   * Believes `readOnlyHint`, `destructiveHint` and `idempotentHint` of the upstream: a call that repeats nothing may be repeated after a
   * crash, and `approve: [{ destructive: true }]` leaves it out. Default false.
   */
  readonly trust?: boolean | undefined;
  /**
   * Compares the tools and prompts with those that were approved: `warn` reports a difference, `hold` offers only what is
   * approved, `off` does not compare. With `warn`, the first catalogue counts as approved. Default `warn`.
   */
  readonly pins?: 'off' | 'warn' | 'hold' | undefined;
  /** The path of the lock file with what is approved. Default: the server's store. */
  readonly pinFile?: string | undefined;
  /** The path of a file that keeps the catalogue if the server's store does not survive the process. Default: none. */
  readonly catalogueFile?: string | undefined;
  /** The server is ready (`/readyz`) only while this mount offers a catalogue. Default false. */
  readonly required?: boolean | undefined;
  /** Maximum number of connections to the upstream, and of calls in flight on one of them. Default 256 each. */
  readonly maxUpstreamConnections?: number | undefined;
  readonly maxUpstreamInFlight?: number | undefined;
  /** Maximum number of subscriptions to events of the upstream: one for each type, grant and arguments. Default 128. */
  readonly maxEventRelays?: number | undefined;
  /** The longest opening of a connection. Default 10,000. */
  readonly connectMs?: number | undefined;
  /** The time after which a local server that does not answer the probe for its era is taken for a legacy one. Default 3,000. */
  readonly probeMs?: number | undefined;
  /** The time that a call waits for a connection. Default 10,000. */
  readonly upstreamWaitMs?: number | undefined;
  /** The time after which an unused connection of an owner closes. Default 900,000. */
  readonly upstreamIdleMs?: number | undefined;
  /** The longest listing of the upstream. Default 15,000. */
  readonly listMs?: number | undefined;
  /** The longest time for which the first lists of a client wait for the first catalogue, if none is stored. Default 15,000. */
  readonly firstListMs?: number | undefined;
  /** The time for which a catalogue is offered that cannot be renewed. Default 86,400,000: a day. */
  readonly staleMs?: number | undefined;
  /** Maximum number of pages, and of elements, of one list. Default 64 and 5,000. */
  readonly maxListPages?: number | undefined;
  readonly maxListed?: number | undefined;
  /** Maximum number of characters of one catalogue as JSON. Default 16,777,216. */
  readonly maxListBytes?: number | undefined;
  /** Maximum number of characters of one definition as JSON: each client gets it with each list. A longer one is left out. Default 262,144. */
  readonly maxDefinitionBytes?: number | undefined;
  /** Longest message of the upstream, such as a result with a sound, and longest call, in bytes. Default 4,194,304. */
  readonly maxMessageBytes?: number | undefined;
  /** Maximum number of rounds of questions, and of samplings, that one call of the upstream may ask for. Default 10 and 8. */
  readonly maxRounds?: number | undefined;
  readonly maxSamplingPerCall?: number | undefined;
}

/** A mounted server. */
export interface Mount {
  readonly name: string;
  /** The state of its chart, such as `offering.current` (docs/gateway.md). */
  readonly state: string;
  /**
   * Resolves when a catalogue is offered.
   *
   * @throws {Error} if the upstream could not be listed and no catalogue is stored
   */
  ready(): Promise<void>;
  /** Lists the upstream now. @throws {Error} if it cannot be listed; the catalogue is then as before */
  refresh(): Promise<void>;
  /**
   * Approves the definitions of the present catalogue, so that `pins` neither reports nor holds them.
   *
   * @param element the tool or prompt, by its name upstream. Default: all
   * @returns one sentence for each difference that is approved
   * @throws {Error} for an unknown name, before the first catalogue, or if the pins cannot be stored
   */
  approve(element?: string): Promise<readonly string[]>;
  /**
   * Changes the options, the target, or both. Another target is listed first, and then takes the place of the present one:
   * calls in flight finish there.
   *
   * @throws {DefinitionError | TypeError} for an invalid option
   * @throws {Error} if the target cannot be listed within `connectMs` and `listMs`, or the signal aborts; nothing has changed then
   */
  change(change: MountChange): Promise<void>;
  /** Withdraws everything that it offers, lets calls in flight finish, and closes the connections to the upstream. Idempotent. */
  close(): Promise<void>;
}

/** A change of a mount. */
export interface MountChange {
  /** All options: those that are missing have their defaults. */
  readonly options: MountOptions;
  /** Default: the present one. */
  readonly target?: MountTarget | undefined;
  readonly signal?: AbortSignal | undefined;
}

const DEFAULTS = {
  pins: 'warn',
  maxUpstreamConnections: 256,
  maxUpstreamInFlight: 256,
  maxEventRelays: 128,
  connectMs: 10_000,
  probeMs: 3_000,
  upstreamWaitMs: 10_000,
  upstreamIdleMs: 900_000,
  listMs: 15_000,
  firstListMs: 15_000,
  staleMs: 86_400_000,
  maxListPages: 64,
  maxListed: 5_000,
  maxListBytes: 16_777_216,
  maxDefinitionBytes: 262_144,
  maxMessageBytes: 4_194_304,
  maxRounds: 10,
  maxSamplingPerCall: 8,
  validate: false,
  trust: false,
  required: false,
} as const satisfies MountOptions;

const LONGEST_INSTRUCTIONS = 4_000;

/** The options whose values a configuration writes as a program does. */
export const CONFIGURABLE = {
  ...option.ofDefaults(DEFAULTS),
  timeoutMs: option.duration,
  approve: problemOfApprovals,
  limits: problemOfLimits,
  share: option.oneOf('owner', 'everyone'),
  pins: option.oneOf('off', 'warn', 'hold'),
  expose: option.expected(
    '"all", "search", "code" or ["search", "code"]',
    (value) => value === 'all' || (Array.isArray(value) ? isEachOnce(value) : isEachOnce([value])),
  ),
  instructions: option.expected(
    `a text of 1 to ${LONGEST_INSTRUCTIONS} characters`,
    (value) => option.isFilled(value) && value.length <= LONGEST_INSTRUCTIONS,
  ),
  eras: option.oneOf('auto', 'legacy', 'modern'),
  scopes: option.expected('a list of scopes', option.areStrings),
};

const ROWS: option.Rows<MountOptions> = {
  // The names that they decide are checked when they are made.
  prefix: option.anything,
  rename: option.object,
  only: option.anything,
  except: option.anything,
  auth: option.anything,
  ...CONFIGURABLE,
  allow: option.expected('a function (call, ctx)', option.isFunction),
  ...option.each(['pinFile', 'catalogueFile'], option.expected('the path of a file', option.isFilled)),
};

function isEachOnce(ways: readonly unknown[]): boolean {
  return (
    ways.length > 0 && new Set(ways).size === ways.length && ways.every((way) => way === 'search' || way === 'code')
  );
}

/** The ways in which the tools of a mount are found; none if lists contain them. @param expose may be unchecked */
export function foundBy(expose: Exposure | undefined): readonly FoundBy[] {
  return [expose].flat().filter((way) => way === 'search' || way === 'code');
}

/** The options of a mount with their defaults. */
export type MountSettings = ReturnType<typeof readMountOptions>;

/** @throws {DefinitionError} with the name of the first option that is invalid */
export function readMountOptions(mount: string, options: MountOptions) {
  option.check(`mount "${mount}": `, options, ROWS, DefinitionError);
  return { ...DEFAULTS, ...option.withoutUndefined(options) };
}
