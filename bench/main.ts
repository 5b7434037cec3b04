/**
 * The benchmark: the floor, Troupe and its peers in one run. `--quick` takes two minutes and writes nothing, `--only PART` measures
 * one part, `--write` writes in any case, `--no-peers` leaves them out, `--tiny` only shows that the suite works.
 */
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { type Contender, contenders, FLOOR, OURS } from './contenders.ts';
import { judge } from './goals.ts';
import { machine } from './machine.ts';
import { measureAudit } from './parts/audit.ts';
import { measureBroadcast } from './parts/broadcast.ts';
import { measureClient } from './parts/client.ts';
import { measureDurable } from './parts/durable.ts';
import { measureGateway } from './parts/gateway.ts';
import { measureGuard } from './parts/guard.ts';
import { measureHop } from './parts/hop.ts';
import { measureHttp } from './parts/http.ts';
import { measureLarge } from './parts/large.ts';
import { measureLists } from './parts/lists.ts';
import { measureRules } from './parts/rules.ts';
import { measureSessions } from './parts/sessions.ts';
import { measureStart } from './parts/start.ts';
import { measureStdio } from './parts/stdio.ts';
import { measureStreams } from './parts/streams.ts';
import { measureTelemetry } from './parts/telemetry.ts';
import { installPeers } from './peers.ts';
import { keep, type Results } from './results.ts';
import { tell } from './rounds.ts';
import { SCALES, type Scale } from './scale.ts';
import { PARTS, type Part, type Series } from './series.ts';
import { repeated } from './stolen.ts';
import { show } from './tables.ts';
import { showTokens } from './tokens.ts';
import { findWrk } from './wrk.ts';

const MEASURES: Readonly<Record<Part, (all: readonly Contender[], scale: Scale) => Promise<readonly Series[]>>> = {
  http: measureHttp,
  stdio: measureStdio,
  sessions: measureSessions,
  lists: measureLists,
  start: measureStart,
  streams: measureStreams,
  broadcast: measureBroadcast,
  large: measureLarge,
  durable: measureDurable,
  audit: measureAudit,
  client: measureClient,
  rules: measureRules,
  guard: measureGuard,
  hop: measureHop,
  gateway: measureGateway,
  telemetry: measureTelemetry,
};

const { values } = parseArgs({
  options: {
    quick: { type: 'boolean', default: false },
    tiny: { type: 'boolean', default: false },
    write: { type: 'boolean', default: false },
    'no-peers': { type: 'boolean', default: false },
    only: { type: 'string', multiple: true },
  },
});
const scale = SCALES[values.tiny ? 'tiny' : values.quick ? 'quick' : 'full'];
const parts = PARTS.filter((part) => values.only === undefined || values.only.includes(part));
const unknown = values.only?.find((part) => !PARTS.some((known) => known === part));
if (unknown !== undefined) {
  process.stderr.write(`--only: expected one of ${PARTS.join(', ')}, got ${unknown}\n`);
  process.exit(2);
}

const [load = 0] = loadavg();
if (!values['no-peers'] && !values.tiny) installPeers();
const compared = contenders()
  .filter(({ kind }) => kind !== 'peer' || !values['no-peers'])
  // No goal asks for it, and each server takes its time to start.
  .map((one) => (scale.name === 'quick' ? { ...one, ways: one.ways.filter((way) => way !== 'stateless') } : one));
const series: Series[] = [];
let failed = false;
for (const part of parts) {
  const began = performance.now();
  try {
    series.push(...(await MEASURES[part](compared, scale)));
  } catch (error) {
    // What the other parts measure is worth keeping.
    tell('the suite', part, error);
    failed = true;
  }
  process.stderr.write(`${part}: ${((performance.now() - began) / 1_000).toFixed(0)} s\n`);
}
const generator =
  scale.name === 'full' && (await findWrk())
    ? 'wrk, after a pass in which each answer was looked at'
    : 'our own generator, which looks at each answer';
const at = new Date().toISOString();
const judged = judge(series, scale.name === 'quick');
const results: Results = {
  runs: [
    {
      ...{ parts, at, machine: machine(), scale: scale.name, generator },
      ...{ load: Math.round(load * 100) / 100, repeated: repeated() },
    },
  ],
  series,
  goals: judged,
};
process.stdout.write(`${show(results)}\n`);
if (scale.name === 'full' || values.write) keep(results);
if (values.only === undefined && !values['no-peers'] && !values.tiny) await showTokens();
// Of a machine that only sees whether the suite works, the figures say nothing; that something failed does.
failed ||= series.some(({ who, rounds }) => (who === OURS || who === FLOOR) && rounds.includes(null));
if (failed || (scale.name !== 'tiny' && judged.some(({ met }) => !met))) process.exitCode = 1;
