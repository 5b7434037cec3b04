/** The values of a resource as they change: waits at the server if the host proxies `troupe_watch`, and else reads at intervals. */
import { isMembers, type Members, ViewError } from './host-link.ts';
import type { ServerProxy } from './server-proxy.ts';
import type { Surroundings } from './surroundings.ts';

/** The tool of the server that answers when a resource differs from a version. */
const WATCH_TOOL = 'troupe_watch';
/** Milliseconds that the server waits for a change: a host's own deadline is longer. */
const WAIT_MS = 25_000;
/** Milliseconds that the host has to answer beyond that time. */
const GRACE_MS = 35_000;
/** Milliseconds between two reads. */
const READ_MS = 5_000;
/** Milliseconds without a change after which the view asks once in {@link REST_MS}. */
const QUIET_MS = 600_000;
const REST_MS = 60_000;
/** Failures in a row that a resource survives after it was read once. */
const MAX_FAILURES = 3;

export interface WatchOptions {
  /** The version of the value that the view shows: it is not yielded again. */
  readonly version?: number | string | undefined;
  /** Ends the watch. */
  readonly signal?: AbortSignal;
}

/** One answer: a new value, or none. */
type Answer<T> = { readonly value: T } | undefined;

export async function* watch<T>(
  server: ServerProxy,
  surroundings: Surroundings,
  uri: string,
  closed: AbortSignal,
  { version, signal }: WatchOptions,
): AsyncGenerator<T, void> {
  const ended = signal ? AbortSignal.any([signal, closed]) : closed;
  let known: unknown = version;
  let knownText: string | undefined;
  const wait = async (): Promise<Answer<T>> => {
    const options = { signal: ended, timeoutMs: WAIT_MS + GRACE_MS };
    const args = { uri, waitMs: WAIT_MS, ...(known === undefined ? {} : { version: known }) };
    const { structuredContent: answer, isError } = await server.call(WATCH_TOOL, args, options);
    if (isError || !isMembers(answer)) throw new ViewError('refused', `the server does not let ${uri} be watched`);
    known = answer.version;
    return answer.changed === false ? undefined : { value: resourceOf<T>(answer) };
  };
  const read = async (): Promise<Answer<T>> => {
    const [contents] = await server.read(uri, { signal: ended, timeoutMs: GRACE_MS });
    const text = contents?.text ?? 'null';
    if (text === knownText) return undefined;
    knownText = text;
    return { value: JSON.parse(text) };
  };

  let ask = wait;
  let worked = false;
  let failures = 0;
  let changed = surroundings.now();
  while (!ended.aborted) {
    await sight(surroundings, ended);
    const began = surroundings.now();
    try {
      const answer = await ask();
      worked = true;
      failures = 0;
      if (answer) {
        changed = surroundings.now();
        yield answer.value;
      }
    } catch (error) {
      if (ended.aborted) return;
      failures += 1;
      // A connection may fail once. A refusal of the first attempt is the host's answer.
      const lasting = !worked || failures > MAX_FAILURES;
      if (lasting && ask === read) throw error;
      if (lasting) {
        ask = read;
        worked = false;
        failures = 0;
        continue;
      }
    }
    const now = surroundings.now();
    const every = now - changed >= QUIET_MS ? REST_MS : ask === read || failures > 0 ? READ_MS : 0;
    await pause(surroundings, every - (now - began), ended);
  }
}

/** The JSON of the resource in an answer of the tool. */
function resourceOf<T>({ changed: _, ...rest }: Members): T {
  // The type is what the author expects of the reserver.
  return rest as T;
}

/** Resolves when a person can see the view, or the watch ends. */
function sight(surroundings: Surroundings, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      if (!surroundings.isSeen() && !ended.aborted) return;
      stop();
      ended.removeEventListener('abort', check);
      resolve();
    };
    const stop = surroundings.onSeen(check);
    ended.addEventListener('abort', check);
    check();
  });
}

/** Resolves after a time, or earlier when a person turns to the view or the watch ends. */
function pause(surroundings: Surroundings, ms: number, ended: AbortSignal): Promise<void> {
  if (ms <= 0) return Promise.resolve();
  return new Promise((resolve) => {
    const done = (): void => {
      cancel();
      stop();
      ended.removeEventListener('abort', done);
      resolve();
    };
    const cancel = surroundings.after(ms, done);
    const stop = surroundings.onSeen(done);
    ended.addEventListener('abort', done);
  });
}
