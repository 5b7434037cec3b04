/** What happens in a simulated world, decided by its seed: a list of actions, of which any can be left out and the rest still means something. */
import type { DiskFault } from './disk.ts';
import type { Random } from './random.ts';
import { ROSTER } from './roster.ts';

/** The tools of the simulated server (`tools.ts`). */
export type ToolName = 'echo' | 'slow' | 'ask' | 'pay' | 'job' | 'maybe' | 'chart' | 'trip' | 'deposit';

/** What a client does with an instance of the machine (`handles.ts`); `pry`: with one of somebody else. */
export type HandleAct = 'create' | 'add' | 'arm' | 'get' | 'end' | 'pry';

/** How a client answers what it is asked. */
export type Reply = 'accept' | 'decline' | 'cancel';

/** Whoever or whatever an action picks, it picks by a number, among those that there are then. */
export type Act =
  | { readonly type: 'connect'; readonly client: number; readonly delayMs: number }
  /** A client sends nothing more, and waits for what is in flight. */
  | { readonly type: 'leave'; readonly client: number }
  /** A client disconnected, or its network is. */
  | { readonly type: 'cut'; readonly client: number }
  | { readonly type: 'pause'; readonly client: number }
  | { readonly type: 'resume'; readonly client: number }
  | {
      readonly type: 'call';
      readonly client: number;
      readonly tool: ToolName;
      readonly ms: number;
      readonly heeds: boolean;
    }
  /** More calls at once than may be in flight. */
  | { readonly type: 'burst'; readonly client: number; readonly calls: number; readonly ms: number }
  | { readonly type: 'cancel'; readonly client: number; readonly pick: number }
  /** A request that is in flight is sent again. */
  | { readonly type: 'repeat'; readonly client: number; readonly pick: number }
  | {
      readonly type: 'reply';
      readonly client: number;
      readonly pick: number;
      readonly reply: Reply;
      readonly twice: boolean;
    }
  | {
      readonly type: 'task';
      readonly client: number;
      readonly pick: number;
      readonly what: 'get' | 'cancel' | 'list' | 'result';
    }
  /** A client asks for a task of somebody else. */
  | { readonly type: 'pry'; readonly client: number; readonly pick: number; readonly what: 'get' | 'cancel' | 'result' }
  | { readonly type: 'handle'; readonly client: number; readonly pick: number; readonly what: HandleAct }
  | { readonly type: 'watch'; readonly client: number; readonly pick: number }
  | { readonly type: 'change'; readonly what: 'tools' | 'resource'; readonly pick: number }
  | { readonly type: 'disk'; readonly fault: DiskFault }
  /** The process is killed, or is taken for dead and wakes again: then it runs on for a while beside the next. */
  | { readonly type: 'crash'; readonly zombieMs: number; readonly downMs: number; readonly skewMs: number }
  | { readonly type: 'restart'; readonly downMs: number; readonly skewMs: number };

export interface Action {
  /** Milliseconds that pass before it. */
  readonly after: number;
  readonly act: Act;
}

/** How many clients there are. */
const CLIENTS = ROSTER.length;

const TOOLS: readonly (readonly [number, ToolName])[] = [
  [3, 'echo'],
  [3, 'slow'],
  [3, 'ask'],
  [4, 'pay'],
  [4, 'job'],
  [3, 'maybe'],
  [4, 'chart'],
  [1, 'trip'],
  [5, 'deposit'],
];

const KINDS: readonly (readonly [number, Act['type']])[] = [
  [6, 'connect'],
  [2, 'leave'],
  [3, 'cut'],
  [2, 'pause'],
  [3, 'resume'],
  [34, 'call'],
  [2, 'burst'],
  [4, 'cancel'],
  [2, 'repeat'],
  [16, 'reply'],
  [10, 'task'],
  [3, 'pry'],
  [18, 'handle'],
  [4, 'watch'],
  [5, 'change'],
  [4, 'disk'],
  [4, 'crash'],
  [1, 'restart'],
];

/** The plan of a seed: everybody who will connect does so at first. */
export function makePlan(random: Random, length: number): readonly Action[] {
  const plan: Action[] = [];
  for (let client = 0; client < CLIENTS; client += 1) {
    if (random.chance(0.7)) plan.push({ after: random.below(5), act: connect(random, client) });
  }
  while (plan.length < length) plan.push({ after: gap(random), act: makeAct(random) });
  return plan;
}

/** Mostly at once, or nearly so; now and then long enough for deadlines to pass. */
function gap(random: Random): number {
  return random.weighted<() => number>([
    [4, () => 0],
    [6, () => random.between(1, 30)],
    [3, () => random.between(30, 500)],
    [1, () => random.between(500, 12_000)],
  ])();
}

function connect(random: Random, client: number): Act {
  return { type: 'connect', client, delayMs: random.chance(0.5) ? 0 : random.between(1, 40) };
}

function makeAct(random: Random): Act {
  const type = random.weighted(KINDS);
  const client = random.below(CLIENTS);
  const pick = random.below(1_000);
  switch (type) {
    case 'connect':
      return connect(random, client);
    case 'leave':
    case 'cut':
    case 'pause':
    case 'resume':
      return { type, client };
    case 'call':
      return { type, client, tool: random.weighted(TOOLS), ms: takes(random), heeds: random.chance(0.7) };
    case 'burst':
      return { type, client, calls: random.between(7, 20), ms: random.between(0, 300) };
    case 'cancel':
    case 'repeat':
    case 'watch':
      return { type, client, pick };
    case 'reply': {
      const reply = random.weighted<Reply>([
        [6, 'accept'],
        [1, 'decline'],
        [1, 'cancel'],
      ]);
      return { type, client, pick, reply, twice: random.chance(0.15) };
    }
    case 'task':
      return { type, client, pick, what: random.pick(['get', 'get', 'get', 'cancel', 'list', 'result']) };
    case 'pry':
      return { type, client, pick, what: random.pick(['get', 'cancel', 'result']) };
    case 'handle': {
      const what = random.weighted<HandleAct>([
        [4, 'create'],
        [12, 'add'],
        [4, 'arm'],
        [4, 'get'],
        [1, 'end'],
        [2, 'pry'],
      ]);
      return { type, client, pick, what };
    }
    case 'change':
      return { type, pick, what: random.pick(['tools', 'resource']) };
    case 'disk':
      return { type, fault: random.pick(['none', 'none', 'slow', 'full', 'failing']) };
    case 'crash': {
      const zombieMs = random.chance(0.4) ? random.between(200, 4_000) : 0;
      return { type, zombieMs, downMs: random.between(0, zombieMs > 0 ? 60 : 300), skewMs: skew(random) };
    }
    case 'restart':
      return { type, downMs: random.between(0, 300), skewMs: skew(random) };
  }
}

/** How long a handler works, in milliseconds; some outlast every deadline. */
function takes(random: Random): number {
  return random.weighted<() => number>([
    [2, () => 0],
    [5, () => random.between(1, 80)],
    [5, () => random.between(80, 900)],
    [1, () => random.between(900, 9_000)],
  ])();
}

/** How wrong the next process's wall clock is, in milliseconds. */
function skew(random: Random): number {
  return random.chance(0.8) ? 0 : random.between(-20_000, 20_000);
}
