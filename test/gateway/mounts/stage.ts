/** A gateway between a client and an upstream: the era and the transport of each side can be chosen. */
import { createServer, http, type Server, type ServerOptions } from 'troupe';
import { type Client, type ConnectOptions, type ConnectTarget, connect } from 'troupe/client';
import { startable } from '../../harness/compiled.ts';
import { type AskingServer, askingServer, type Era } from './asking-server.ts';

export type Carrier = 'memory' | 'stdio' | 'http';

export interface Side {
  readonly era: Era;
  readonly over: Carrier;
}

export interface Stage {
  readonly client: Client;
  /** Undefined if the gateway is a process of its own. */
  readonly gateway: Server | undefined;
  /** Undefined if the upstream is a process of its own. */
  readonly upstream: AskingServer | undefined;
  /** What the client was asked, in order. */
  readonly asked: unknown[];
  close(): Promise<void>;
}

export const ROOTS = [{ uri: 'file:///home/ada', name: 'home' }];

/** Answers everything that a client can be asked, and notes it. */
export function answers(asked: unknown[]): ConnectOptions {
  return {
    elicit({ message, requestedSchema }) {
      asked.push({ message, requestedSchema });
      return { size: 'S' };
    },
    elicitUrl({ message, url }) {
      asked.push({ message, url });
      return 'accept';
    },
    sample(request) {
      asked.push(request);
      return { role: 'assistant', model: 'm', content: { type: 'text', text: 'hi' } };
    },
    roots() {
      asked.push('roots');
      return ROOTS;
    },
  };
}

export async function stageOf(
  downstream: Side,
  upstream: Side,
  options: { readonly gateway?: Partial<ServerOptions>; readonly client?: ConnectOptions } = {},
): Promise<Stage> {
  const closers: (() => Promise<unknown>)[] = [];
  let asking: AskingServer | undefined;
  let target: ConnectTarget | Server;
  if (upstream.over === 'stdio')
    target = { command: process.execPath, args: [startable('test/fixtures/mounts/asking.ts'), upstream.era] };
  else {
    asking = askingServer(upstream.era);
    const { server } = asking;
    closers.push(() => server.close());
    target = upstream.over === 'memory' ? server : await served(server);
  }
  let gateway: Server | undefined;
  let door: ConnectTarget | Server;
  if (downstream.over === 'stdio')
    door = {
      command: process.execPath,
      args: [
        startable('test/fixtures/mounts/gateway.ts'),
        JSON.stringify(asking && upstream.over === 'memory' ? { era: upstream.era } : target),
      ],
    };
  else {
    const server = createServer({ name: 'gateway', version: '1.0.0', log() {}, ...options.gateway });
    gateway = server;
    closers.push(() => server.close());
    await server.mount('up', target);
    door = downstream.over === 'memory' ? server : await served(server);
  }
  const asked: unknown[] = [];
  const client = await connect(door, {
    ...answers(asked),
    eras: downstream.era,
    log() {},
    ...options.client,
  });
  closers.push(() => client.close());
  return {
    client,
    gateway,
    upstream: asking,
    asked,
    async close() {
      for (const close of closers.reverse()) await close();
    },
  };
}

/** Serves over HTTP on loopback. @returns its address */
async function served(server: Server): Promise<string> {
  const transport = http({ port: 0 });
  await server.listen(transport);
  return String(transport.url);
}
