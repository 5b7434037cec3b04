/** The link to one other node: connects, proves itself, forwards exchanges, delivers news, and connects again. */

import type { ClientHttp2Session, ClientHttp2Stream, IncomingHttpHeaders } from 'node:http2';
import type { ForwardedExchange, Forwarding, ForwardListener, LinkNews } from '../../../core/http/other-nodes.ts';
import type { Clock, Timer } from '../../../core/kernel/clock.ts';
import { durationOf } from '../../../core/kernel/duration.ts';
import { messageOf } from '../../../core/protocol/json.ts';
import { InFlightTable } from '../../../core/requests/in-flight-table.ts';
import { type AnsweredBy, ForwardedAnswer } from './forwarded-answer.ts';
import { LINK_WINDOW, LinkChannel, type LinkRecords, MAX_HEAD_BYTES, RECORD } from './link-channel.ts';
import { CreditedBody } from './link-credit.ts';
import { isLinkProof, LinkSignature, type LinkTerms, linkProof, newNonce, nonceIn } from './link-handshake.ts';
import type { LinkListener, LinkPeer } from './link-port.ts';
import { headText, responseHeads } from './link-text.ts';
import { NewsQueue } from './news-queue.ts';

/** Milliseconds in which a peer must accept a connection and prove itself. */
const CONNECT_MS = 3_000;
/** Milliseconds between two pings, and in which a ping must return. A blocked event loop of 1.5 s is no failure. */
const PING_MS = 1_000;
const PONG_MS = 5_000;
/** The first and the longest pause before another attempt, in milliseconds. */
const RETRY_MS = 50;
const MAX_RETRY_MS = 1_000;

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

export class DialedLink {
  readonly #self: string;
  readonly #peer: LinkPeer;
  readonly #options: DialedLinkOptions;
  #dialed: OpenLink | undefined;
  #session: ClientHttp2Session | undefined;
  #timer: Timer | undefined;
  #retryMs = RETRY_MS;
  /** The reason why the last attempt failed, or the link closed. */
  #failure: string | undefined;
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

  /** The reason why it is not ready. */
  get failure(): string | undefined {
    return this.ready ? undefined : (this.#failure ?? 'it has not answered yet');
  }

  get #open(): OpenLink | undefined {
    return this.#dialed?.usable ? this.#dialed : undefined;
  }

  #connect(): void {
    const { clock, connect } = this.#options;
    let session: ClientHttp2Session;
    try {
      session = connect(this.#peer.address);
    } catch (error) {
      // The address comes from the database, where a node of another version has written it.
      this.#failure = messageOf(error);
      return this.#lost();
    }
    this.#session = session;
    this.#timer = clock.after(CONNECT_MS, () => this.#end(session, `no answer within ${durationOf(CONNECT_MS)}`));
    session.on('error', (error) => {
      this.#failure = messageOf(error);
    });
    session.once('close', () => this.#lost());
    session.once('connect', () => this.#greet(session));
  }

  #end(session: ClientHttp2Session, why: string): void {
    this.#failure = why;
    session.destroy();
  }

  /** Proves itself and checks the proof of the peer. Only then is anything sent. */
  #greet(session: ClientHttp2Session): void {
    const { secret } = this.#options;
    this.#failure = 'another server has this address, or only one of the nodes uses TLS';
    const [dialer, listener, dialerNonce] = [this.#self, this.#peer.node, newNonce()];
    const hello = { 'link-from': dialer, 'link-to': listener, 'link-nonce': dialerNonce };
    this.#ask(session, '/hello', hello, (headers, stream) => {
      stream.resume();
      const listenerNonce = nonceIn(headers['link-nonce']);
      if (listenerNonce === undefined) return session.destroy();
      const terms: LinkTerms = { dialer, listener, dialerNonce, listenerNonce };
      if (!isLinkProof(headers['link-proof'], secret, 'listener', terms))
        return this.#end(session, 'the nodes have different secrets (TROUPE_CLUSTER_SECRET or cluster.secret)');
      this.#failure = 'it did not accept this node';
      const proof = { ':method': 'POST', 'link-proof': linkProof(secret, 'dialer', terms) };
      this.#ask(session, '/link', proof, (_headers, stream) => this.#opened(session, stream, terms));
    });
  }

  #opened(session: ClientHttp2Session, stream: ClientHttp2Stream, terms: LinkTerms): void {
    const { secret, secure, maxExchanges, listener } = this.#options;
    this.#dialed = new OpenLink({
      ...{ session, stream, maxExchanges },
      sends: secure ? undefined : new LinkSignature(secret, 'dialer', terms),
      receives: secure ? undefined : new LinkSignature(secret, 'listener', terms),
      received: (received) => this.#received(received),
    });
    session.settings({ initialWindowSize: LINK_WINDOW });
    session.setLocalWindowSize(LINK_WINDOW);
    this.#retryMs = RETRY_MS;
    this.#failure = 'the link has closed';
    this.#timer?.cancel();
    this.#ping(session);
    this.#deliver();
    listener.opened(this.#peer.node);
  }

  #ask(
    session: ClientHttp2Session,
    path: string,
    headers: Readonly<Record<string, string>>,
    done: (headers: IncomingHttpHeaders, stream: ClientHttp2Stream) => void,
  ): void {
    // A session that was destroyed meanwhile still reports that it has connected, and then accepts no request.
    if (session.destroyed || session.closed) return;
    const stream = session.request({ ':path': path, ...headers });
    stream.on('error', ignore);
    stream.once('response', (answer) => {
      if (Number(answer[':status']) < 300) done(answer, stream);
      else session.destroy();
    });
  }

  #ping(session: ClientHttp2Session): void {
    if (session.destroyed || this.#closed) return;
    const { clock } = this.#options;
    const late = clock.after(PONG_MS, () => this.#end(session, `no answer within ${durationOf(PONG_MS)}`));
    session.ping(() => {
      late.cancel();
      if (!session.destroyed) this.#timer = clock.after(PING_MS, () => this.#ping(session));
    });
  }

  #lost(): void {
    this.#dialed?.closed();
    this.#dialed = undefined;
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
    const link = this.#open;
    if (link) return link.forward(exchange, listener);
    listener.failed('unreachable');
    return NOTHING_SENT;
  }

  tell(news: LinkNews): void {
    this.#news.add(news);
    this.#deliver();
  }

  /** Sends waiting news together, when those before have arrived: news keep their order. */
  #deliver(): void {
    const link = this.#open;
    if (!link || this.#delivering || this.#news.empty) return;
    this.#delivering = true;
    const { clock, listener } = this.#options;
    // After this turn, so that the news of one turn are one text.
    clock.soon(() => {
      if (this.#open !== link) return;
      if (this.#news.takeDropped()) listener.dropped(this.#peer.node);
      link.tell(this.#news.portion());
    });
  }

  /** The peer has received the news, or has no room for them now. */
  #received(received: boolean): void {
    const next = (): void => {
      this.#delivering = false;
      this.#deliver();
    };
    if (received) {
      this.#news.received();
      return next();
    }
    const link = this.#dialed;
    // A link that has closed sends them again when it is back.
    this.#options.clock.after(RETRY_MS, () => this.#dialed === link && next());
  }
}

interface OpenLinkOptions {
  readonly session: ClientHttp2Session;
  readonly stream: ClientHttp2Stream;
  readonly sends: LinkSignature | undefined;
  readonly receives: LinkSignature | undefined;
  readonly maxExchanges: number;
  /** Reports the end of the news that were sent. @param received false: the peer has no room for them now */
  received(received: boolean): void;
}

/** A link that has proved itself: the exchanges and the news on their way. */
class OpenLink implements LinkRecords, AnsweredBy {
  readonly channel: LinkChannel;
  readonly heads = responseHeads();
  readonly #options: OpenLinkOptions;
  readonly #answers = new InFlightTable<ForwardedAnswer>(({ number }) => number);
  /** Bodies that wait for credit. */
  readonly #bodies = new Map<number, CreditedBody>();
  #lastNumber = 0;
  /** The number of the news that the peer receives. */
  #news: number | undefined;
  /** The peer serves no more exchanges. */
  #left = false;

  constructor(options: OpenLinkOptions) {
    const { session, stream, sends, receives } = options;
    this.#options = options;
    this.channel = new LinkChannel({ stream, sends, receives, records: this });
    stream.once('end', () => session.destroy());
    stream.once('close', () => session.destroy());
  }

  /** A session that is destroyed reports that later. */
  get usable(): boolean {
    const { session } = this.#options;
    return !session.destroyed && !session.closed && !this.#left;
  }

  forward(exchange: ForwardedExchange, listener: ForwardListener): Forwarding {
    const { text, ...rest } = exchange;
    const head = headText(rest);
    if (this.#answers.size >= this.#options.maxExchanges || this.channel.full || 3 * head.length > MAX_HEAD_BYTES) {
      listener.failed('full');
      return NOTHING_SENT;
    }
    this.#lastNumber += 1;
    const number = this.#lastNumber;
    const answer = new ForwardedAnswer(number, this, listener);
    this.#answers.add(answer);
    this.channel.add(RECORD.exchange, number, head, text === '');
    if (text !== '') this.#send(number, text);
    return answer;
  }

  tell(portion: string): void {
    this.#lastNumber += 1;
    this.#news = this.#lastNumber;
    this.channel.add(RECORD.news, this.#news, '', false);
    this.#send(this.#news, portion);
  }

  #send(number: number, text: string): void {
    const body = new CreditedBody(this.channel, number);
    body.send(text, true);
    if (!body.ended) this.#bodies.set(number, body);
  }

  record(kind: number, number: number, content: Buffer, last: boolean): void {
    switch (kind) {
      case RECORD.credit:
        return this.#renew(number, Number(content.toString()));
      case RECORD.leaving:
        this.#left = true;
        for (const answer of this.#answers.all()) if (answer.number > number) answer.fail('unreachable');
        return;
    }
    if (number === this.#news) {
      this.#news = undefined;
      this.#bodies.delete(number);
      return this.#options.received(kind === RECORD.received);
    }
    // Records of a cancelled exchange may still arrive.
    if (this.#answers.get(number)?.record(kind, content, last) === false) this.broken();
  }

  #renew(number: number, bytes: number): void {
    const body = this.#bodies.get(number);
    body?.renew(bytes);
    if (body?.ended) this.#bodies.delete(number);
  }

  ended(answer: ForwardedAnswer): void {
    this.#answers.delete(answer);
    this.#bodies.delete(answer.number);
  }

  flushed(): void {}

  broken(): void {
    this.#options.session.destroy();
  }

  closed(): void {
    for (const answer of this.#answers.all()) answer.fail('lost');
  }
}

const NOTHING_SENT: Forwarding = { resume: ignore, cancel: ignore };

function ignore(): void {}
