/** The official client `@modelcontextprotocol/sdk` (version 1), at any revision that it speaks. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { LegacyRevision } from '../../../src/core/protocol/revisions.ts';
import { HttpWire, type Served } from './http-wire.ts';
import { everyPage, type Loose, type OfficialClient } from './official.ts';
import { type Message, StdioWire, server, type Wire } from './wire.ts';

/** A revision to ask for: also one that no server of ours speaks. */
type Asked = LegacyRevision | '2024-10-07';

/** Over stdio, to a server that the client spawns. */
export function connectV1(file: string, revision: Asked, env?: Record<string, string>): Promise<OfficialClient> {
  const transport = new StdioClientTransport(server(file, env));
  return connected(transport, new StdioWire(transport, expected(revision), asking(revision)));
}

/** Over Streamable HTTP. */
export function connectV1Http(served: Served, revision: Asked): Promise<OfficialClient<HttpWire>> {
  const wire = new HttpWire(served, expected(revision), asking(revision));
  const transport = new StreamableHTTPClientTransport(wire.url, { fetch: wire.fetch });
  return connected(transport, wire, () => transport.terminateSession());
}

/** Over HTTP+SSE. */
export function connectV1Sse(served: Served, revision: LegacyRevision): Promise<OfficialClient<HttpWire>> {
  const wire = new HttpWire(served, revision, asking(revision));
  return connected(new SSEClientTransport(wire.url, { fetch: wire.fetch }), wire);
}

/**
 * @param goodbye what the client is to say before it closes
 * @param prepare what it declares and answers, before it connects
 */
export async function connected<W extends Wire>(
  transport: StdioClientTransport | StreamableHTTPClientTransport | SSEClientTransport,
  wire: W,
  goodbye: () => Promise<void> = async () => {},
  prepare: (client: Client) => void = () => {},
): Promise<OfficialClient<W>> {
  const client = new Client({ name: 'official-v1', version: '1.32' });
  prepare(client);
  const heard: Loose[] = [];
  client.fallbackNotificationHandler = async (notification) => void heard.push(notification);
  let agreed = '';
  // The client tells its transport which revision was agreed on, and nobody else.
  const tell = 'setProtocolVersion' in transport ? transport.setProtocolVersion.bind(transport) : undefined;
  Object.assign(transport, {
    setProtocolVersion(version: string) {
      agreed = version;
      tell?.(version);
    },
  });
  await client.connect(transport);
  return {
    wire,
    heard,
    revision: agreed,
    introduction: {
      info: client.getServerVersion(),
      capabilities: { ...client.getServerCapabilities() },
      instructions: client.getInstructions(),
    },
    listTools: () =>
      everyPage(async (cursor) => {
        const { tools, nextCursor } = await client.listTools({ cursor });
        return { items: tools, next: nextCursor };
      }),
    listResources: () =>
      everyPage(async (cursor) => {
        const { resources, nextCursor } = await client.listResources({ cursor });
        return { items: resources, next: nextCursor };
      }),
    listTemplates: () =>
      everyPage(async (cursor) => {
        const { resourceTemplates, nextCursor } = await client.listResourceTemplates({ cursor });
        return { items: resourceTemplates, next: nextCursor };
      }),
    listPrompts: () =>
      everyPage(async (cursor) => {
        const { prompts, nextCursor } = await client.listPrompts({ cursor });
        return { items: prompts, next: nextCursor };
      }),
    callTool: (name, args, { signal, onProgress, meta } = {}) =>
      client.callTool({ name, arguments: args, ...(meta ? { _meta: meta } : {}) }, undefined, {
        ...(signal ? { signal } : {}),
        ...(onProgress ? { onprogress: onProgress } : {}),
      }),
    readResource: (uri) => client.readResource({ uri }),
    subscribe: (uri) => client.subscribeResource({ uri }),
    unsubscribe: (uri) => client.unsubscribeResource({ uri }),
    listen: () => Promise.reject(new Error('version 1 knows no subscriptions/listen')),
    getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (ref, argument, chosen) =>
      client.complete({ ref, argument, ...(chosen ? { context: { arguments: chosen } } : {}) }),
    setLevel: (level) => client.setLoggingLevel(level),
    ping: () => client.ping(),
    async close() {
      await goodbye();
      await client.close();
    },
  };
}

function expected(revision: Asked): LegacyRevision {
  return revision === '2024-10-07' ? '2025-11-25' : revision;
}

/**
 * The client always asks for the latest revision that it knows and takes any older one for an answer: so its `initialize` is
 * rewritten on its way to ask for the older one.
 */
export function asking(revision: Asked): (message: Message) => Message {
  return (message) => ask(message, revision);
}

function ask(message: Message, protocolVersion: string): Message {
  if (message.method !== 'initialize' || typeof message.params !== 'object') return message;
  return { ...message, params: { ...message.params, protocolVersion } };
}
