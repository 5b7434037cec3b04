/** The server that is fuzzed: a few tools of each kind of schema, resources, templates, prompts and completions. */
import { type } from 'arktype';
import * as z from 'zod';
import { isObject, type JsonValue } from '../../../src/core/protocol/json.ts';
import { memory } from '../../../src/core/transports/memory.ts';
import { ErrorCode, type MemoryPeer, ProtocolError, type Server, ToolError, toolResult } from '../../../src/index.ts';
import { loggedServer } from '../../harness/memory.ts';
import { MESSAGES } from './messages.ts';

/** Longest message of this server, in bytes. Small, so that hostile texts pass it often. */
export const MAX_BYTES = 32_768;
export const MAX_DEPTH = 64;
export const MAX_BATCH = 6;

const NAME = { type: 'object', properties: { name: { type: 'string' } } } as const;

export interface Target {
  readonly server: Server;
  readonly connect: () => MemoryPeer;
  /** Lets every call of `wait` that runs end. */
  release(): void;
  /** What the operator was told: nothing that a client sends may be an incident. */
  readonly told: readonly string[];
}

export async function openTarget(): Promise<Target> {
  const waiting = new Set<() => void>();
  const { server, logged: told } = loggedServer({
    name: 'fuzzed',
    limits: { maxMessageBytes: MAX_BYTES, maxDepth: MAX_DEPTH, maxBatch: MAX_BATCH, maxInFlight: 3, pageSize: 3 },
  });
  server.tool('echo', { input: z.object({ text: z.string() }) }, async ({ text }) => text);
  server.tool('add', { input: type({ a: 'number', b: 'number' }) }, ({ a, b }) => ({ sum: a + b }));
  server.tool(
    'plain',
    {
      input: { type: 'object', properties: { n: { type: 'integer', minimum: 0 } }, required: ['n'] },
      output: { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] },
    },
    ({ n }) => ({ n }),
  );
  // What comes in goes out again, so that hostile values pass every door twice.
  server.tool('mirror', {}, (args) => toolResult({ data: args }));
  server.tool('question', {}, async (_, ctx) => (await ctx.elicit({ message: 'Who?', schema: NAME })).status);
  server.tool('fail', {}, () => {
    throw new ToolError('this tool fails');
  });
  server.tool('refuse', {}, async () => {
    throw new ProtocolError(ErrorCode.InvalidParams, 'this tool refuses', { why: 'always' });
  });
  server.tool('talk', {}, async (_, ctx) => {
    ctx.progress(1, 2, 'half');
    ctx.log.error({ said: 'something' });
    await undefined;
    ctx.progress(2, 2);
    return [{ type: 'text', text: 'talked' }];
  });
  server.tool(
    'wait',
    {},
    (_, ctx) =>
      new Promise((resolve, reject) => {
        const end = (): void => {
          waiting.delete(end);
          resolve('waited');
        };
        waiting.add(end);
        ctx.signal.addEventListener('abort', () => {
          waiting.delete(end);
          reject(ctx.signal.reason);
        });
      }),
  );
  server.resource('doc://readme', { mimeType: 'text/plain' }, () => 'read me');
  server.resource('doc://bytes', {}, async () => new Uint8Array([0, 255]));
  server.resource('note://{id}', { complete: { id: (value) => [`${value}1`, `${value}2`] } }, ({ variables }) =>
    JSON.stringify(variables),
  );
  server.resource('tree:///{+path}{?page,size}', {}, async ({ uri }) => uri);
  server.prompt(
    'ask',
    { arguments: [{ name: 'topic', required: true }], complete: { topic: async (value) => [value, 'tea'] } },
    ({ topic }) => `Ask about ${topic}.`,
  );
  server.prompt('strict', { input: z.object({ count: z.string().regex(/^\d+$/) }) }, ({ count }) => [
    { role: 'user', content: { type: 'text', text: `Count to ${count}.` } },
  ]);
  const { transport, connect } = memory();
  await server.listen(transport);
  // The first check by a JSON Schema loads what checks it, and takes longer than any other.
  const peer = connect();
  const first = new Promise<string>((resolve) => void peer.onText(resolve));
  const { message } = MESSAGES.find(({ era, message: { params } }) => era === 'modern' && isPlain(params)) ?? {};
  peer.send(JSON.stringify(message));
  await first;
  peer.close();
  return {
    server,
    connect,
    told,
    release() {
      for (const end of waiting) end();
    },
  };
}

function isPlain(params: JsonValue | undefined): boolean {
  return isObject(params) && params.name === 'plain';
}
