/** A server with two additional executors: one measures every call, one caches the results of read-only tools. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, stdio, type ToolCall, type ToolExecution } from 'troupe';
import { z } from 'zod';

type Result = Awaited<ReturnType<ToolExecution['execute']>>;

/** Writes a line to stderr for each call, whatever its outcome, and adds the duration to the result's `_meta`. */
function timed(inner: ToolExecution): ToolExecution {
  return {
    async execute(call, ctx) {
      const started = performance.now();
      try {
        const result = await inner.execute(call, ctx);
        const ms = Math.round(performance.now() - started);
        return { ...result, _meta: { ...result._meta, 'example.org/ms': ms } };
      } finally {
        console.error(`${call.tool.name} for ${ctx.principal}: ${(performance.now() - started).toFixed(1)} ms`);
      }
    },
  };
}

/**
 * Caches results where that is safe. It receives unchecked arguments: a failed call is never cached, and each principal
 * has a cache of its own.
 *
 * @param most maximum number of cached results; the oldest is removed first
 */
function caching(inner: ToolExecution, most = 1_000): ToolExecution {
  const kept = new Map<string, Result>();
  return {
    async execute(call, ctx) {
      if (!isPure(call)) return inner.execute(call, ctx);
      const key = JSON.stringify([ctx.principal, call.tool.name, call.arguments]);
      const known = kept.get(key);
      if (known) return { ...known, _meta: { ...known._meta, 'example.org/remembered': true } };
      const result = await inner.execute(call, ctx);
      if (!result.isError) kept.set(key, result);
      const [oldest] = kept.keys();
      if (kept.size > most && oldest !== undefined) kept.delete(oldest);
      return result;
    },
  };
}

function isPure({ tool: { annotations } }: ToolCall): boolean {
  return annotations?.readOnlyHint === true && annotations.idempotentHint === true;
}

const server = createServer({
  name: 'executor',
  version: '1.0.0',
  executors: { tools: (ours) => timed(caching(ours)) },
});

let computed = 0;

server.tool(
  'square',
  {
    description: 'Squares a number slowly',
    input: z.object({ n: z.number() }),
    output: z.object({ square: z.number(), computed: z.number() }),
    annotations: { readOnlyHint: true, idempotentHint: true },
  },
  async ({ n }, ctx) => {
    await sleep(20, undefined, { signal: ctx.signal });
    computed += 1;
    return { square: n * n, computed };
  },
);

server.tool('count', { description: 'Counts its calls. Its results are never cached.' }, () => {
  computed += 1;
  return { computed };
});

await server.listen(stdio());
