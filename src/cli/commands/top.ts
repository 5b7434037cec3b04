/** `troupe top [URL|PID]`: shows the activity of an inspected server in a terminal. */
import { setTimeout as sleep } from 'node:timers/promises';
import { messageOf } from '../../core/protocol/json.ts';
import { hibernatingOf, hibernatingSessionsOf, LIVE, Model } from '../../inspector/model/index.ts';
import type { TrafficView } from '../../inspector/traffic/traffic-messages.ts';
import type { CommandIo, ExitCode } from '../command-io.ts';
import { readOptions } from '../command-options.ts';
import { findInspector, Rejected } from '../serving/inspector-requests.ts';
import { FrameStream } from '../top/frame-stream.ts';
import type { Line } from '../top/line.ts';
import { type Key, Terminal } from '../top/terminal.ts';
import { actorsShown, SORTS, type Sort, topView } from '../top/top-view.ts';
import { print, say, UsageError } from '../usage.ts';

const HELP = `Usage: troupe top [URL|PID] [--once]

Shows the clients of a server; what each request, input request, handle, task
and script waits for, and until when; event types and their webhooks,
schedules and dead letters; and how long requests take. The server needs an
inspector: start it with troupe dev FILE, or with --inspect.

  URL                    the URL of the inspector, as printed on stderr
  PID                    the process of the server
  --once                 print once, as text; the default without a terminal

URL and PID are optional if only one inspected server is running.

Keys: q quits; s changes the order (${SORTS.join(', ')});
arrow and page keys scroll.
`;

/** The redraw interval, in milliseconds. */
const DRAW_MS = 500;
/** The interval at which the event traffic is read, in milliseconds. */
const TRAFFIC_MS = 2_000;
/** The maximum number of records in memory: enough for open requests and for the durations of recent ones. */
const MAX_RECORDS = 20_000;
/** Maximum number of actors in a viewer's focus: the actors take turns. */
const FOCUS = 8;
/** For `--once`: the silence after which the state is complete, and the time limit, in milliseconds; and the number of actors to look at. */
const QUIET_MS = 400;
const MAX_MS = 5_000;
const MAX_VIEWS = 100;
/** The line width without a terminal. */
const DEFAULT_COLUMNS = 160;

/** Runs the command. @throws {UsageError} */
export async function main(args: readonly string[], io: CommandIo): Promise<ExitCode> {
  const line = readOptions('top', args, { once: '' });
  if (!line) return print(io, HELP);
  const { values, positionals } = line;
  if (positionals.length > 1)
    throw new UsageError(`troupe top: expected one URL or PID, got ${positionals.length}: ${positionals.join(' ')}`);
  try {
    const url = findInspector('top', positionals[0], io.env);
    if (values.once !== undefined || !io.stdout.isTTY) return print(io, await once(url));
    await watch(url);
    return undefined;
  } catch (error) {
    if (error instanceof UsageError) throw error;
    say(`troupe top: ${messageOf(error)}`);
    return 1;
  }
}

/** The model of one inspected server, and the stream that feeds it. */
class Session {
  readonly model = new Model({ maxRecords: MAX_RECORDS });
  readonly stream: FrameStream;
  status = 'connecting';
  traffic: TrafficView | undefined;
  /** The number of frames received. */
  frames = 0;

  constructor(url: URL) {
    this.stream = new FrameStream({
      url,
      since: () => this.model.newest,
      onFrame: (frame) => {
        this.frames += 1;
        this.model.take(frame);
      },
      onStatus: (status) => {
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
    return topView(this.model, { ...options, now, status: this.status, traffic: this.traffic });
  }
}

/** The text of `--once`. */
async function once(url: URL): Promise<string> {
  const session = new Session(url);
  const { model, stream } = session;
  let failure: unknown;
  const running = stream.once().catch((error: unknown) => {
    failure = error;
  });
  const until = Date.now() + MAX_MS;
  for (let before = -1; failure === undefined && Date.now() < until; ) {
    // Either the state at connection time has arrived completely, or nothing more arrives.
    if (model.timeAt(LIVE) > (model.hello?.now ?? Number.MAX_VALUE) || (before === session.frames && before > 0)) break;
    before = session.frames;
    await sleep(QUIET_MS);
  }
  if (failure !== undefined) throw failure;
  for (const actor of actorsShown(model).slice(0, MAX_VIEWS)) {
    const view = await stream.view(actor);
    if (view) model.take({ type: 'look', look: view });
  }
  session.traffic = await stream.traffic();
  stream.end();
  await running;
  const lines = session.lines({
    columns: DEFAULT_COLUMNS,
    rows: Number.MAX_SAFE_INTEGER,
    sort: 'tree',
    offset: 0,
    keys: '',
  });
  return `${lines.map(({ text }) => text.trimEnd()).join('\n')}\n`;
}

async function watch(url: URL): Promise<void> {
  const session = new Session(url);
  let sort: Sort = 'tree';
  let offset = 0;
  let turn = 0;
  let reading = false;
  const readTraffic = async (): Promise<void> => {
    if (reading || session.status !== 'live') return;
    reading = true;
    session.traffic = await session.stream.traffic();
    reading = false;
  };
  const keys = 'q quit · s sort';
  const draw = (): void => {
    const { columns, rows } = screen;
    screen.show(session.lines({ columns, rows, sort, offset, keys }));
  };
  const pressed = (key: Key): void => {
    if (key === 'quit') return process.exit(0);
    if (key === 'sort') sort = SORTS[(SORTS.indexOf(sort) + 1) % SORTS.length] ?? 'tree';
    else {
      const step = key.startsWith('page') ? Math.max(1, screen.rows - 8) : 1;
      const known =
        actorsShown(session.model).length +
        hibernatingOf(session.model).some.length +
        hibernatingSessionsOf(session.model).some.length;
      const all = known + session.model.exchanges.open(LIVE).length;
      offset = Math.min(Math.max(0, offset + (key.endsWith('up') ? -step : step)), all);
    }
    draw();
  };
  const screen = new Terminal({ input: process.stdin, output: process.stdout, pressed, resized: draw });
  for (const signal of ['SIGTERM', 'SIGHUP', 'SIGINT'] as const) process.on(signal, () => process.exit(0));
  draw();
  setInterval(() => void readTraffic(), TRAFFIC_MS);
  setInterval(() => {
    draw();
    // The inspector reports waits only of focused actors, so the focus rotates over all actors.
    const all = actorsShown(session.model);
    if (session.status !== 'live' || all.length === 0) return;
    turn = turn * FOCUS >= all.length ? 0 : turn;
    session.stream.focus(all.slice(turn * FOCUS, (turn + 1) * FOCUS)).catch(() => {});
    turn += 1;
  }, DRAW_MS);
  try {
    await session.stream.run();
  } catch (error) {
    if (!(error instanceof Rejected)) throw error;
    // Printed after the terminal is restored.
    process.on('exit', () => say(`troupe top: ${error.message}`));
    process.exit(1);
  }
}
