/** A legacy server that a test plays, as a channel. */
import { type Channel, type ChannelHost, type Client, connect, type OutgoingMessage } from 'troupe/client';
import type { SimulatedClock } from 'troupe/testing';

/** The texts that respond to one message. */
export type Script = (message: {
  readonly id: number;
  readonly method: string;
  readonly name: string;
}) => readonly string[];

export const text = (message: object): string => JSON.stringify({ jsonrpc: '2.0', ...message });
export const INITIALIZED = {
  protocolVersion: '2025-11-25',
  capabilities: { tools: { listChanged: true }, resources: {} },
  serverInfo: { name: 'hostile', version: '1' },
};

export class PlayedServer {
  script: Script = () => [];
  initialized: object = INITIALIZED;
  opened = 0;
  open = 0;
  /** Breaks each channel at once. */
  flaps = false;
  /** Responds to nothing. */
  silent = false;
  /** Channels never open. */
  hangs = false;
  current: ChannelHost | undefined;
  readonly sent: string[] = [];

  channel(): Channel {
    const stage = this;
    let host: ChannelHost | undefined;
    stage.opened += 1;
    stage.open += 1;
    let closed = false;
    return {
      kind: 'stream',
      open(to) {
        host = to;
        stage.current = to;
        if (!stage.hangs) to.send({ type: 'opened' });
      },
      send(message: OutgoingMessage) {
        stage.sent.push(message.method);
        if (stage.silent) return;
        const { id, method, params = {} } = JSON.parse(message.text);
        const respond = (each: string): void => host?.send({ type: 'text', text: each, about: undefined });
        if (method === 'server/discover') respond(text({ id, error: { code: -32601, message: 'unknown' } }));
        else if (method === 'initialize') {
          respond(text({ id, result: stage.initialized }));
          if (stage.flaps)
            host?.send({
              type: 'gone',
              failure: { reason: 'closed', message: 'flap', carriedOut: 'unknown' },
              final: false,
            });
        } else if (id !== undefined && method !== undefined)
          for (const each of stage.script({ id, method, name: String(params.name ?? params.cursor ?? '') }))
            respond(each);
      },
      abandon() {},
      answered() {},
      close() {
        if (!closed) stage.open -= 1;
        closed = true;
        host = undefined;
        return Promise.resolve();
      },
    };
  }

  connect(clock: SimulatedClock | undefined, options: Parameters<typeof connect>[1] = {}): Promise<Client> {
    return connect(
      { name: 'stage', channel: () => this.channel() },
      { eras: 'legacy', log: () => {}, ...(clock ? { clock } : {}), ...options },
    );
  }
}
