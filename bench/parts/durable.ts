/**
 * Calls of a server with a store in a file beside the same server without one: those that change nothing, and those that
 * may, and the floor of these; and those that may beside the same in PostgreSQL.
 */
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { programs, startPostgres } from '../../test/harness/postgres.ts';
import { FLOOR, OURS } from '../contenders.ts';
import { familyMicros } from '../family.ts';
import { callAll, isEcho, openSessions } from '../http.ts';
import { type Caller, type PreparedCall, request, type Way } from '../http-requests.ts';
import type { Measured } from '../measured.ts';
import { inTurns, type Runner, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing, type Serving, serve } from '../serving.ts';

export const WITH_STORE = `${OURS}, sqlite`;
export const WITH_POSTGRES = `${OURS}, postgres`;
/** A bare server with a thread that makes two group commits for each call, as a call that may change something does. */
export const FLOOR_WITH_THREAD = `${FLOOR}, thread`;

/** What is called, and how: a call without a session is known by its key. */
const CALLS = [
  { way: 'read, session', tool: 'echo', caller: 'session', key: false },
  { way: 'read, modern', tool: 'echo', caller: 'modern', key: false },
  { way: 'put, session', tool: 'put', caller: 'session', key: false },
  { way: 'write, session', tool: 'write', caller: 'session', key: false },
  { way: 'write, modern with a key', tool: 'write', caller: 'modern', key: true },
] as const satisfies readonly { way: string; tool: string; caller: Way; key: boolean }[];

/** A call that may have done something, in a session. */
export const WRITE = CALLS[3];
/** The calls that are measured in PostgreSQL, too: those that write. */
export const DATABASE_CALLS = [CALLS[2], CALLS[3], CALLS[4]] as const;
/** Those in flight. */
export const DATABASE_SIZE = 64;

export type DurableWay = (typeof CALLS)[number]['way'];

export interface Running extends Serving {
  readonly file: string | undefined;
  readonly prepared: (connection: number) => PreparedCall;
  /** Calls that it has had: no id of a session, and no key, is used twice. */
  called: number;
}

/** Clients that share what is in flight. */
const CLIENTS = 8;
export const TEXT = 'x'.repeat(64);
/** The part of the key that is another for each call has the seven digits of an id. */
const KEY = 'key-of-call-1000000';

export async function measureDurable(_contenders: unknown, scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('durable');
  const folder = mkdtempSync(join(tmpdir(), 'troupe-bench-'));
  const sizes = scale.inFlight.filter((size) => size > 1);
  const file = (way: string): string => join(folder, `${way}-${Date.now()}.db`);
  const runners: readonly Runner<Running>[] = [
    ...CALLS.flatMap((call): readonly Runner<Running>[] => [
      { who: OURS, way: call.way, start: () => startCalls(call, undefined) },
      { who: WITH_STORE, way: call.way, start: () => startCalls(call, file(call.way)) },
    ]),
    { who: FLOOR, way: WRITE.way, start: () => startFloor('none') },
    { who: FLOOR_WITH_THREAD, way: WRITE.way, start: () => startFloor(file('floor')) },
  ];
  try {
    await inTurns({
      gathering,
      figures: { calls: '/s', p50: 'ms', p99: 'ms', cpu: 'µs', growth: 'bytes' },
      runners,
      sizes,
      rounds: scale.rounds,
      prepare: (running) => warmUp(scale.warmMs, (ms) => callFor(running, ms, Math.max(...sizes))),
      async turn(running, size) {
        const before = bytesOf(running.file);
        const [{ perSecond, p50, p99, calls }, micros] = await costing(running, () => callFor(running, scale.ms, size));
        return { calls: perSecond, p50, p99, cpu: micros / calls, growth: (bytesOf(running.file) - before) / calls };
      },
    });
    if (programs === undefined) process.stderr.write('durable: no PostgreSQL, so its calls are not measured\n');
    else await besidePostgres(gathering, scale, file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return gathering.all;
}

/** The calls that write, in a file and in PostgreSQL. Its processor time is that of all its processes. */
async function besidePostgres(gathering: Gathering, scale: Scale, file: (way: string) => string): Promise<void> {
  const database = await startPostgres();
  try {
    await inTurns({
      gathering,
      figures: { calls: '/s', p50: 'ms', p99: 'ms', cpu: 'µs', database: 'µs' },
      runners: DATABASE_CALLS.flatMap((call): readonly Runner<Running>[] => [
        { who: WITH_STORE, way: call.way, start: () => startCalls(call, file(`beside ${call.way}`)) },
        { who: WITH_POSTGRES, way: call.way, start: async () => startCalls(call, await database.database()) },
      ]),
      sizes: [DATABASE_SIZE],
      rounds: scale.rounds,
      prepare: (running) => warmUp(scale.warmMs, (ms) => callFor(running, ms, DATABASE_SIZE)),
      async turn(running, size) {
        const before = familyMicros(database.pid);
        const [{ perSecond, p50, p99, calls }, micros] = await costing(running, () => callFor(running, scale.ms, size));
        const used = familyMicros(database.pid) - before;
        return { calls: perSecond, p50, p99, cpu: micros / calls, database: used / calls };
      },
    });
  } finally {
    await database.stop();
  }
}

export async function startCalls(
  { tool, caller, key }: (typeof CALLS)[number],
  file: string | undefined,
  ...audit: readonly ('audit' | 'required')[]
): Promise<Running> {
  const serving = await serve('servers/kept.mjs', file ?? 'none', ...audit);
  try {
    const callers: readonly Caller[] =
      caller === 'session'
        ? (await openSessions(serving.url, { calls: CLIENTS }, CLIENTS)).ids.map((session) => ({
            way: caller,
            session,
          }))
        : [{ way: caller }];
    const params = {
      name: tool,
      arguments: { text: TEXT },
      ...(key ? { _meta: { 'io.troupe/idempotency-key': KEY } } : {}),
    };
    const prepared = (connection: number): PreparedCall =>
      request(serving.url, callers[connection % callers.length] ?? { way: 'modern' }, 'tools/call', params);
    return { ...serving, file, prepared, called: 0 };
  } catch (error) {
    await serving.stop();
    throw error;
  }
}

/** Starts the floor of a {@link WRITE}. @param file of its thread, or `none` */
export async function startFloor(file: string): Promise<Running> {
  const serving = await serve('servers/floor-durable.mjs', file);
  const params = { name: WRITE.tool, arguments: { text: TEXT } };
  const prepared = () => request(serving.url, { way: 'stateless' }, 'tools/call', params);
  return { ...serving, file: undefined, prepared, called: 0 };
}

export async function callFor(running: Running, ms: number, inFlight: number): Promise<Measured> {
  const before = running.called;
  const measured = await callAll(running.url, isEcho(TEXT), { ms }, inFlight, (connection) => {
    const call = running.prepared(connection);
    return {
      get id() {
        return call.id;
      },
      withId: (id) => call.withId(before + id),
    };
  });
  running.called += measured.calls;
  return measured;
}

/** The size of a store, with its log. */
function bytesOf(file: string | undefined): number {
  if (file === undefined) return 0;
  return [file, `${file}-wal`].reduce((sum, name) => sum + (statSync(name, { throwIfNoEntry: false })?.size ?? 0), 0);
}
