/** An upstream that asks for everything that a client can be asked, in one era. */
import { createServer, ErrorCode, ProtocolError, type Server, type ServerOptions } from 'troupe';

export type Era = 'legacy' | 'modern';

/** A form whose schema and defaults must arrive as they are. */
export const FORM = {
  type: 'object',
  properties: {
    size: { type: 'string', title: 'Size', enum: ['S', 'L'], default: 'L' },
    gift: { type: 'boolean', default: false },
  },
  required: ['size'],
} as const;
export const PAGE = 'https://example.com/consent?state=a%20b';
export const PROMPT = {
  messages: [{ role: 'user', content: { type: 'text', text: 'Say hi' } }],
  maxTokens: 7,
  systemPrompt: 'Be short',
  includeContext: 'thisServer',
} as const;

/** Counts the runs of its tools, which nothing may run twice. */
export interface AskingServer {
  readonly server: Server;
  readonly runs: string[];
}

export function askingServer(era: Era, options: Partial<ServerOptions> = {}): AskingServer {
  const server = createServer({ name: 'asking', version: '1.0.0', log() {}, ...options });
  const runs: string[] = [];
  if (era === 'legacy') speakLegacy(server);
  server.tool('form', {}, async (_, ctx) => {
    runs.push('form');
    const answer = await ctx.elicit({ message: 'Which size?', schema: FORM });
    runs.push('formed');
    return answer.status === 'accepted' ? `${answer.content.size} ${answer.content.gift}` : answer.status;
  });
  server.tool('page', {}, async (_, ctx) => (await ctx.elicitUrl({ message: 'Agree', url: PAGE })).status);
  server.tool('model', {}, async (_, ctx) => {
    const { content } = await ctx.sample(PROMPT);
    return JSON.stringify(content);
  });
  server.tool('dirs', {}, async (_, ctx) => (await ctx.roots()).map(({ uri }) => uri).join());
  server.tool('both', {}, async (_, ctx) => {
    const first = await ctx.elicit({ message: 'First?', schema: FORM });
    const [second, dirs] = await Promise.all([ctx.elicit({ message: 'Second?', schema: FORM }), ctx.roots()]);
    return `${first.status} ${second.status} ${dirs.length}`;
  });
  server.tool('samples', {}, async (_, ctx) => {
    let said = 0;
    for (; said < 20; said += 1) await ctx.sample(PROMPT);
    return String(said);
  });
  server.tool('era', {}, (_, ctx) => ctx.client.era);
  server.tool('declared', {}, (_, ctx) => JSON.stringify(ctx.client.capabilities));
  return { server, runs };
}

/** Makes a server reject the modern era, as older servers do. */
export function speakLegacy(server: Server): void {
  server.use('server/discover', () => {
    throw new ProtocolError(ErrorCode.MethodNotFound, 'unknown method server/discover');
  });
}
