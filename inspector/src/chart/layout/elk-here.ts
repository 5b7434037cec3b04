/** ELK in the calling thread: its own worker protocol, without another worker. */
import type { ElkNode } from 'elkjs/lib/elk-api.js';
import * as library from 'elkjs/lib/elk-worker.min.js';
import type { Elk } from './elk.ts';

interface ElkAnswer {
  readonly id: number;
  readonly data?: ElkNode;
  readonly error?: unknown;
}

export function elkHere(): Elk {
  const { Worker } = 'default' in library && 'Worker' in library.default ? library.default : library;
  const worker = new Worker('');
  const waiting = new Map<number, (answer: ElkAnswer) => void>();
  let count = 0;
  worker.onmessage = ({ data }) => {
    const settle = waiting.get(data.id);
    waiting.delete(data.id);
    settle?.(data);
  };
  const ask = (message: { readonly cmd: string; readonly [name: string]: unknown }): Promise<ElkAnswer> =>
    new Promise((settle) => {
      count += 1;
      waiting.set(count, settle);
      worker.postMessage({ id: count, ...message });
    });
  const ready = ask({ cmd: 'register', algorithms: ['layered'] });
  return async (graph) => {
    await ready;
    const { data, error } = await ask({ cmd: 'layout', graph });
    if (data === undefined) throw new Error('ELK gave no layout', { cause: error });
    return data;
  };
}
