/** The link to one other node: connects, proves itself, forwards exchanges, delivers news, and connects again. */
import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import type { Clock, Timer } from '../../clock.ts';
import {
  isLinkProof,
  LINK_WINDOW,
  LinkSignature,
  type LinkTerms,
  linkProof,
  newNonce,
  nonceIn,
} from './link-handshake.ts';
import type {
  ForwardedExchange,
  Forwarding,
  ForwardListener,
  LinkFailure,
  LinkListener,
  LinkNews,
  LinkPeer,
} from './link-port.ts';
import { exchangeBytes } from './link-text.ts';
import { headText, NOT_MINE, SIGNATURE, STREAM_END, WHOLE } from './linked-request.ts';
import { NewsQueue } from './news-queue.ts';

/** Milliseconds in which a peer must accept a connection and prove itself. */
const CONNECT_MS = 3_000;
/** Milliseconds between two pings, and in which a ping must return. A blocked event loop of 1.5 s is no failure. */
const PING_MS = 1_000;
const PONG_MS = 5_000;
/** The first and the longest pause before another attempt, in milliseconds. */
const RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;
/** CANCEL (RFC 9113 section 7). */
const CANCEL = 8;

export interface DialedLinkOptions {
  readonly secret: string;
  /** True over TLS: what is sent is not signed. */
  readonly secure: boolean;
  readonly clock: Clock;
  readonly listener: LinkListener;
  /** The most exchanges on this link. */
  readonly maxExchanges: number;
  /** Begins a connection to an address. */
  connect(address: string): ClientHttp2Session;
}

interface Ready {
  readonly session: ClientHttp2Session;
  readonly sends: LinkSignature | undefined;
  readonly receives: LinkSignature | undefined;
}

export class DialedLink {
  readonly #self: string;
  readonly #peer: LinkPeer;
  readonly #options: DialedLinkOptions;
  #ready: Ready | undefined;
  #session: ClientHttp2Session | undefined;
  #timer: Timer | undefined;
  #retryMs = RETRY_MS;
  #exchanges = 0;
  readonly #news = new NewsQueue();
  /** True while the peer receives news. */
  #delivering = false;
  #closed = false;

  constructor(self: string, peer: LinkPeer, options: DialedLinkOptions) {
    this.#self = self;
    this.#peer = peer;
    this.#options = options;
    this.#connect();
  }

  get ready(): boolean {
    return this.#open !== undefined;
  }

  /** A session that is destroyed reports that later. */
  get #open(): Ready | undefined {
    return this.#ready?.session.destroyed === false && !this.#ready.session.closed ? this.#ready : undefined;
  }

  #connect(): void {
    const { clock, connect } = this.#options;
    const session = connect(this.#peer.address);
    this.#session = session;
    this.#timer = clock.after(CONNECT_MS, () => session.destroy());
    session.on('error', ignore);
    session.once('close', () => this.#lost());
    session.once('connect', () => this.#greet(session));
  }

  /** Proves itself and checks the proof of the peer. Only then is anything sent. */
  #greet(session: ClientHttp2Session): void {
    const { secret, secure } = this.#options;
    const [dialer, listener, dialerNonce] = [this.#self, this.#peer.node, newNonce()];
    const hello = { 'link-from': dialer, 'link-to': listener, 'link-nonce': dialerNonce };
    this.#ask(session, '/hello', hello, (headers) => {
      const listenerNonce = nonceIn(headers['link-nonce']);
      if (listenerNonce === undefined) return session.destroy();
      const terms: LinkTerms = { dialer, listener, dialerNonce, listenerNonce };
      if (!isLinkProof(headers['link-proof'], secret, 'listener', terms)) return session.destroy();
      this.#ask(session, '/proof', { 'link-proof': linkProof(secret, 'dialer', terms) }, () => {
        this.#ready = {
          session,
          sends: secure ? undefined : new LinkSignature(secret, 'dialer', terms),
          receives: secure ? undefined : new LinkSignature(secret, 'listener', terms),
        };
        session.setLocalWindowSize(LINK_WINDOW);
        this.#retryMs = RETRY_MS;
        this.#timer?.cancel();
        this.#ping(session);
        this.#deliver();
        this.#options.listener.opened(this.#peer.node);
      });
    });
  }

  #ask(
    session: ClientHttp2Session,
    path: string,
    headers: Readonly<Record<string, string>>,
    done: (headers: IncomingHttpHeaders) => void,
  ): void {
    // A session that was destroyed meanwhile still reports that it has connected, and then accepts no request.
    if (session.destroyed || session.closed) return;
    const stream = session.request({ ':path': path, ...headers });
    stream.on('error', ignore);
    stream.once('response', (answer) => {
      stream.resume();
      if (Number(answer[':status']) < 300) done(answer);
      else session.destroy();
    });
  }

  #ping(session: ClientHttp2Session): void {
    if (session.destroyed || this.#closed) return;
    const { clock } = this.#options;
    const late = clock.after(PONG_MS, () => session.destroy());
    session.ping(() => {
      late.cancel();
      if (!session.destroyed) this.#timer = clock.after(PING_MS, () => this.#ping(session));
    });
  }

  #lost(): void {
    this.#ready = undefined;
    this.#timer?.cancel();
    // They may have arrived: a peer may receive news twice.
    this.#delivering = false;
    if (this.#closed) return;
    const { clock, listener } = this.#options;
    this.#timer = clock.after(this.#retryMs, () => this.#connect());
    this.#retryMs = Math.min(2 * this.#retryMs, MAX_RETRY_MS);
    listener.closed(this.#peer.node);
  }

  close(): void {
    this.#closed = true;
    this.#timer?.cancel();
    this.#session?.destroy();
  }

  forward(exchange: ForwardedExchange, listener: ForwardListener): Forwarding {
    const ready = this.#open;
    const full = this.#exchanges >= this.#options.maxExchanges;
    if (!ready || full) {
      listener.failed(full ? 'full' : 'unreachable');
      return NOTHING_SENT;
    }
    this.#exchanges += 1;
    const stream = send(ready, '/exchange', exchangeBytes(exchange));
    stream.once('close', () => {
      this.#exchanges -= 1;
    });
    new Answer(ready, stream, listener);
    return {
      number: stream.id,
      resume: () => void stream.resume(),
      cancel: () => stream.close(CANCEL),
    };
  }

  tell(news: LinkNews): void {
    this.#news.add(news);
    this.#deliver();
  }

  /** Sends waiting news together, when those before have arrived: news keep their order. */
  #deliver(): void {
    const ready = this.#open;
    if (!ready || this.#delivering || this.#news.empty) return;
    this.#delivering = true;
    const { clock, listener } = this.#options;
    // After this turn, so that the news of one turn are one text.
    clock.soon(() => {
      if (this.#open !== ready) return;
      if (this.#news.takeDropped()) listener.dropped(this.#peer.node);
      const stream = send(ready, '/news', Buffer.from(this.#news.portion()));
      let received = false;
      stream.once('response', () => {
        received = true;
        stream.resume();
      });
      const next = (): void => {
        // A link that has closed sends them again when it is back.
        if (this.#open !== ready) return;
        this.#delivering = false;
        this.#deliver();
      };
      stream.once('close', () => {
        if (this.#open === ready && received) this.#news.received();
        if (received) next();
        // The peer has no room for them now.
        else clock.after(RETRY_MS, next);
      });
    });
  }
}

/** Sends a signed text. */
function send({ session, sends }: Ready, path: string, bytes: Buffer): ClientHttp2Stream & { number?: number } {
  const number = sends?.next() ?? 0;
  const headers = sends ? { [SIGNATURE]: `${number}.${sends.sign(number, path, bytes)}` } : {};
  const stream = session.request({ ':method': 'POST', ':path': path, ...headers });
  stream.on('error', ignore);
  stream.end(bytes);
  return Object.assign(stream, { number });
}

/** The response to one exchange. */
class Answer {
  readonly #listener: ForwardListener;
  #begun = false;
  #over = false;

  constructor(ready: Ready, stream: ClientHttp2Stream & { number?: number }, listener: ForwardListener) {
    this.#listener = listener;
    const { receives, session } = ready;
    const { number = 0 } = stream;
    const trusted = (head: string, signature: unknown, ...body: readonly Uint8Array[]): boolean => {
      if (!receives || receives.matches(signature, number, head, ...body)) return true;
      session.destroy();
      return false;
    };
    stream.once('response', (received) => {
      const { ':status': status = 500, ...headers } = received;
      const head = headText(status, headers);
      const signature = headers[SIGNATURE];
      const own = ownHeaders(headers);
      if (headers[WHOLE] === undefined) {
        if (!trusted(head, signature)) return;
        this.#begun = true;
        listener.begun(status, own);
        stream.setEncoding('utf8');
        return void stream.on('data', (text: string) => {
          const last = text.endsWith(STREAM_END);
          if (!listener.text(last ? text.slice(0, -STREAM_END.length) : text)) stream.pause();
          if (last) this.#end(() => listener.ended());
        });
      }
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.once('end', () => {
        const body = Buffer.concat(chunks);
        if (body.length !== Number(headers[WHOLE]) || !trusted(head, signature, body)) return;
        if (headers[NOT_MINE] !== undefined) return this.#fail('not mine');
        this.#end(() => listener.whole(status, own, body.length === 0 ? undefined : body.toString('utf8')));
      });
    });
    stream.once('close', () => this.#fail(this.#begun ? 'cut' : stream.rstCode === TOO_MUCH ? 'full' : 'lost'));
  }

  #end(act: () => void): void {
    if (this.#over) return;
    this.#over = true;
    act();
  }

  #fail(failure: LinkFailure): void {
    this.#end(() => this.#listener.failed(failure));
  }
}

/** ENHANCE_YOUR_CALM (RFC 9113 section 7): the peer receives too much. */
const TOO_MUCH = 11;

/** The headers that the owner has sent to the client. */
function ownHeaders(headers: IncomingHttpHeaders): Record<string, string | readonly string[]> {
  const own: Record<string, string | readonly string[]> = {};
  for (const [name, value] of Object.entries(headers))
    if (value !== undefined && !OF_LINK.has(name) && !name.startsWith(':')) own[name] = value;
  return own;
}

const OF_LINK: ReadonlySet<string> = new Set([SIGNATURE, NOT_MINE, WHOLE, 'date']);
const NOTHING_SENT: Forwarding = { resume: ignore, cancel: ignore };

function ignore(): void {}
