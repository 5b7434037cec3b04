/** The goals of speed and scale, each judged from what was measured in one run. */
import { FLOOR, OURS, SDK_1, SDK_2 } from './contenders.ts';
import { AUDITED, AUDITED_SIZE } from './parts/audit.ts';
import { CHANGES } from './parts/broadcast.ts';
import { CLIENT_WAYS, OFFICIAL_CLIENT } from './parts/client.ts';
import {
  DATABASE_CALLS,
  DATABASE_SIZE,
  type DurableWay,
  FLOOR_WITH_THREAD,
  WITH_POSTGRES,
  WITH_STORE,
  WRITE,
} from './parts/durable.ts';
import { OUR_GATEWAY, WITHOUT_GATEWAY } from './parts/gateway.ts';
import { GUARD_SIZE, GUARDS, type Guard } from './parts/guard.ts';
import { CALM, HOP_SIZE, HOPS } from './parts/hop.ts';
import { RULED, RULED_SIZE, type Ruled } from './parts/rules.ts';
import { LATER_NODE, RUN, RUN_TYPES, SCRIPT, THIS_NODE } from './parts/start.ts';
import { ALL_SPANS, SCRAPED, TRACED_SIZE, TRACED_WAY, WITHOUT_SDK } from './parts/telemetry.ts';
import { difference, type Part, ratio, type Series, type Spread, spread } from './series.ts';

export interface Judged {
  readonly measure: string;
  /** Such as `≥ 0.8 × the floor`. */
  readonly goal: string;
  readonly measured: string;
  readonly met: boolean;
  /** By how much it is missed, as a share of the goal. 0 where it is met. */
  readonly missedBy: number;
}

type Key = Pick<Series, 'part' | 'measure' | 'who' | 'way' | 'size'>;

/** What is judged: the middle of a ratio or of a figure, at least or at most so much. */
interface Goal {
  readonly measure: string;
  readonly bound: 'at least' | 'at most';
  readonly value: number;
  /** What the value counts: `× the floor`, `ms`. */
  readonly unit: string;
  /** A quick run is too short for it. */
  readonly long?: boolean;
  read(find: Find): Spread | undefined;
}

type Find = (key: Key) => Series | undefined;

const LEAST_SIZE = 0;

function calls(part: Part, who: string, way: string, size: number): Key {
  return { part, measure: 'calls', who, way, size };
}

/** Calls for each second of ours beside another's. */
function beside(part: Part, way: string, size: number, who: string, theirs = way): (find: Find) => Spread | undefined {
  return (find) => ratio(find(calls(part, OURS, way, size)), find(calls(part, who, theirs, size)));
}

function goals(all: readonly Series[]): readonly Goal[] {
  const most = (part: Part, measure: string): number =>
    Math.max(LEAST_SIZE, ...all.filter((one) => one.part === part && one.measure === measure).map(({ size }) => size));
  const sessions = most('sessions', 'a call in one session');
  const tools = most('lists', 'lists');
  const streams = most('broadcast', 'time');
  const peers = [...new Set(all.map(({ who }) => who))].filter((who) => who !== FLOOR && who !== OURS);
  const modern = 'modern tools/call over HTTP, 32 in flight';
  const legacy = 'legacy session tools/call over HTTP, 32 in flight';
  return [
    { measure: modern, bound: 'at least', value: 0.8, unit: '× the floor', read: beside('http', 'modern', 32, FLOOR) },
    { measure: modern, bound: 'at least', value: 9, unit: `× ${SDK_2}`, read: beside('http', 'modern', 32, SDK_2) },
    {
      measure: legacy,
      bound: 'at least',
      value: 0.75,
      unit: '× the floor',
      read: beside('http', 'session', 32, FLOOR),
    },
    { measure: legacy, bound: 'at least', value: 7, unit: `× ${SDK_1}`, read: beside('http', 'session', 32, SDK_1) },
    ...(['legacy', 'modern'] as const).flatMap((era): readonly Goal[] => [
      {
        measure: `stdio, ${era}, 64 in flight`,
        bound: 'at least',
        value: 0.6,
        unit: '× the floor',
        read: beside('stdio', era, 64, FLOOR),
      },
      {
        measure: `stdio, ${era}, 64 in flight`,
        bound: 'at least',
        value: 2.5,
        unit: '× the fastest peer',
        read: (find) => leastOf(peers.map((who) => beside('stdio', era, 64, who)(find))),
      },
      {
        measure: `stdio, ${era}, 64 in flight`,
        bound: 'at least',
        value: 6,
        unit: `× ${SDK_2}, modern`,
        read: beside('stdio', era, 64, SDK_2, 'modern'),
      },
      {
        measure: `stdio, ${era}, 1 in flight, p50`,
        bound: 'at most',
        value: 1.3,
        unit: '× the floor',
        read: (find) => {
          const p50 = (who: string): Series | undefined => find({ ...calls('stdio', who, era, 1), measure: 'p50' });
          return ratio(p50(OURS), p50(FLOOR));
        },
      },
    ]),
    ...[1, 200].map(
      (count): Goal => ({
        measure: `memory of an idle session, ${count === 1 ? '1 tool' : `${count} tools`}`,
        bound: 'at most',
        value: 8_192,
        unit: 'bytes',
        read: (find) => spreadOf(find({ part: 'sessions', measure: 'heap', who: OURS, way: 'session', size: count })),
      }),
    ),
    {
      measure: `a call among ${sessions} idle sessions, p50`,
      bound: 'at most',
      value: 1.1,
      unit: '× a call alone',
      read: (find) => crowded(find, 'a call in one session', sessions),
    },
    {
      measure: `opening the ${sessions}th session`,
      bound: 'at most',
      value: 1.2,
      unit: '× the 100th',
      read: (find) => crowded(find, 'opening one', sessions),
    },
    {
      measure: `tools/list of ${tools} tools, legacy session`,
      bound: 'at least',
      value: 20,
      unit: `× ${SDK_1}`,
      read: (find) => {
        const lists = (who: string): Key => ({ part: 'lists', measure: 'lists', who, way: 'session', size: tools });
        return ratio(find(lists(OURS)), find(lists(SDK_1)));
      },
    },
    {
      measure: `tools/list of ${tools} tools, modern`,
      bound: 'at least',
      value: 20,
      unit: `× ${SDK_2}`,
      read: (find) => {
        const lists = (who: string): Key => ({ part: 'lists', measure: 'lists', who, way: 'modern', size: tools });
        return ratio(find(lists(OURS)), find(lists(SDK_2)));
      },
    },
    {
      measure: "cold start of a user's own script, to the first answer",
      bound: 'at most',
      value: 1.5,
      unit: '× a bare script',
      read: (find) => slower(find, SCRIPT, THIS_NODE),
    },
    ...[...new Set(all.filter(({ part }) => part === 'start').map(({ size }) => size))].flatMap(
      (node): readonly Goal[] => [
        {
          measure: `cold start of \`troupe run\` on a compiled file, Node ${node}, to the first answer`,
          bound: 'at most',
          value: 2,
          unit: '× a bare script',
          read: (find) => slower(find, RUN, node),
        },
        {
          measure: `cold start of \`troupe run server.ts\`, Node ${node}, to the first answer`,
          bound: 'at most',
          value: node < LATER_NODE ? 3.5 : 2.5,
          unit: '× a bare script',
          read: (find) => slower(find, RUN_TYPES, node),
        },
      ],
    ),
    ...(['modern', 'session'] as const).map(
      (way): Goal => ({
        measure: `p99 over HTTP with 256 in flight, ${way}`,
        bound: 'at most',
        value: 3,
        unit: '× its p50',
        long: true,
        read: (find) => {
          const time = (measure: string): Series | undefined => find({ ...calls('http', OURS, way, 256), measure });
          return ratio(time('p99'), time('p50'));
        },
      }),
    ),
    ...CHANGES.flatMap(({ way, stored }): readonly Goal[] => {
      const told = (measure: string, who: string): Key => ({ part: 'broadcast', measure, who, way, size: streams });
      const beside = (measure: string, long: boolean): Goal => ({
        measure: `a change told to ${streams} streams, ${way}: ${measure === 'cpu' ? 'processor time' : 'time'}`,
        bound: 'at most',
        value: 1.5,
        unit: '× the floor',
        long,
        read: (find) => ratio(find(told(measure, OURS)), find(told(measure, FLOOR))),
      });
      const bystander: Goal = {
        measure: `a change told to ${streams} streams, ${way}: p99 of a bystander`,
        bound: 'at most',
        value: 20,
        unit: 'ms',
        read: (find) => spreadOf(find(told('p99', OURS))),
      };
      // The floor neither ends tasks nor stores events.
      return stored || way === 'legacy tasks' ? [bystander] : [beside('time', true), beside('cpu', false), bystander];
    }),
    ...DURABLE.flatMap(([way, value]) =>
      [...new Set(all.filter(({ part }) => part === 'durable').map(({ size }) => size))].map(
        (size): Goal => ({
          measure: `with a store: ${way}, ${size} in flight`,
          bound: 'at least',
          value,
          unit: '× without',
          read: (find) => ratio(find(calls('durable', WITH_STORE, way, size)), find(calls('durable', OURS, way, size))),
        }),
      ),
    ),
    {
      measure: `with a store: ${WRITE.way}, 32 in flight`,
      bound: 'at least',
      value: 0.8,
      unit: '× the floor',
      // Both make two group commits for each call, so the disk slows both.
      read: (find) =>
        ratio(
          find(calls('durable', WITH_STORE, WRITE.way, 32)),
          find(calls('durable', FLOOR_WITH_THREAD, WRITE.way, 32)),
        ),
    },
    {
      measure: `an audit in the store: ${WRITE.way}, ${AUDITED_SIZE} in flight`,
      bound: 'at least',
      value: 0.9,
      unit: '× without an audit',
      read: (find) =>
        ratio(
          find(calls('audit', AUDITED, WRITE.way, AUDITED_SIZE)),
          find(calls('audit', WITH_STORE, WRITE.way, AUDITED_SIZE)),
        ),
    },
    ...(['read, session', 'read, modern'] as const satisfies readonly DurableWay[]).map(
      (way): Goal => ({
        measure: `with a store: ${way}, growth of the file`,
        bound: 'at most',
        value: 0,
        unit: 'bytes a call',
        read: (find) => spreadOf(find({ part: 'durable', measure: 'growth', who: WITH_STORE, way, size: 32 })),
      }),
    ),
    ...TELEMETRY.map(
      ([who, value]): Goal => ({
        measure: `calls for the same processor time: ${who}`,
        bound: 'at least',
        value,
        unit: '× without telemetry',
        read(find) {
          const cpu = { part: 'telemetry', measure: 'cpu', way: TRACED_WAY, size: TRACED_SIZE } as const;
          return ratio(find({ ...cpu, who: OURS }), find({ ...cpu, who }));
        },
      }),
    ),
    ...CLIENT_WAYS.flatMap(({ way, http, most }): readonly Goal[] => {
      const measure = `client over ${way}`;
      const share = (size: number, value: number): Goal => ({
        measure: `${measure}, ${size} in flight`,
        bound: 'at least',
        value,
        unit: '× the floor',
        read: beside('client', way, size, FLOOR),
      });
      const official: Goal = {
        measure: `${measure}, ${most} in flight`,
        bound: 'at least',
        value: http ? 4 : 2,
        unit: `× ${OFFICIAL_CLIENT}`,
        read: beside('client', way, most, OFFICIAL_CLIENT),
      };
      return [share(most, http ? 0.6 : 0.5), official, share(1, 0.7)];
    }),
    ...GUARDED_BY_RULES.map(
      ([guarded, other, value]): Goal => ({
        measure: `${RULED[guarded]}, ${RULED_SIZE} in flight`,
        bound: 'at least',
        value,
        unit: `× ${RULED[other]}`,
        read: (find) => {
          const of = (way: Ruled): Key => calls('rules', RULED[way], 'modern', RULED_SIZE);
          return ratio(find(of(guarded)), find(of(other)));
        },
      }),
    ),
    {
      measure: `a call that a node forwards, ${HOP_SIZE} in flight`,
      bound: 'at least',
      value: 0.5,
      unit: '× a call at its owner, for the same processor time',
      read: (find) => ratio(find(hop('cpu', 'local')), find(hop('cpu', 'forwarded'))),
    },
    ...HOP_DELAYS.map(
      ([measure, value, name]): Goal => ({
        measure: `a call that a node forwards, ${CALM} calls/s, ${name}`,
        bound: 'at most',
        value,
        unit: 'ms more than at its owner',
        read: (find) => difference(find(hop(measure, 'forwarded')), find(hop(measure, 'local'))),
      }),
    ),
    ...GATEWAY_SHARES.map(
      ([way, who, value]): Goal => ({
        measure: `a gateway to stdio, ${way}, 32 in flight`,
        bound: 'at least',
        value,
        unit: who === WITHOUT_GATEWAY ? `× ${who}` : `× ${who}'s`,
        read: (find) => ratio(find(calls('gateway', OUR_GATEWAY, way, 32)), find(calls('gateway', who, way, 32))),
      }),
    ),
    ...(['session', 'modern'] as const).flatMap((way): readonly Goal[] => {
      const key = (measure: string, who: string, size: number): Key => ({ part: 'gateway', measure, who, way, size });
      return [
        {
          measure: `a gateway to stdio, ${way}, 1 in flight, p50`,
          bound: 'at most',
          value: 0.25,
          unit: 'ms more than without it',
          read: (find) => difference(find(key('p50', OUR_GATEWAY, 1)), find(key('p50', WITHOUT_GATEWAY, 1))),
        },
        {
          measure: `memory of a gateway after 32 in flight, ${way}`,
          bound: 'at most',
          value: 150,
          unit: 'MB',
          read: (find) => spreadOf(find(key('memory', OUR_GATEWAY, 32))),
        },
      ];
    }),
    ...GUARDED.map(([guard, figure, bound, value, other]): Goal => {
      const of = (who: string): Key => ({ part: 'guard', measure: figure, who, way: 'modern', size: GUARD_SIZE });
      return {
        measure: `${GUARDS[guard]}: ${figure === 'cpu' ? 'processor time' : 'calls'}`,
        bound,
        value,
        unit: `× ${GUARDS[other]}`,
        read: (find) => ratio(find(of(GUARDS[guard])), find(of(GUARDS[other]))),
      };
    }),
    ...DATABASE_CALLS.flatMap(({ way }): readonly Goal[] => {
      const of = (measure: string, who: string): Key => ({ part: 'durable', measure, who, way, size: DATABASE_SIZE });
      return [
        {
          measure: `in PostgreSQL: ${way}, ${DATABASE_SIZE} in flight`,
          bound: 'at least',
          value: 1.2,
          unit: '× in a file',
          read: (find) => ratio(find(of('calls', WITH_POSTGRES)), find(of('calls', WITH_STORE))),
        },
        {
          measure: `in PostgreSQL: ${way}, ${DATABASE_SIZE} in flight, processor time of the server`,
          bound: 'at most',
          value: 1,
          unit: '× in a file',
          read: (find) => ratio(find(of('cpu', WITH_POSTGRES)), find(of('cpu', WITH_STORE))),
        },
      ];
    }),
  ];
}

/** Calls with telemetry, as a share of those without, for the same processor time: at least so much. */
const TELEMETRY = [
  [WITHOUT_SDK, 0.97],
  [ALL_SPANS, 0.75],
  [SCRAPED, 0.98],
] as const;

/** Calls with a store, as a share of those without: at least so much. */
const DURABLE = [
  ['read, session', 0.9],
  ['read, modern', 0.9],
  ['put, session', 0.5],
  ['write, session', 0.5],
  ['write, modern with a key', 0.5],
] as const satisfies readonly (readonly [DurableWay, number])[];

/** Calls with rules, as a share of those without: at least so much. */
const GUARDED_BY_RULES = [
  ['ruled', 'open', 0.98],
  ['views', 'list', 0.9],
] as const satisfies readonly (readonly [Ruled, Ruled, number])[];

/** Guarded calls beside those for which `authenticate` returns a name, and rejections beside those of a bare server. */
const GUARDED = [
  ['remembered', 'calls', 'at least', 0.95, 'name'],
  ['fresh', 'calls', 'at least', 0.18, 'name'],
  // Most of a rejection is Node's: to read the request, and the system call that writes the answer.
  ['rejected', 'cpu', 'at most', 1.3, 'bare'],
] as const satisfies readonly (readonly [Guard, 'calls' | 'cpu', Goal['bound'], number, Guard])[];

/** What a hop may add in milliseconds, where no node is busy. */
const HOP_DELAYS = [
  ['calmP50', 0.3, 'p50'],
  ['calmP99', 3, 'p99'],
] as const;

/** Calls through a gateway, as a share of those without one and of those through others: at least so much. */
const GATEWAY_SHARES = [
  ['session', WITHOUT_GATEWAY, 0.45],
  ['session', 'mcp-proxy', 1.5],
  ['session', 'supergateway', 1.5],
  ['modern', 'mcp-proxy', 2],
] as const;

function hop(measure: string, where: keyof typeof HOPS): Key {
  return { part: 'hop', measure, who: HOPS[where], way: 'session', size: HOP_SIZE };
}

/** The first answer of ours beside that of the bare script on the same Node. */
function slower(find: Find, way: string, node: number): Spread | undefined {
  const first = (who: string, way: string): Key => ({ part: 'start', measure: 'first answer', who, way, size: node });
  return ratio(find(first(OURS, way)), find(first(FLOOR, SCRIPT)));
}

function spreadOf(series: Series | undefined): Spread | undefined {
  return series && spread(series.rounds);
}

/** The same with all sessions there, beside one. */
function crowded(find: Find, measure: string, sessions: number): Spread | undefined {
  const of = (size: number): Series | undefined => find({ part: 'sessions', measure, who: OURS, way: 'session', size });
  return ratio(of(sessions), of(1));
}

function leastOf(ratios: readonly (Spread | undefined)[]): Spread | undefined {
  return ratios.reduce((least, one) => (!one || (least && least.median <= one.median) ? least : one), undefined);
}

/** Judges those goals for which this has figures. @param isQuick of a run too short for some of them */
export function judge(all: readonly Series[], isQuick = false): readonly Judged[] {
  const find: Find = (key) =>
    all.find(
      ({ part, measure, who, way, size }) =>
        part === key.part && measure === key.measure && who === key.who && way === key.way && size === key.size,
    );
  return goals(all).flatMap(({ measure, bound, value, unit, long, read }) => {
    const got = long && isQuick ? undefined : read(find);
    if (!got) return [];
    const off = bound === 'at least' ? 1 - got.median / value : value === 0 ? got.median : got.median / value - 1;
    const met = off <= 0;
    return [
      {
        measure,
        goal: `${bound === 'at least' ? '≥' : '≤'} ${figure(value)} ${unit}`,
        measured: `${figure(got.median)} (${figure(got.least)} to ${figure(got.most)})`,
        met,
        missedBy: met ? 0 : off,
      },
    ];
  });
}

/** A number with as many digits as say something. */
export function figure(value: number): string {
  if (Math.abs(value) >= 100) return Math.round(value).toLocaleString('en');
  const digits = Math.abs(value) >= 10 ? 1 : Math.abs(value) >= 1 ? 2 : 3;
  return value.toFixed(digits).replace(/\.?0+$/, '');
}
