/** What elkjs tells no types of: the worker's own file, when it is loaded where there is no worker. */
declare module 'elkjs/lib/elk-worker.min.js' {
  import type { ElkNode } from 'elkjs/lib/elk-api.js';

  interface Told {
    readonly id: number;
    readonly data?: ElkNode;
    readonly error?: unknown;
  }
  class FakeWorker {
    constructor(url: string);
    onmessage: (event: { readonly data: Told }) => void;
    postMessage(message: { readonly id: number; readonly cmd: string; readonly [name: string]: unknown }): void;
  }
  const library: { readonly Worker: typeof FakeWorker };
  export default library;
  export const Worker: typeof FakeWorker;
}
