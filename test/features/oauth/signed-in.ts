/** Clients that sign in at whatever authorization server the MCP server names: the official ones, and ours. */
import * as v2 from '@modelcontextprotocol/client';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { connect, oauth } from '../../../src/client/client.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { LATEST_MODERN } from '../../../src/core/protocol/revisions.ts';
import { textOf } from '../../harness/results.ts';
import { mcpRemote } from '../../system/clients/mcp-remote.ts';
import { type Person, REDIRECT } from './person.ts';

/** A client, whose calls sign in and step up as far as the server demands it. */
export interface SignedIn {
  /** Calls a tool. @returns the text of its result */
  call(name: string, args?: JsonObject): Promise<string>;
  tools(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export type SignIn = (url: string, person: Person) => Promise<SignedIn>;

/** Most consents for one request. */
const MAX_CONSENTS = 3;

/** A provider of the official clients, which keeps everything in memory. Both versions take it. */
class Provider {
  readonly redirectUrl = REDIRECT;
  readonly clientMetadata = {
    redirect_uris: [REDIRECT],
    client_name: 'official',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code'],
    response_types: ['code'],
  };
  /** The page that the person must open. */
  pending: URL | undefined;
  #client: { client_id: string } | undefined;
  #tokens: { access_token: string; token_type: string } | undefined;
  #discovered: v2.OAuthDiscoveryState | undefined;
  #verifier = '';

  clientInformation() {
    return this.#client;
  }

  saveClientInformation(client: { client_id: string }): void {
    this.#client = client;
  }

  tokens() {
    return this.#tokens;
  }

  saveTokens(tokens: { access_token: string; token_type: string }): void {
    this.#tokens = tokens;
  }

  redirectToAuthorization(url: URL): void {
    this.pending = url;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  saveDiscoveryState(state: v2.OAuthDiscoveryState): void {
    this.#discovered = state;
  }

  discoveryState() {
    return this.#discovered;
  }
}

/** The parts of an official client's transport that sign-in needs. */
interface Finishing {
  finishAuth(back: URLSearchParams): Promise<void>;
}

/** Repeats a request of an official client after each consent that it needs. */
async function consenting<T>(
  work: () => Promise<T>,
  { provider, person, transport }: { provider: Provider; person: Person; transport: () => Finishing },
): Promise<T> {
  for (let consents = 0; ; consents += 1)
    try {
      return await work();
    } catch (error) {
      const { pending } = provider;
      if (!pending || consents === MAX_CONSENTS) throw error;
      if (!(error instanceof UnauthorizedError || error instanceof v2.UnauthorizedError)) throw error;
      provider.pending = undefined;
      await transport().finishAuth((await person.consent(pending)).searchParams);
    }
}

/** `@modelcontextprotocol/sdk`, version 1: a session of 2025-11-25. */
export const signInV1: SignIn = async (url, person) => {
  const provider = new Provider();
  const client = new Client({ name: 'official-v1', version: '1.32' });
  let transport: StreamableHTTPClientTransport;
  const finish = { finishAuth: (back: URLSearchParams) => transport.finishAuth(back.get('code') ?? '') };
  const again = <T>(work: () => Promise<T>): Promise<T> =>
    consenting(work, { provider, person, transport: () => finish });
  await again(() => {
    transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
    return client.connect(transport);
  });
  return {
    call: (name, args = {}) =>
      again(async () => textOf({ content: (await client.callTool({ name, arguments: args })).content })),
    tools: () => again(async () => (await client.listTools()).tools.map(({ name }) => name)),
    async close() {
      await transport.terminateSession();
      await client.close();
    },
  };
};

/** `@modelcontextprotocol/client`, version 2, in the modern era, or in a session. */
export const signInV2 =
  (mode: v2.VersionNegotiationMode): SignIn =>
  async (url, person) => {
    const provider = new Provider();
    const client = new v2.Client({ name: 'official-v2', version: '2.4' }, { versionNegotiation: { mode } });
    let transport: v2.StreamableHTTPClientTransport;
    const again = <T>(work: () => Promise<T>): Promise<T> =>
      consenting(work, { provider, person, transport: () => transport });
    await again(() => {
      transport = new v2.StreamableHTTPClientTransport(new URL(url), { authProvider: provider });
      return client.connect(transport);
    });
    return {
      call: (name, args = {}) => again(async () => textOf(await client.callTool({ name, arguments: { ...args } }))),
      tools: () => again(async () => (await client.listTools()).tools.map(({ name }) => name)),
      close: () => client.close(),
    };
  };

/** `mcp-remote`, which shows the address on stderr and receives the code on a port of its own. */
export const signInRemote: SignIn = async (url, person) => {
  const transport = mcpRemote(url);
  const client = new Client({ name: 'behind-mcp-remote', version: '1.0.0' });
  const opened = new Set<string>();
  /** Addresses that the browser was sent to, and where nobody listens yet: the proxy opens its port when it needs it. */
  const returning = new Set<URL>();
  let said = '';
  let failed: (error: unknown) => void = () => {};
  const failure = new Promise<never>((_, reject) => {
    failed = reject;
  });
  const retry = (back: URL): void => {
    returning.delete(back);
    fetch(back).then(
      (response) => response.text(),
      () => void returning.add(back),
    );
  };
  transport.stderr?.on('data', (part: Buffer) => {
    said += part.toString('utf8');
    // Whatever it prints next may mean that its port is open.
    for (const back of returning) retry(back);
    for (const [page] of said.matchAll(/^http:\S+[?&]code_challenge=\S+(?=\s)/gm)) {
      if (opened.has(page)) continue;
      opened.add(page);
      const at = new URL(page);
      person.consent(at, at.searchParams.get('redirect_uri') ?? '').then(retry, failed);
    }
  });
  const orFail = <T>(work: Promise<T>): Promise<T> => Promise.race([work, failure]);
  await orFail(client.connect(transport));
  return {
    call: async (name, args = {}) =>
      textOf({ content: (await orFail(client.callTool({ name, arguments: args }))).content }),
    tools: async () => (await orFail(client.listTools())).tools.map(({ name }) => name),
    close: () => client.close(),
  };
};

/** `troupe/client`. */
export const signInOurs =
  (eras: 'legacy' | 'modern'): SignIn =>
  async (url, person) => {
    const auth = oauth({ authorize: (page) => person.consent(page), redirectUrl: REDIRECT });
    const client = await connect({ url, auth }, { eras, log() {} });
    return {
      call: async (name, args = {}) => textOf(await client.call(name, args)),
      tools: async () => (await client.tools()).map(({ name }) => name),
      close: () => client.close(),
    };
  };

/** Every client, by its name and era. */
export const CLIENTS: Readonly<Record<string, SignIn>> = {
  'the official client, version 1': signInV1,
  'the official client, version 2, in a session': signInV2('legacy'),
  'the official client, version 2, in the modern era': signInV2({ pin: LATEST_MODERN }),
  'troupe/client in a session': signInOurs('legacy'),
  'troupe/client in the modern era': signInOurs('modern'),
};
