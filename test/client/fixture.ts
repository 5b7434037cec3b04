/** A server for tests of the client, and the ways to reach it. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createServer, http, type Server, socket } from 'troupe';
import { ClientError } from 'troupe/client';
import { z } from 'zod';
import { rejection } from '../harness/results.ts';

export interface Reachable {
  readonly server: Server;
  readonly url: string;
  readonly socket: string;
  close(): Promise<void>;
}

/** Serves one server over HTTP, a socket and memory. `over`: changes the server before it listens. */
export async function reachable(over: (server: Server) => void = () => {}): Promise<Reachable> {
  const server = createServer({ name: 'fixture', version: '1.2.3', log() {} });
  server.tool(
    'add',
    { input: z.object({ a: z.number(), b: z.number() }), output: z.object({ sum: z.number() }) },
    ({ a, b }) => ({ sum: a + b }),
  );
  server.tool('ask', {}, async (_args, ctx) => {
    const answer = await ctx.elicit({
      message: 'Which size?',
      schema: z.object({ size: z.enum(['small', 'large']).default('large'), gift: z.boolean().default(false) }),
    });
    return answer.status === 'accepted' ? `${answer.content.size} ${answer.content.gift}` : answer.status;
  });
  server.tool('count', {}, async (_args, ctx) => {
    for (let at = 1; at <= 3; at += 1) ctx.progress(at, 3, `step ${at}`);
    return 'counted';
  });
  server.tool(
    'wait',
    {},
    (_args, ctx) =>
      new Promise((_resolve, reject) => ctx.signal.addEventListener('abort', () => reject(new Error('aborted')))),
  );
  server.resource(
    'notes://{id}',
    { name: 'notes', mimeType: 'text/plain' },
    ({ variables }) => `note ${String(variables.id)}`,
  );
  server.prompt('review', { arguments: [{ name: 'code', required: true }] }, ({ code }) => `Review ${code}`);
  over(server);
  const folder = mkdtempSync(join(tmpdir(), 'client-'));
  const path = join(folder, 's');
  const transport = http({ port: 0 });
  await server.listen(transport, socket(path));
  return {
    server,
    url: String(transport.url),
    socket: path,
    async close() {
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** The failure of a request of `troupe/client`. @throws Error if the request has a result */
export function clientError(request: Promise<unknown>): Promise<ClientError> {
  return rejection(request, ClientError);
}
