/** The links of this node to all others: one port that it listens on, and one connection to each. */
import { connect as connectTcp, type Server } from 'node:net';
import { listenOn } from '../../../core/http/listen-on.ts';
import type {
  ForwardedExchange,
  Forwarding,
  ForwardListener,
  LinkNews,
  LinkPort,
} from '../../../core/http/other-nodes.ts';
import type { Clock } from '../../../core/kernel/clock.ts';
import type { DialedLink, DialedLinkOptions } from './dialed-link.ts';
import type { AcceptedLinks } from './link-listener.ts';
import type { LinkListener, LinkPeer } from './link-port.ts';

/** The certificate of a node, and the authority that has signed those of all nodes and no others (PEM). */
interface LinkTls {
  readonly key: string | Uint8Array;
  readonly cert: string | Uint8Array;
  readonly ca: string | Uint8Array;
}

export interface LinkOptions {
  /** The address of this node's own port: `10.0.0.5:7400`. Port 0 selects a free one. */
  readonly listen: string;
  /** The secret that all nodes share, of at least 32 bytes. */
  readonly secret: string;
  /** Encrypts links, and accepts only nodes with a certificate. Default: links are signed and not encrypted. */
  readonly tls?: LinkTls | undefined;
}

interface LinkHost {
  readonly clock: Clock;
  readonly maxMessageBytes: number;
  /** The most exchanges on one link, `http.maxExchanges`. */
  readonly maxExchanges: number;
  readonly listener: LinkListener;
  log(level: 'info' | 'warning' | 'error', message: string): void;
}

/** A stream for the handshake, and one for the link. */
const STREAMS = 2;
/** The limits of a peer that has not proved itself. */
const SETTINGS = { initialWindowSize: 16 * 1024, maxHeaderListSize: 8 * 1024, enablePush: false } as const;
/** Megabytes that one connection may hold. */
const MAX_SESSION_MEMORY = 64;

export class Links implements LinkPort {
  readonly #options: LinkOptions;
  readonly #host: LinkHost;
  readonly #dialed = new Map<string, DialedLink>();
  #accepted: AcceptedLinks | undefined;
  /** Opens a link to another node; undefined until this node listens. */
  #dial: ((self: string, peer: LinkPeer) => DialedLink) | undefined;
  #server: Server | undefined;
  #self: string | undefined;
  /** The address for other nodes. */
  #address = '';

  constructor(options: LinkOptions, host: LinkHost) {
    this.#options = options;
    this.#host = host;
  }

  /** Listens. @returns the address for other nodes */
  async open(): Promise<string> {
    const { listen, secret, tls } = this.#options;
    const { clock, listener, maxMessageBytes, maxExchanges } = this.#host;
    const { host, port } = addressIn(listen);
    // Import on demand: a server without a cluster does not load them.
    const { connect, createServer, createSecureServer } = await import('node:http2');
    const { connect: connectTls } = await import('node:tls');
    const { AcceptedLinks } = await import('./link-listener.ts');
    const { DialedLink } = await import('./dialed-link.ts');
    const secure = tls !== undefined;
    const limits = { maxSessionMemory: MAX_SESSION_MEMORY, unknownProtocolTimeout: 1_000 };
    const settings = { ...SETTINGS, maxConcurrentStreams: STREAMS };
    const trust = tls && { ...pem(tls), requestCert: true, rejectUnauthorized: true };
    const server = trust
      ? createSecureServer({ ...limits, settings, ...trust })
      : createServer({ ...limits, settings });
    const self = (): string | undefined => this.#self;
    const accepted = new AcceptedLinks({ secret, secure, maxMessageBytes, maxExchanges, clock, listener, self });
    accepted.attach(server);
    this.#accepted = accepted;
    const dialing: DialedLinkOptions = {
      ...{ secret, secure, clock, listener, maxExchanges },
      connect: (address) => {
        // The peer is identified by the handshake, which is bound to its id; the certificate admits it to the cluster.
        const checks = tls && { ...pem(tls), ALPNProtocols: ['h2'], checkServerIdentity: () => undefined };
        const to = addressIn(address);
        const socket = checks ? connectTls({ ...to, ...checks }) : connectTcp(to);
        // HTTP/2 leaves a socket open whose certificate was rejected.
        socket.on('error', () => socket.destroy());
        const scheme = checks ? 'https' : 'http';
        return connect(`${scheme}://${address}`, { ...limits, settings: SETTINGS, createConnection: () => socket });
      },
    };
    this.#dial = (own, peer) => new DialedLink(own, peer, dialing);
    const bound = await listenOn(server, 'cluster', { host, port });
    server.on('error', (error) => this.#host.log('error', `link: ${error.message}`));
    this.#server = server;
    this.#address = `${listen.slice(0, listen.lastIndexOf(':'))}:${bound.port}`;
    return this.#address;
  }

  /** Takes part under this id. All links of an earlier id close. */
  join(self: string): void {
    this.leave();
    this.#self = self;
  }

  /** Closes all links. */
  leave(): void {
    this.#self = undefined;
    for (const link of this.#dialed.values()) link.close();
    this.#dialed.clear();
    this.#accepted?.close();
  }

  /** All other nodes that are not fenced: opens links to new ones, and closes links of nodes that are gone or fenced. */
  peers(peers: readonly LinkPeer[]): void {
    const [self, dial] = [this.#self, this.#dial];
    if (self === undefined || !dial) return;
    const nodes = new Set(peers.map(({ node }) => node));
    for (const [node, link] of this.#dialed) {
      if (nodes.has(node)) continue;
      this.#dialed.delete(node);
      link.close();
    }
    this.#accepted?.close((node) => node !== '' && !nodes.has(node));
    for (const peer of peers) if (!this.#dialed.has(peer.node)) this.#dialed.set(peer.node, dial(self, peer));
  }

  /** True if a link to this node is open. */
  reaches(node: string): boolean {
    return this.#dialed.get(node)?.ready === true;
  }

  /** The reason why this node and another one do not reach each other; undefined if both have opened their links. */
  failure(node: string): string | undefined {
    const link = this.#dialed.get(node);
    if (!link) return 'it is no node of the cluster';
    return link.failure ?? (this.#accepted?.has(node) ? undefined : `it does not reach this node at ${this.#address}`);
  }

  forward(node: string, exchange: ForwardedExchange, listener: ForwardListener): Forwarding {
    const link = this.#dialed.get(node);
    if (link) return link.forward(exchange, listener);
    listener.failed('unreachable');
    return { resume() {}, cancel() {} };
  }

  tell(node: string, news: LinkNews): void {
    this.#dialed.get(node)?.tell(news);
  }

  /** Lets responses on their way arrive, then closes all links. */
  async close(): Promise<void> {
    const server = this.#server;
    const closed = server && new Promise<void>((resolve) => server.close(() => resolve()));
    await this.#accepted?.finish();
    this.leave();
    await closed;
  }
}

/** Node accepts strings and Buffers. */
function pem({ key, cert, ca }: LinkTls): Readonly<Record<'key' | 'cert' | 'ca', string | Buffer>> {
  const given = (value: string | Uint8Array): string | Buffer =>
    typeof value === 'string' ? value : Buffer.from(value);
  return { key: given(key), cert: given(cert), ca: given(ca) };
}

/** @throws {TypeError} for a text that is no address */
function addressIn(listen: string): { host: string; port: number } {
  const found = /^(?:\[([^\]]+)\]|([^:[\]]+)):(\d{1,5})$/.exec(listen);
  const port = Number(found?.[3]);
  if (!found || port > 65_535)
    throw new TypeError(`cluster: listen: expected an address with a port, such as "10.0.0.5:7400", got "${listen}"`);
  return { host: found[1] ?? found[2] ?? '', port };
}
