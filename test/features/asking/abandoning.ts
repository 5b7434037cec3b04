/** Asks and never answers, and weighs what is left: for the test, and for the long run. */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { META } from '../../../src/core/protocol/meta.ts';
import { memory } from '../../../src/index.ts';
import { settled } from '../../../src/testing/testing.ts';
import { ALL, stage } from './support.ts';

export interface Abandoned {
  /** Questions that were put. */
  readonly asked: number;
  /** Handlers that still wait. */
  readonly waiting: number;
  /** Bytes of heap more than after the first fifth. */
  readonly grown: number;
  /** What the operator was told. */
  readonly told: readonly string[];
}

const SCHEMA = { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] } as const;

setFlagsFromString('--expose-gc');
const gc: unknown = runInNewContext('gc');
/** Whether this Node lets us collect garbage: without that the heap cannot be told from what is merely not collected yet. */
export const canWeigh = typeof gc === 'function';

function heap(): number {
  if (typeof gc === 'function') for (let round = 0; round < 3; round += 1) Reflect.apply(gc, undefined, []);
  return process.memoryUsage().heapUsed;
}

/** @param wait the most questions that may wait: less than a fifth of all */
export async function abandonQuestions(questions: number, wait = 1_000): Promise<Abandoned> {
  const { server, told } = stage({ limits: { maxParked: wait } });
  let waiting = 0;
  server.tool('ask', {}, async (_, ctx) => {
    waiting += 1;
    try {
      await ctx.elicit({ message: 'Anybody there?', schema: SCHEMA });
    } finally {
      waiting -= 1;
    }
  });
  const { transport, connect } = memory();
  await server.listen(transport);
  const peer = connect();
  let asked = 0;
  peer.onText((text) => {
    if (text.includes('"input_required"')) asked += 1;
  });
  const params = { name: 'ask', _meta: { [META.protocolVersion]: '2026-07-28', [META.clientCapabilities]: ALL } };
  const abandon = async (count: number): Promise<void> => {
    for (let id = 1; id <= count; id += 1) {
      peer.send(JSON.stringify({ jsonrpc: '2.0', id, method: 'tools/call', params }));
      if (id % 100 === 0) await settled();
    }
  };
  await abandon(questions / 5);
  const before = heap();
  await abandon((4 * questions) / 5);
  const result = { asked, waiting, grown: heap() - before, told };
  peer.close();
  await server.close();
  return result;
}
