/** Calls and lists of a server with scopes and rules beside the same server without. */
import { type Check, callAll, isEcho } from '../http.ts';
import { echo, PreparedCall, request } from '../http-requests.ts';
import { inTurns, type Runner, warmUp } from '../rounds.ts';
import type { Scale } from '../scale.ts';
import { Gathering, type Series } from '../series.ts';
import { costing, type Serving, serve } from '../serving.ts';

/** The same server, by what decides about its callers. */
export const RULED = {
  open: 'no rule',
  ruled: 'scopes and a rule',
  list: 'one list of 200',
  views: '8 views of 200',
} as const;
export type Ruled = keyof typeof RULED;

/** Requests in flight, each of another principal. */
export const RULED_SIZE = 32;
const TEXT = 'x'.repeat(64);

export async function measureRules(_contenders: unknown, scale: Scale): Promise<readonly Series[]> {
  const gathering = new Gathering('rules');
  const start = async (way: Ruled): Promise<Serving & { readonly way: Ruled }> => ({
    ...(await serve('servers/rules.mjs', way)),
    way,
  });
  const runners = (['open', 'ruled', 'list', 'views'] as const).map(
    (way): Runner<Serving & { readonly way: Ruled }> => ({ who: RULED[way], way: 'modern', start: () => start(way) }),
  );
  const call = ({ url, way }: Serving & { readonly way: Ruled }, ms: number) => {
    const lists = way === 'list' || way === 'views';
    const caller = { way: 'modern' } as const;
    const { bytes } = lists ? request(url, caller, 'tools/list') : echo(url, caller, TEXT);
    const text = bytes.toString('latin1');
    const prepare = (connection: number): PreparedCall =>
      new PreparedCall(
        Buffer.from(text.replace('\r\nAccept:', `\r\nAuthorization: Bearer ${connection}\r\nAccept:`), 'latin1'),
      );
    return callAll(url, lists ? isList : isEcho(TEXT), { ms }, RULED_SIZE, prepare);
  };
  await inTurns({
    gathering,
    figures: { calls: '/s', cpu: 'µs' },
    runners,
    sizes: [RULED_SIZE],
    rounds: scale.rounds,
    prepare: (running) => warmUp(scale.warmMs, (ms) => call(running, ms)),
    async turn(running) {
      const [{ calls, perSecond }, micros] = await costing(running, () => call(running, scale.ms));
      return { calls: perSecond, cpu: micros / calls };
    },
  });
  return gathering.all;
}

/** The views differ in their tools: a list is looked at from outside. */
const isList: Check = (body, id) =>
  body.includes(`"id":${id}`) && body.length > 10_000 && body.endsWith('}}') ? undefined : 'expected a long list';
