/** A server with executors of its own around ours: one times every call, one remembers the answers of tools that promise to change nothing. */
import { setTimeout as sleep } from 'node:timers/promises';
import { createServer, stdio, type ToolCall, type ToolExecution } from 'troupe';
import { z } from 'zod';

type Result = Awaited<ReturnType<ToolExecution['execute']>>;

/** Writes a line on stderr for each call, however it ends, and notes the time in the result's `_meta`. */
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
 * Answers from memory where that is safe. It receives the arguments as they came, unchecked: so a call that fails is
 * never remembered, and each principal has a memory of its own.
 *
 * @param most how many answers are kept; the oldest goes first
 */
function remembering(inner: ToolExecution, most = 1_000): ToolExecution {
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
  executors: { tools: (ours) => timed(remembering(ours)) },
});

let computed = 0;

server.tool(
  'square',
  {
    description: 'Squares a number, slowly',
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

server.tool('count', { description: 'Counts its calls: it is never remembered' }, () => {
  computed += 1;
  return { computed };
});

await server.listen(stdio());
