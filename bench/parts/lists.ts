/** `tools/list` over HTTP, of catalogues of several sizes: lists for each second, and what one costs the server. */
import type { Contender } from '../contenders.ts';
import { type Check, callAll } from '../http.ts';
import { type PreparedCall, request } from '../http-requests.ts';
import type { Measured } from '../measured.ts';
import { inTurns } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { type Called, callerOf, inEachWay } from '../serving-ways.ts';

const IN_FLIGHT = 4;

export async function measureLists(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('lists');
  // The floor has no catalogue.
  const listing = contenders.filter(({ kind }) => kind !== 'floor');
  for (const tools of scale.tools) {
    const checks = new WeakMap<Called, Check>();
    await inTurns({
      runners: inEachWay(listing, tools),
      sizes: [tools],
      rounds: scale.rounds,
      async turn(running, { who, way }, size) {
        const { url } = running;
        const check = checks.get(running) ?? isWhole(tools);
        const prepare = (connection: number): PreparedCall => request(url, callerOf(running, connection), 'tools/list');
        const call = (ms: number): Promise<Measured> => callAll(url, check, { ms }, IN_FLIGHT, prepare);
        if (!checks.has(running)) await call(scale.warmMs);
        checks.set(running, check);
        const before = await running.processorTime();
        const { perSecond, calls } = await call(scale.ms);
        const cpu = ((await running.processorTime()) - before) / calls;
        gathering.add({ measure: 'lists', unit: '/s', who, way, size }, perSecond);
        gathering.add({ measure: 'cpu', unit: 'µs', who, way, size }, cpu);
      },
      failed({ who, way }, size) {
        for (const measure of ['lists', 'cpu']) gathering.add({ measure, unit: '', who, way, size }, null);
      },
    });
  }
  return gathering.all;
}

/** Takes a list apart that is not letter for letter, but for its id, one that was taken apart before. */
function isWhole(tools: number): Check {
  let known = '';
  return (body, id) => {
    const withoutId = body.replace(`"id":${id}`, '"id":0');
    if (withoutId === known) return undefined;
    if (withoutId === body) return 'expected the id of the request';
    const names = new Set(Array.from(body.matchAll(/"name":"((?:echo|size|count|tool_\d+))"/g), ([, name]) => name));
    const schemas = body.match(/"inputSchema":\{/g)?.length;
    if (names.size !== tools || schemas !== tools)
      return `expected ${tools} tools with their schemas, got ${names.size} names and ${schemas} schemas`;
    known = withoutId;
    return undefined;
  };
}
