/** The official client `@modelcontextprotocol/sdk` (version 1), at any revision that it speaks. */
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import type { LegacyRevision } from '../../src/protocol/revisions.ts';
import { everyPage, type Loose, type OfficialClient } from './official.ts';
import { type Message, server, Wire } from './wire.ts';

/**
 * Connects. The client always asks for the latest revision that it knows and takes any older one for an answer: so its
 * `initialize` is rewritten on its way to ask for the older one.
 */
export async function connectV1(
  file: string,
  revision: LegacyRevision | '2024-10-07',
  env?: Record<string, string>,
): Promise<OfficialClient> {
  const transport = new StdioClientTransport(server(file, env));
  const wire = new Wire(transport, revision === '2024-10-07' ? '2025-11-25' : revision, (message) =>
    ask(message, revision),
  );
  const client = new Client({ name: 'official-v1', version: '1.32' });
  const heard: Loose[] = [];
  client.fallbackNotificationHandler = async (notification) => void heard.push(notification);
  let agreed = '';
  // The client tells its transport which revision was agreed on, and nobody else.
  Object.assign(transport, {
    setProtocolVersion(version: string) {
      agreed = version;
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
    getPrompt: (name, args) => client.getPrompt({ name, arguments: args }),
    complete: (ref, argument, chosen) =>
      client.complete({ ref, argument, ...(chosen ? { context: { arguments: chosen } } : {}) }),
    setLevel: (level) => client.setLoggingLevel(level),
    ping: () => client.ping(),
    close: () => client.close(),
  };
}

function ask(message: Message, protocolVersion: string): Message {
  if (message.method !== 'initialize' || typeof message.params !== 'object') return message;
  return { ...message, params: { ...message.params, protocolVersion } };
}
