/** `troupe top [URL|PID]`: shows in a terminal what happens in a server whose inspector is open. */
import { setTimeout as sleep } from 'node:timers/promises';
import { hibernatingOf, LIVE, Model } from '../../inspector/model/index.ts';
import { messageOf } from '../../protocol/json.ts';
import { readOptions } from '../command-options.ts';
import { registeredInspectors } from '../serving/inspector-registry.ts';
import { safe } from '../top/format.ts';
import { FrameStream, Refused } from '../top/frame-stream.ts';
import { type Key, Terminal } from '../top/terminal.ts';
import { actorsShown, type Line, SORTS, type Sort, topView } from '../top/top-view.ts';
import { say, UsageError } from '../usage.ts';

const HELP = `Usage: troupe top [URL|PID] [--once]

Shows who is connected to a server, what each request, question, handle and task waits for and until when, and how long
requests take. The server is one with an inspector: troupe dev FILE, or --inspect.

  URL      its address, as it was said on stderr; not needed where there is one server
  PID      of its process, where there are several
  --once   print it once, as text; so it is also when stdout is no terminal

Keys: q quits, s sorts by the next of ${SORTS.join(', ')}; arrows and page keys scroll.
`;

/** Between two drawings, in milliseconds. */
const DRAW_MS = 500;
/** Records that are kept: enough for what is open, and for the times of the last requests. */
const MAX_RECORDS = 20_000;
/** Actors that an inspector lets one viewer look at at once: they are taken in turn. */
const FOCUS = 8;
/** For `--once`: how long nothing new may come, how long it may take in all, in milliseconds; and how many are looked at. */
const QUIET_MS = 150;
const MOST_MS = 5_000;
const MOST_LOOKS = 100;
/** How wide a line is where there is no terminal. */
const WIDE = 160;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[]): Promise<void> {
  const line = readOptions('top', args, { once: '' });
  if (!line) return void process.stdout.write(HELP);
  const { values, positionals } = line;
  if (positionals.length > 1)
    throw new UsageError(`troupe top: expected one URL or PID, got ${positionals.length}: ${positionals.join(' ')}`);
  try {
    const url = find(positionals[0]);
    await (values.once !== undefined || !process.stdout.isTTY ? once(url) : watch(url));
  } catch (error) {
    if (error instanceof UsageError) throw error;
    say(`troupe top: ${messageOf(error)}`);
    process.exitCode = 1;
  }
}

/** @throws {UsageError} for what is no address; {Error} when there is none, or there are several, with those */
function find(given: string | undefined): URL {
  if (given !== undefined && !/^\d+$/.test(given)) return readUrl(given);
  const all = registeredInspectors().filter(({ pid }) => given === undefined || pid === Number(given));
  const [only, ...more] = all;
  const where = given === undefined ? '' : ` in process ${given}`;
  if (!only)
    throw new Error(`no server with an inspector runs${where}: start one with troupe dev FILE, or with --inspect`);
  if (more.length === 0) return readUrl(only.url);
  const list = all.map(({ pid, server, target }) => `  ${String(pid).padStart(8)}  ${safe(server)}  ${safe(target)}`);
  throw new Error(
    `${all.length} servers have an inspector: choose one by its process, such as troupe top ${only.pid}\n${list.join('\n')}`,
  );
}

/** The token is told to nobody elsewhere. */
function readUrl(given: string): URL {
  const url = URL.canParse(given) ? new URL(given) : undefined;
  if (url?.protocol === 'http:' && url.hostname === '127.0.0.1' && url.hash.length > 1) return url;
  throw new UsageError(
    `troupe top: expected the address of an inspector with its token, such as http://127.0.0.1:41873/#pZ8…, got ${safe(given)}`,
  );
}

class Watched {
  readonly model = new Model({ maxRecords: MAX_RECORDS });
  readonly stream: FrameStream;
  status = 'connecting';
  /** How many frames came. */
  heard = 0;

  constructor(url: URL) {
    this.stream = new FrameStream({
      url,
      since: () => this.model.newest,
      hear: (frame) => {
        this.heard += 1;
        this.model.take(frame);
      },
      is: (status) => {
        this.status = status;
      },
    });
  }

  lines(options: {
    readonly columns: number;
    readonly rows: number;
    readonly sort: Sort;
    readonly offset: number;
    readonly keys: string;
  }): readonly Line[] {
    const now = Date.now() - (this.model.hello?.epoch ?? 0);
    return topView(this.model, { ...options, now, status: this.status });
  }
}

async function once(url: URL): Promise<void> {
  const watched = new Watched(url);
  const { model, stream } = watched;
  let failure: unknown;
  const running = stream.once().catch((error: unknown) => {
    failure = error;
  });
  const until = Date.now() + MOST_MS;
  for (let before = -1; failure === undefined && Date.now() < until; ) {
    // What was there when it connected has come, or nothing more comes.
    if (model.timeAt(LIVE) > (model.hello?.now ?? Number.MAX_VALUE) || (before === watched.heard && before > 0)) break;
    before = watched.heard;
    await sleep(QUIET_MS);
  }
  if (failure !== undefined) throw failure;
  for (const actor of actorsShown(model).slice(0, MOST_LOOKS)) {
    const look = await stream.look(actor);
    if (look) model.take({ type: 'look', look });
  }
  stream.end();
  await running;
  const lines = watched.lines({ columns: WIDE, rows: Number.MAX_SAFE_INTEGER, sort: 'tree', offset: 0, keys: '' });
  process.stdout.write(`${lines.map(({ text }) => text.trimEnd()).join('\n')}\n`);
}

async function watch(url: URL): Promise<void> {
  const watched = new Watched(url);
  let sort: Sort = 'tree';
  let offset = 0;
  let turn = 0;
  const keys = 'q quit · s sort';
  const draw = (): void => {
    const { columns, rows } = screen;
    screen.show(watched.lines({ columns, rows, sort, offset, keys }));
  };
  const pressed = (key: Key): void => {
    if (key === 'quit') return process.exit(0);
    if (key === 'sort') sort = SORTS[(SORTS.indexOf(sort) + 1) % SORTS.length] ?? 'tree';
    else {
      const step = key.startsWith('page') ? Math.max(1, screen.rows - 8) : 1;
      const known = actorsShown(watched.model).length + hibernatingOf(watched.model).some.length;
      const all = known + watched.model.exchanges.open(LIVE).length;
      offset = Math.min(Math.max(0, offset + (key.endsWith('up') ? -step : step)), all);
    }
    draw();
  };
  const screen = new Terminal({ input: process.stdin, output: process.stdout, pressed, resized: draw });
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.on(signal, () => process.exit(0));
  draw();
  setInterval(() => {
    draw();
    // What each waits for is told of those that are looked at: all have their turn.
    const all = actorsShown(watched.model);
    if (watched.status !== 'live' || all.length === 0) return;
    turn = turn * FOCUS >= all.length ? 0 : turn;
    watched.stream.focus(all.slice(turn * FOCUS, (turn + 1) * FOCUS)).catch(() => {});
    turn += 1;
  }, DRAW_MS);
  try {
    await watched.stream.run();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    // Said when the terminal is back to what it was.
    process.on('exit', () => say(`troupe top: ${error.message}`));
    process.exit(1);
  }
}
