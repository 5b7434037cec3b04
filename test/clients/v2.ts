/** The official client `@modelcontextprotocol/client` (version 2), in both eras. */
import { Client, type VersionNegotiationMode } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { LATEST_MODERN, type LegacyRevision, type ModernRevision } from '../../src/protocol/revisions.ts';
import type { Loose, OfficialClient } from './official.ts';
import { server, Wire } from './wire.ts';

/** How it comes to a revision: an `initialize` that asks for this one, a `server/discover` that must offer it, or whatever the probe finds. */
export type Negotiation = { readonly initialize: LegacyRevision } | { readonly pin: ModernRevision } | 'auto';

export async function connectV2(
  file: string,
  negotiation: Negotiation,
  env?: Record<string, string>,
): Promise<OfficialClient> {
  const transport = new StdioClientTransport(server(file, env));
  const legacy = typeof negotiation === 'object' && 'initialize' in negotiation;
  const wire = new Wire(transport, legacy ? negotiation.initialize : LATEST_MODERN);
  const client = new Client(
    { name: 'official-v2', version: '2.4' },
    {
      versionNegotiation: { mode: modeOf(negotiation) },
      ...(legacy ? { supportedProtocolVersions: [negotiation.initialize] } : {}),
    },
  );
  const heard: Loose[] = [];
  client.fallbackNotificationHandler = async (notification) => void heard.push(notification);
  await client.connect(transport);
  return {
    wire,
    heard,
    revision: client.getNegotiatedProtocolVersion() ?? '',
    introduction: {
      info: client.getServerVersion(),
      capabilities: { ...client.getServerCapabilities() },
      instructions: client.getInstructions(),
    },
    // Without a cursor this client walks every page by itself.
    listTools: async () => (await client.listTools()).tools,
    listResources: async () => (await client.listResources()).resources,
    listTemplates: async () => (await client.listResourceTemplates()).resourceTemplates,
    listPrompts: async () => (await client.listPrompts()).prompts,
    callTool: (name, args, { signal, onProgress, meta } = {}) =>
      client.callTool(
        { name, ...(args ? { arguments: args } : {}), ...(meta ? { _meta: meta } : {}) },
        { ...(signal ? { signal } : {}), ...(onProgress ? { onprogress: onProgress } : {}) },
      ),
    readResource: (uri) => client.readResource({ uri }),
    subscribe: (uri) => client.subscribeResource({ uri }),
    unsubscribe: (uri) => client.unsubscribeResource({ uri }),
    getPrompt: (name, args) => client.getPrompt({ name, ...(args ? { arguments: args } : {}) }),
    complete: (ref, argument, chosen) =>
      client.complete({ ref, argument, ...(chosen ? { context: { arguments: chosen } } : {}) }),
    setLevel: (level) => client.setLoggingLevel(level),
    ping: () => client.ping(),
    close: () => client.close(),
  };
}

function modeOf(negotiation: Negotiation): VersionNegotiationMode {
  if (negotiation === 'auto') return 'auto';
  return 'pin' in negotiation ? { pin: negotiation.pin } : 'legacy';
}
