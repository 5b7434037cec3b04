/** A broadcast over HTTP: one change that every open stream is told of, and what it costs those who call meanwhile. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Contender } from '../contenders.ts';
import { openSession } from '../http.ts';
import { HttpConnection } from '../http-connection.ts';
import { type Caller, echo, type PreparedCall } from '../http-requests.ts';
import { at } from '../measured.ts';
import { keepingAgent, prepare } from '../posting.ts';
import { inTurns, type Runner } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing, type Serving, serve } from '../serving.ts';

/** The changes of each era. With a store, an event leaves when it is on the disk; the floor has none. A task of a session concerns that session only: there, one task of each session ends. */
export const CHANGES = [
  { way: 'legacy list', era: 'legacy', change: 'list', stored: false },
  { way: 'legacy resource', era: 'legacy', change: 'resource', stored: false },
  { way: 'legacy tasks', era: 'legacy', change: 'tasks', stored: false },
  { way: 'legacy list, with a store', era: 'legacy', change: 'list', stored: true },
  { way: 'legacy resource, with a store', era: 'legacy', change: 'resource', stored: true },
  { way: 'modern list', era: 'modern', change: 'list', stored: false },
  { way: 'modern resource', era: 'modern', change: 'resource', stored: false },
  { way: 'modern task', era: 'modern', change: 'task', stored: false },
] as const;
type Broadcast = (typeof CHANGES)[number];

const FILES = { floor: 'servers/floor-broadcast.mjs', ours: 'servers/broadcast.mjs' } as const;
/** Milliseconds between two calls of the bystander. */
const PACE_MS = 4;
/** Calls of the bystander before the broadcasts of a turn, which warm the server up. */
const WARM_CALLS = 200;
/** Milliseconds between two broadcasts. */
const PAUSE_MS = 50;

/** A server with its listeners and one client that only calls. */
interface Stage extends Serving {
  readonly listeners: Serving;
  readonly caller: Caller;
  readonly broadcasts: number;
  readonly change: string;
}

export async function measureBroadcast(
  contenders: readonly Contender[],
  scale: Scale,
  changes: readonly Broadcast[] = CHANGES,
): Promise<readonly Series[]> {
  const gathering = new Gathering('broadcast');
  for (const broadcast of changes)
    await inTurns({
      gathering,
      figures: { time: 'ms', cpu: 'ms', p99: 'ms', longest: 'ms' },
      runners: contenders.flatMap(({ name, kind }) =>
        kind === 'peer' ? [] : [runner(name, FILES[kind], broadcast, scale)],
      ),
      sizes: [scale.streams],
      rounds: scale.rounds,
      turn: measure,
    });
  return gathering.all;
}

function runner(who: string, file: string, broadcast: Broadcast, scale: Scale): Runner<Stage> {
  return { who, way: broadcast.way, start: () => stage(file, broadcast, scale) };
}

async function stage(file: string, { era, change, stored }: Broadcast, { streams, broadcasts }: Scale): Promise<Stage> {
  const folder = stored ? mkdtempSync(join(tmpdir(), 'troupe-bench-broadcast-')) : undefined;
  const remove = (): void => {
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  };
  const server = await serve(file, 'http', ...(folder === undefined ? [] : [join(folder, 'troupe.db')]));
  const { url } = server;
  let listeners: Serving | undefined;
  try {
    const task = change === 'task' ? await createTask(url) : '';
    listeners = await serve('--import', 'tsx', 'listeners.ts', url.href, era, change, String(streams), task);
    const opened = await listeners.ask('open');
    if (opened !== streams) throw new Error(`expected ${streams} streams, got ${String(opened)}`);
    const caller: Caller = era === 'legacy' ? { way: 'session', session: await openSession(url) } : { way: 'modern' };
    const there = listeners;
    return {
      ...server,
      listeners: there,
      caller,
      broadcasts,
      change,
      async stop() {
        await there.stop();
        await server.stop();
        remove();
      },
    };
  } catch (error) {
    await listeners?.stop();
    await server.stop();
    remove();
    throw error;
  }
}

async function createTask(url: URL): Promise<string> {
  const agent = keepingAgent();
  const _meta = {
    'io.modelcontextprotocol/clientCapabilities': { extensions: { 'io.modelcontextprotocol/tasks': {} } },
  };
  const created = await prepare(url, { way: 'modern' }, 'tools/call', { name: 'work', arguments: {}, _meta }, agent)();
  agent.destroy();
  const id = /"taskId":"([^"]+)"/.exec(created)?.[1];
  if (id === undefined) throw new Error(`expected a task, got ${created}`);
  return id;
}

/** One turn: broadcasts, one after the other; processor time of one, and the bystander's times during all of them. */
async function measure(stage: Stage): Promise<{ time: number; cpu: number; p99: number; longest: number }> {
  const { url, caller, listeners, broadcasts, change } = stage;
  // Opened anew for each turn: a server closes connections that were idle while the others had theirs.
  const bystander = await Bystander.open(url, caller);
  await bystander.call(WARM_CALLS);
  const times: number[] = [];
  const took: number[] = [];
  let cpu = 0;
  for (let done = 0; done < broadcasts; done += 1) {
    await listeners.ask('count');
    const [called, micros] = await costing(stage, async () => {
      const calling = bystander.begin();
      const hearing = listeners.ask('hear');
      const began = BigInt(String(await stage.ask(change)));
      const ended = BigInt(String(await hearing));
      times.push(Number(ended - began) / 1_000_000);
      return calling.end();
    });
    took.push(...called);
    cpu += micros / 1_000;
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
  bystander.close();
  const sorted = Float64Array.from(took).sort();
  return {
    time: times.reduce((sum, ms) => sum + ms, 0) / times.length,
    cpu: cpu / broadcasts,
    p99: at(sorted, 0.99),
    longest: sorted.at(-1) ?? Number.NaN,
  };
}

/** A client that calls steadily. How long a call took counts from when it was due, though the one before it was late. */
class Bystander {
  readonly #connection: HttpConnection;
  readonly #request: PreparedCall;

  private constructor(connection: HttpConnection, request: PreparedCall) {
    this.#connection = connection;
    this.#request = request;
  }

  static async open(url: URL, caller: Caller): Promise<Bystander> {
    return new Bystander(await HttpConnection.open(url), echo(url, caller, 'bystander'));
  }

  async call(times: number): Promise<void> {
    for (let id = 1; id <= times; id += 1) await this.#connection.exchange(this.#request.withId(id));
  }

  /** Calls every {@link PACE_MS} from now on. @returns how to end it, which gives the milliseconds that each call took */
  begin(): { end(): Promise<readonly number[]> } {
    const took: number[] = [];
    let ended = false;
    const calling = (async () => {
      let due = performance.now();
      for (let id = 1; !ended; id += 1) {
        const { status, body } = await this.#connection.exchange(this.#request.withId(id));
        if (status !== 200 || !body.includes('bystander')) throw new Error(`expected the echo, got ${status} ${body}`);
        took.push(performance.now() - due);
        due += PACE_MS;
        const wait = due - performance.now();
        if (wait > 0) await new Promise((resolve) => setTimeout(resolve, wait));
      }
    })();
    return {
      async end() {
        ended = true;
        await calling;
        return took;
      },
    };
  }

  close(): void {
    this.#connection.close();
  }
}
