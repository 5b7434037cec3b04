/** Types of elkjs' worker file, which is loaded here without a worker. The package has none for it. */
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
