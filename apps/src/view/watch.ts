/** The values of a resource as they change: waits at the server if the host proxies `troupe_watch`, and else reads at intervals. */
import { isMembers, ViewError } from './host-link.ts';
import { isGone, type ServerProxy } from './server-proxy.ts';
import type { Surroundings } from './surroundings.ts';

/** The tool of the server that answers when a resource differs from a version. */
const WATCH_TOOL = 'troupe_watch';
/** Milliseconds that the server waits for a change: a host's own deadline is longer. */
const WAIT_MS = 25_000;
/** Milliseconds that the host has to answer beyond that time. */
const GRACE_MS = 10_000;
/** Milliseconds between two reads. */
const READ_MS = 5_000;
/** Milliseconds without a change after which the view asks once in {@link REST_MS}. */
const QUIET_MS = 600_000;
const REST_MS = 60_000;
/** Failures in a row that a resource survives after it was read once. */
const MAX_FAILURES = 3;

/** The code of a resource that does not exist (MCP 2025-11-25 server/resources, "Error Handling"). */
const NOT_FOUND = -32_002;

export interface WatchOptions {
  /** Ends the watch. */
  readonly signal?: AbortSignal;
  /**
   * Called with the error when a request fails after others have worked, and without one when a request works again. The watch
   * continues in the meantime.
   */
  readonly onLost?: (error?: ViewError) => void;
}

export async function* watch<T>(
  server: ServerProxy,
  surroundings: Surroundings,
  uri: string,
  closed: AbortSignal,
  { signal, onLost }: WatchOptions,
): AsyncGenerator<T, void> {
  const ended = signal ? AbortSignal.any([signal, closed]) : closed;
  /** The version that the page has; its text where the resource is read. */
  let known: unknown;
  const wait = async (): Promise<T | undefined> => {
    const options = { signal: ended, timeoutMs: WAIT_MS + GRACE_MS };
    const args = { uri, waitMs: WAIT_MS, ...(known === undefined ? {} : { version: known }) };
    const result = await server.call(WATCH_TOOL, args, options);
    const { structuredContent: answer, isError } = result;
    if (isError || !isMembers(answer)) throw new ViewError(isGone(result) ? 'gone' : 'refused', uri);
    const { changed, version, value, ...members } = answer;
    known = version;
    if (changed === false) return undefined;
    // An instance counts its versions, and they are its own member. The type is what the author expects of the resource.
    return (typeof known === 'number' ? { ...members, version } : value === undefined ? members : value) as T;
  };
  const read = async (): Promise<T | undefined> => {
    const [contents] = await server.read(uri, { signal: ended, timeoutMs: GRACE_MS });
    const text = contents?.text ?? 'null';
    if (text === known) return undefined;
    known = text;
    return JSON.parse(text);
  };

  let ask = wait;
  let worked = false;
  let failures = 0;
  let changed = surroundings.now();
  await rest(surroundings, 0, ended);
  while (!ended.aborted) {
    const began = surroundings.now();
    try {
      const value = await ask();
      if (failures > 0) onLost?.();
      worked = true;
      failures = 0;
      if (value !== undefined) {
        changed = surroundings.now();
        yield value;
      }
    } catch (error) {
      if (ended.aborted) return;
      if (error instanceof ViewError && (error.reason === 'gone' || error.code === NOT_FOUND))
        throw new ViewError('gone', uri, error.code);
      failures += 1;
      if (worked && error instanceof ViewError) onLost?.(error);
      // A connection may fail once. A refusal of the first attempt is the host's answer.
      if (!worked || failures > MAX_FAILURES) {
        if (ask === read) throw error;
        ask = read;
        worked = false;
        failures = 0;
        continue;
      }
    }
    const now = surroundings.now();
    const every = now - changed >= QUIET_MS ? REST_MS : ask === read || failures ? READ_MS : 0;
    await rest(surroundings, every - (now - began), ended);
  }
}

/** Resolves when a time is over and a person can see the view; earlier when a person turns to the view, or the watch ends. */
function rest(surroundings: Surroundings, ms: number, ended: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    let isDue = ms <= 0;
    const check = (): void => {
      if (!ended.aborted && !(isDue && surroundings.isSeen())) return;
      cancel();
      stop();
      ended.removeEventListener('abort', check);
      resolve();
    };
    const turn = (): void => {
      isDue = true;
      check();
    };
    const cancel = surroundings.after(Math.max(ms, 0), turn);
    const stop = surroundings.onSeen(turn);
    ended.addEventListener('abort', check);
    check();
  });
}
