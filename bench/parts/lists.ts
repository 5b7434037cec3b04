/** `tools/list` over HTTP, of catalogues of several sizes: lists for each second, and what one costs the server. */
import type { Contender } from '../contenders.ts';
import { type Check, callAll } from '../http.ts';
import { request } from '../http-requests.ts';
import type { Measured } from '../measured.ts';
import { inTurns } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing } from '../serving.ts';
import { type Called, callerOf, inEachWay } from '../serving-ways.ts';

const IN_FLIGHT = 4;

export async function measureLists(contenders: readonly Contender[], scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('lists');
  // The floor has no catalogue.
  const listing = contenders.filter(({ kind }) => kind !== 'floor');
  for (const tools of scale.tools) {
    const checks = new WeakMap<Called, Check>();
    const call = (running: Called, check: Check, ms: number): Promise<Measured> =>
      callAll(running.url, check, { ms }, IN_FLIGHT, (connection) =>
        request(running.url, callerOf(running, connection), 'tools/list'),
      );
    await inTurns({
      gathering,
      figures: { lists: '/s', cpu: 'µs' },
      runners: inEachWay(listing, tools),
      sizes: [tools],
      rounds: scale.rounds,
      prepare(running) {
        const check = isWhole(tools);
        checks.set(running, check);
        return call(running, check, scale.warmMs);
      },
      async turn(running) {
        const check = checks.get(running) ?? isWhole(tools);
        const [{ perSecond, calls }, micros] = await costing(running, () => call(running, check, scale.ms));
        return { lists: perSecond, cpu: micros / calls };
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
