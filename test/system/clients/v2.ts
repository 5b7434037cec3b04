/** The official client `@modelcontextprotocol/client` (version 2), in both eras. */
import { Client, StreamableHTTPClientTransport, type VersionNegotiationMode } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import {
  LATEST_MODERN,
  type LegacyRevision,
  type ModernRevision,
  type Revision,
} from '../../../src/core/protocol/revisions.ts';
import { HttpWire, type Served } from './http-wire.ts';
import type { Loose, OfficialClient } from './official.ts';
import { StdioWire, server, type Wire } from './wire.ts';

/** How it comes to a revision: an `initialize` that asks for this one, a `server/discover` that must offer it, or whatever the probe finds. */
export type Negotiation = { readonly initialize: LegacyRevision } | { readonly pin: ModernRevision } | 'auto';

/** Over stdio, to a server that the client spawns. */
export function connectV2(
  file: string,
  negotiation: Negotiation,
  env?: Record<string, string>,
): Promise<OfficialClient> {
  const transport = new StdioClientTransport(server(file, env));
  return connected(transport, new StdioWire(transport, expected(negotiation)), negotiation);
}

/** Over Streamable HTTP. */
export function connectV2Http(served: Served, negotiation: Negotiation): Promise<OfficialClient<HttpWire>> {
  const wire = new HttpWire(served, expected(negotiation));
  const transport = new StreamableHTTPClientTransport(wire.url, { fetch: wire.fetch });
  return connected(transport, wire, negotiation, () => transport.terminateSession());
}

/**
 * @param goodbye what the client is to say before it closes
 * @param prepare what it declares and answers, before it connects
 */
export async function connected<W extends Wire>(
  transport: StdioClientTransport | StreamableHTTPClientTransport,
  wire: W,
  negotiation: Negotiation,
  goodbye: () => Promise<void> = async () => {},
  prepare: (client: Client) => void = () => {},
): Promise<OfficialClient<W>> {
  const client = new Client(
    { name: 'official-v2', version: '2.4' },
    {
      versionNegotiation: { mode: modeOf(negotiation) },
      ...(isLegacy(negotiation) ? { supportedProtocolVersions: [negotiation.initialize] } : {}),
    },
  );
  prepare(client);
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
    listen: (filter) => client.listen(filter),
    getPrompt: (name, args) => client.getPrompt({ name, ...(args ? { arguments: args } : {}) }),
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

function isLegacy(negotiation: Negotiation): negotiation is { readonly initialize: LegacyRevision } {
  return typeof negotiation === 'object' && 'initialize' in negotiation;
}

function expected(negotiation: Negotiation): Revision {
  return isLegacy(negotiation) ? negotiation.initialize : LATEST_MODERN;
}

function modeOf(negotiation: Negotiation): VersionNegotiationMode {
  if (negotiation === 'auto') return 'auto';
  return 'pin' in negotiation ? { pin: negotiation.pin } : 'legacy';
}
