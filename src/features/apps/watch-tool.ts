/** The tool with which views wait for the change of a resource, because no view can subscribe (MCP Apps, 2026-01-26). */

import type { Context } from '../../core/execution/context.ts';
import { whenAborted } from '../../core/execution/request-context.ts';
import { failed } from '../../core/execution/tool-result.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { ErrorCode, isProtocolError } from '../../core/protocol/errors.ts';
import type { CallToolResult } from '../../core/protocol/types.ts';
import { WATCH_TOOL } from '../../core/protocol/views.ts';
import type { AnyTool } from '../../core/registry/define.ts';
import type { ReadVersion, ResourceReads } from './resource-reads.ts';
import type { ViewKeys } from './view-keys.ts';
import { keyIn, refusedInView } from './view-meta.ts';
import { PendingWatch, type WaitEnd, type Watches } from './watches.ts';

/** Maximum time in milliseconds that a call waits: hosts end a call after 30 seconds. */
const MAX_WAIT_MS = 25_000;

interface WatchToolOptions {
  readonly clock: Clock;
  readonly reads: ResourceReads;
  readonly watches: Watches;
  readonly keys: ViewKeys;
}

interface WatchArguments {
  readonly uri: string;
  readonly version?: string | number;
  readonly waitMs?: number;
}

export function watchTool(options: WatchToolOptions): AnyTool {
  return {
    name: WATCH_TOOL,
    title: 'Wait for a change',
    description:
      'For the views of this server: returns a resource as soon as it differs from a version, or that it does not when the time is over.',
    input: {
      type: 'object',
      properties: {
        uri: { type: 'string', minLength: 1, maxLength: 2_048, description: 'The resource' },
        version: {
          type: ['string', 'integer'],
          description: 'The version that the view shows. Without it, the resource is returned at once',
        },
        waitMs: {
          type: 'integer',
          minimum: 0,
          maximum: MAX_WAIT_MS,
          description: 'The milliseconds to wait for a change. Default: the most',
        },
      },
      required: ['uri'],
      additionalProperties: false,
    },
    annotations: { readOnlyHint: true, idempotentHint: true, openWorldHint: false },
    visibleTo: ['app'],
    // The schema has checked the arguments.
    handler: (args: never, ctx) => watch(args, ctx, options),
  };
}

async function watch(
  { uri, version, waitMs = MAX_WAIT_MS }: WatchArguments,
  ctx: Context,
  options: WatchToolOptions,
): Promise<CallToolResult> {
  try {
    if (version === undefined) return changed(uri, await options.reads.read(uri, ctx));
  } catch (error) {
    return refused(error);
  }
  return new Promise((resolve, reject) => new Wait(uri, version, waitMs, ctx, options, resolve, reject));
}

/** A resource that is not the caller's does not exist (S-04). @throws an error that is none of the protocol */
function refused(error: unknown): CallToolResult {
  if (!isProtocolError(error)) throw error;
  const { code, message } = error;
  const result = failed(message);
  return code === ErrorCode.ResourceNotFound ? refusedInView(result, 'unknown') : result;
}

/** A call until its resource differs from its version. */
class Wait {
  readonly #uri: string;
  readonly #version: string | number;
  readonly #ctx: Context;
  readonly #reads: ResourceReads;
  readonly #watch: PendingWatch;
  readonly #resolve: (result: CallToolResult) => void;
  readonly #reject: (error: unknown) => void;
  /** A read is under way, and the resource has changed since its beginning. */
  #reading = false;
  #again = false;

  constructor(
    uri: string,
    version: string | number,
    waitMs: number,
    ctx: Context,
    { clock, keys, reads, watches }: WatchToolOptions,
    resolve: (result: CallToolResult) => void,
    reject: (error: unknown) => void,
  ) {
    this.#uri = uri;
    this.#version = version;
    this.#ctx = ctx;
    this.#reads = reads;
    this.#resolve = resolve;
    this.#reject = reject;
    const { principal, session } = ctx;
    const view = keys.open(keyIn(ctx.meta), principal, uri)?.id;
    const until = clock.now() + waitMs;
    this.#watch = new PendingWatch(watches, uri, principal, session?.id, view, until, (end) => this.#ended(end));
    const full = watches.begin(this.#watch);
    if (full !== undefined) resolve(refusedInView(failed(`This view cannot wait: ${full}.`), 'full'));
    else {
      whenAborted(ctx, () => this.#watch.end('over'));
      // The call listens before it reads, so that no change falls between the two.
      this.#read();
    }
  }

  #ended(end: WaitEnd): void {
    if (end === 'replaced') this.#resolve(refusedInView(failed('This view waits in a newer call.'), 'replaced'));
    else if (end === 'over') this.#resolve(unchanged(this.#uri, this.#version));
    else if (this.#reading) this.#again = true;
    else this.#read();
  }

  #read(): void {
    this.#reading = true;
    this.#again = false;
    this.#reads.read(this.#uri, this.#ctx).then(
      (read) => {
        this.#reading = false;
        if (read.version !== this.#version) this.#answer(changed(this.#uri, read));
        else if (this.#again) this.#read();
      },
      (error: unknown) => {
        try {
          this.#answer(refused(error));
        } catch {
          this.#watch.stop();
          this.#reject(error);
        }
      },
    );
  }

  #answer(result: CallToolResult): void {
    this.#watch.stop();
    this.#resolve(result);
  }
}

function changed(uri: string, { version, data }: ReadVersion): CallToolResult {
  return {
    content: [{ type: 'text', text: `${uri}: version ${version}` }],
    structuredContent: { changed: true, ...data, version },
  };
}

function unchanged(uri: string, version: string | number): CallToolResult {
  return {
    content: [{ type: 'text', text: `${uri} has not changed` }],
    structuredContent: { changed: false, version },
  };
}
