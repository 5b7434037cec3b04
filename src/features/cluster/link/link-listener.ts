/** Accepts the links of other nodes: proves that both know the secret, and passes on their exchanges and news. */
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Clock } from '../../../core/kernel/clock.ts';
import { AcceptedLink } from './accepted-link.ts';
import { LINK_WINDOW } from './link-channel.ts';
import {
  isLinkProof,
  LinkSignature,
  type LinkTerms,
  linkProof,
  newNonce,
  nodeIdIn,
  nonceIn,
} from './link-handshake.ts';
import type { LinkListener } from './link-port.ts';
import { UnprovenConnections } from './unproven-connections.ts';

/** Milliseconds in which the last responses of a node that ends must be sent. */
const FINISH_MS = 1_000;
/** Maximum number of links. A cluster has one for each other node. */
const MAX_LINKS = 256;
/** REFUSED_STREAM (RFC 9113 section 7). */
const REFUSED = 7;

interface LinkListenerOptions {
  readonly secret: string;
  /** True over TLS: what arrives is not signed. */
  readonly secure: boolean;
  readonly maxMessageBytes: number;
  /** The most exchanges on one link. */
  readonly maxExchanges: number;
  readonly clock: Clock;
  readonly listener: LinkListener;
  /** The id of this node; undefined while it has none. */
  self(): string | undefined;
}

/** One accepted connection. */
interface Accepted {
  readonly session: ServerHttp2Session;
  terms?: LinkTerms;
  /** Set once the peer has proved itself. */
  link?: AcceptedLink;
}

export class AcceptedLinks {
  readonly #options: LinkListenerOptions;
  readonly #unproven: UnprovenConnections;
  readonly #accepted = new Map<object, Accepted>();
  readonly #receiving = { bytes: 0 };
  /** No connection is left. */
  #finished: () => void = () => {};

  constructor(options: LinkListenerOptions) {
    this.#options = options;
    this.#unproven = new UnprovenConnections(options.clock);
  }

  attach(server: Http2Server): void {
    server.on('connection', (socket) => this.#unproven.add(socket));
    server.on('session', (session) => {
      this.#accepted.set(session, { session });
      session.on('close', () => this.#closed(session));
      session.on('error', ignore);
    });
    server.on('stream', (stream, headers) => this.#stream(stream, headers));
    server.on('sessionError', ignore);
  }

  /** True if this node has opened a link to here. */
  has(node: string): boolean {
    for (const { link } of this.#accepted.values()) if (link?.from === node) return true;
    return false;
  }

  /** Closes the connections from these nodes, or from all. */
  close(leaves: (node: string) => boolean = () => true): void {
    for (const { session, link } of [...this.#accepted.values()]) if (leaves(link?.from ?? '')) session.destroy();
  }

  /** Accepts no more exchanges, and resolves when the responses of the others have been sent, or after a time limit. */
  async finish(): Promise<void> {
    this.#unproven.close();
    if (this.#accepted.size === 0) return;
    for (const { session, link } of this.#accepted.values()) {
      session.close();
      link?.leave();
    }
    await new Promise<void>((resolve) => {
      const late = this.#options.clock.after(FINISH_MS, resolve);
      this.#finished = () => {
        late.cancel();
        resolve();
      };
    });
  }

  #closed(session: ServerHttp2Session): void {
    const link = this.#accepted.get(session)?.link;
    this.#accepted.delete(session);
    if (this.#accepted.size === 0) this.#finished();
    if (!link) return;
    link.closed();
    this.#options.listener.closed(link.from);
  }

  #stream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', ignore);
    const accepted = stream.session && this.#accepted.get(stream.session);
    if (!accepted) return stream.close(REFUSED);
    const path = headers[':path'];
    if (!accepted.link && path === '/hello') this.#hello(accepted, stream, headers);
    else if (!accepted.link && path === '/link') void this.#link(accepted, stream, headers);
    // A peer that sends anything else is no node.
    else accepted.session.destroy();
  }

  #hello(accepted: Accepted, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    const { secret, self } = this.#options;
    const listener = self();
    const dialer = nodeIdIn(headers['link-from']);
    const dialerNonce = nonceIn(headers['link-nonce']);
    // A node that has restarted at this address has another id.
    const meant = listener !== undefined && headers['link-to'] === listener;
    if (!meant || !dialer || !dialerNonce || dialer === listener || accepted.terms) return accepted.session.destroy();
    const terms = { dialer, listener, dialerNonce, listenerNonce: newNonce() };
    accepted.terms = terms;
    stream.respond(
      { ':status': 200, 'link-nonce': terms.listenerNonce, 'link-proof': linkProof(secret, 'listener', terms) },
      { endStream: true },
    );
  }

  /** The stream with the proof of the dialer becomes the link. */
  async #link(accepted: Accepted, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    const { secret, secure, listener, self, maxMessageBytes, maxExchanges } = this.#options;
    const { terms, session } = accepted;
    if (!terms || !isLinkProof(headers['link-proof'], secret, 'dialer', terms)) return session.destroy();
    const known = await listener.knows(terms.dialer);
    if (!known || session.destroyed || accepted.link || self() !== terms.listener) return session.destroy();
    let links = 0;
    for (const { link } of this.#accepted.values()) if (link) links += 1;
    if (links >= MAX_LINKS || stream.destroyed) return session.destroy();
    this.#unproven.proved(session.socket);
    session.settings({ initialWindowSize: LINK_WINDOW });
    session.setLocalWindowSize(LINK_WINDOW);
    accepted.link = new AcceptedLink({
      ...{ from: terms.dialer, stream, listener, maxMessageBytes, maxExchanges, receiving: this.#receiving },
      sends: secure ? undefined : new LinkSignature(secret, 'listener', terms),
      receives: secure ? undefined : new LinkSignature(secret, 'dialer', terms),
      destroy: () => session.destroy(),
    });
    stream.once('close', () => session.destroy());
    stream.respond({ ':status': 200 });
  }
}

function ignore(): void {}
