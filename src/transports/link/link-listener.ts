/** Accepts the links of other nodes: proves that both know the secret, and passes on their exchanges and news. */
import type { Http2Server, IncomingHttpHeaders, ServerHttp2Session, ServerHttp2Stream } from 'node:http2';
import type { Clock, Timer } from '../../clock.ts';
import {
  isLinkProof,
  LINK_WINDOW,
  LinkSignature,
  type LinkTerms,
  linkProof,
  newNonce,
  nodeIdIn,
  nonceIn,
} from './link-handshake.ts';
import type { LinkListener } from './link-port.ts';
import { EXTRA_BYTES, exchangeIn, newsIn } from './link-text.ts';
import { LinkedRequest, SIGNATURE } from './linked-request.ts';
import { MAX_NEWS_BYTES } from './news-queue.ts';

/** Milliseconds in which a peer must prove that it has the secret. */
const HANDSHAKE_MS = 3_000;
/** Milliseconds in which the last responses of a node that ends must be sent. */
const FINISH_MS = 1_000;
/** Most connections at a time. A cluster has one for each other node. */
const MAX_CONNECTIONS = 256;
/** Most bytes of exchanges that are being received on all links. */
const MAX_RECEIVING = 64 * 1024 * 1024;
/** ENHANCE_YOUR_CALM, REFUSED_STREAM (RFC 9113 section 7). */
const TOO_MUCH = 11;
const REFUSED = 7;

export interface LinkListenerOptions {
  readonly secret: string;
  /** True over TLS: what arrives is not signed. */
  readonly secure: boolean;
  readonly maxMessageBytes: number;
  readonly clock: Clock;
  readonly listener: LinkListener;
  /** The id of this node; undefined while it has none. */
  self(): string | undefined;
}

/** One accepted connection. */
interface Accepted {
  readonly session: ServerHttp2Session;
  readonly late: Timer;
  terms?: LinkTerms;
  /** The node that has proved itself. */
  from?: string;
  receives?: LinkSignature;
  sends?: LinkSignature;
}

export class AcceptedLinks {
  readonly #options: LinkListenerOptions;
  readonly #accepted = new Map<object, Accepted>();
  /** No link is left. */
  #finished: () => void = () => {};
  #receiving = 0;

  constructor(options: LinkListenerOptions) {
    this.#options = options;
  }

  attach(server: Http2Server): void {
    server.on('session', (session) => {
      if (this.#accepted.size >= MAX_CONNECTIONS) return session.destroy();
      const late = this.#options.clock.after(HANDSHAKE_MS, () => session.destroy());
      this.#accepted.set(session, { session, late });
      session.on('close', () => this.#closed(session));
      session.on('error', ignore);
    });
    server.on('stream', (stream, headers) => this.#stream(stream, headers));
    server.on('sessionError', ignore);
  }

  /** Closes the connections from these nodes, or from all. */
  close(leaves: (node: string) => boolean = () => true): void {
    for (const { session, from } of [...this.#accepted.values()])
      if (from === undefined ? leaves('') : leaves(from)) session.destroy();
  }

  /** Accepts no more exchanges, and resolves when the responses of the others have been sent, or after a time limit. */
  async finish(): Promise<void> {
    if (this.#accepted.size === 0) return;
    for (const { session } of this.#accepted.values()) session.close();
    await new Promise<void>((resolve) => {
      const late = this.#options.clock.after(FINISH_MS, resolve);
      this.#finished = () => {
        late.cancel();
        resolve();
      };
    });
  }

  #closed(session: ServerHttp2Session): void {
    const accepted = this.#accepted.get(session);
    this.#accepted.delete(session);
    if (this.#accepted.size === 0) this.#finished();
    accepted?.late.cancel();
    if (accepted?.from !== undefined) this.#options.listener.closed(accepted.from);
  }

  #stream(stream: ServerHttp2Stream, headers: IncomingHttpHeaders): void {
    stream.on('error', ignore);
    const accepted = stream.session && this.#accepted.get(stream.session);
    if (!accepted) return stream.close(REFUSED);
    const path = headers[':path'];
    if (accepted.from === undefined) {
      if (path === '/hello') return void this.#hello(accepted, stream, headers);
      if (path === '/proof') return void this.#proof(accepted, stream, headers);
      // A peer that sends anything else is no node.
      return accepted.session.destroy();
    }
    if (path === '/exchange' || path === '/news') this.#receive(accepted, accepted.from, path, stream, headers);
    else stream.close(REFUSED);
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

  async #proof(accepted: Accepted, stream: ServerHttp2Stream, headers: IncomingHttpHeaders): Promise<void> {
    const { secret, secure, listener, self } = this.#options;
    const { terms, session } = accepted;
    if (!terms || !isLinkProof(headers['link-proof'], secret, 'dialer', terms)) return session.destroy();
    const known = await listener.knows(terms.dialer);
    if (!known || session.destroyed || self() !== terms.listener) return session.destroy();
    accepted.late.cancel();
    accepted.from = terms.dialer;
    session.setLocalWindowSize(LINK_WINDOW);
    if (!secure) {
      accepted.receives = new LinkSignature(secret, 'dialer', terms);
      accepted.sends = new LinkSignature(secret, 'listener', terms);
    }
    if (!stream.destroyed) stream.respond({ ':status': 204 }, { endStream: true });
  }

  #receive(
    { session, receives, sends }: Accepted,
    from: string,
    path: '/exchange' | '/news',
    stream: ServerHttp2Stream,
    headers: IncomingHttpHeaders,
  ): void {
    const [count, signed] = String(headers[SIGNATURE] ?? '').split('.', 2);
    const number = Number(count);
    // An unsigned or repeated exchange: nothing of this connection can be trusted.
    if (receives && !receives.accept(number)) return session.destroy();
    const chunks: Buffer[] = [];
    let length = 0;
    const longest = path === '/news' ? MAX_NEWS_BYTES : this.#options.maxMessageBytes + EXTRA_BYTES;
    stream.on('data', (chunk: Buffer) => {
      length += chunk.length;
      this.#receiving += chunk.length;
      if (length > longest || this.#receiving > MAX_RECEIVING) return stream.close(TOO_MUCH);
      chunks.push(chunk);
    });
    stream.once('close', () => {
      this.#receiving -= length;
    });
    stream.once('end', () => {
      if (stream.destroyed || stream.aborted) return;
      this.#receiving -= length;
      length = 0;
      const bytes = chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks);
      chunks.length = 0;
      if (receives && !receives.matches(signed, number, path, bytes)) return session.destroy();
      const { listener } = this.#options;
      if (path === '/news') {
        for (const news of newsIn(bytes.toString('utf8'))) listener.news(from, news);
        return stream.respond({ ':status': 204 }, { endStream: true });
      }
      const exchange = exchangeIn(bytes);
      if (!exchange) return stream.close(REFUSED);
      listener.exchange(new LinkedRequest({ from, exchange, stream, signature: sends, number }));
    });
  }
}

function ignore(): void {}
