/** Servers over HTTP that run, with the means to call them in one way. */
import type { Contender } from './contenders.ts';
import { openSessions } from './http.ts';
import type { Caller, Way } from './http-requests.ts';
import type { Runner } from './rounds.ts';
import { type Serving, serve } from './serving.ts';

/** A server, and who calls it: in sessions, several clients. */
export interface Called extends Serving {
  readonly callers: readonly Caller[];
}

/** Clients that share what is in flight: one session takes 128 requests at once, and no client sends as many. */
const CLIENTS = 8;

/** A session id as long as Troupe's, for a floor that has no sessions. */
const NO_SESSION = '0123456789abcdefghijkl';

/** Every contender in every way. @param tools how many each offers */
export function inEachWay(contenders: readonly Contender[], tools = 3): readonly Runner<Called>[] {
  return contenders.flatMap((contender) =>
    contender.ways.map((way) => ({ who: contender.name, way, start: () => start(contender, way, tools) })),
  );
}

async function start(contender: Contender, way: Way, tools: number): Promise<Called> {
  const serving = await serve(contender.http, way === 'stateless' ? 'stateless' : 'http', String(tools));
  if (way !== 'session') return { ...serving, callers: [{ way }] };
  try {
    const ids =
      contender.kind === 'floor' ? [NO_SESSION] : (await openSessions(serving.url, { calls: CLIENTS }, CLIENTS)).ids;
    return { ...serving, callers: ids.map((session) => ({ way, session })) };
  } catch (error) {
    await serving.stop();
    throw error;
  }
}

/** Who calls on the connection of this number. */
export function callerOf({ callers }: Called, connection: number): Caller {
  const caller = callers[connection % callers.length];
  if (caller === undefined) throw new Error('expected at least one session, got none');
  return caller;
}
