/**
 * A request that another node serves, because it owns the cell: the entry forwards it, copies the response, and sends it
 * again if the owner has died and that is safe.
 */
import type { Timer } from '../kernel/clock.ts';
import { isExcess, type Reservation } from '../kernel/quota.ts';
import type { ConnectionId } from '../messages/connection-events.ts';
import type { Hop, HopEnd, HopRecords } from '../messages/hop-records.ts';
import { ErrorCode, type ErrorCodeValue } from '../protocol/errors.ts';
import { heapBytes } from '../protocol/heap.ts';
import type { TransportHost } from '../transports/transport.ts';
import type { HostRefusal } from './host-guard.ts';
import type { Headers, HttpRequest } from './http-message.ts';
import { OpenResponse } from './open-responses.ts';
import type {
  CellPlace,
  ForwardedExchange,
  Forwarding,
  ForwardListener,
  LinkFailure,
  NodeEntry,
} from './other-nodes.ts';
import { EventMessages } from './sse.ts';

/** The headers that the endpoint and the core read. Credentials stay at the entry, which has authenticated the caller. */
const READ: ReadonlySet<string> = new Set([
  ...['accept', 'content-type', 'last-event-id', 'origin', 'user-agent'],
  ...['traceparent', 'tracestate', 'baggage'],
]);
/** Milliseconds before another attempt, at first and at most. */
const PAUSE_MS = 10;
const MAX_PAUSE_MS = 160;
/** Characters up to which a text counts by the number of exchanges alone. */
const SMALL_TEXT = 16_384;

const UNREACHABLE: HostRefusal = {
  status: 503,
  message: 'the node that serves this request cannot be reached now. Retry later',
};
const FULL: HostRefusal = {
  status: 503,
  message: 'the node that serves this request has too many requests. Retry later',
};
const UNKNOWN: HostRefusal = {
  status: 500,
  message: 'a node that served this request ended. The request may or may not have run; its outcome is unknown',
};

/** One request, and the continuation for the case that its cell belongs to this node by then. */
export interface Misplaced {
  readonly request: HttpRequest;
  readonly principal: string;
  readonly cell: number;
  /** The body; empty for a GET and a DELETE. */
  readonly text: string;
  /** True if it may be sent to the next owner although the first one may have served it. */
  readonly repeatable: boolean;
  /** Serves it here. */
  here(): void;
}

/** The other nodes, as one endpoint reaches them. */
export interface EndpointNodes {
  readonly nodes: NodeEntry;
  /** The number of this endpoint. */
  readonly endpoint: number;
  readonly hops: HopRecords;
}

export interface ForwardingHost extends EndpointNodes {
  readonly host: TransportHost;
  /** The connection that all clients without a session share. */
  readonly connection: () => ConnectionId;
  readonly refuse: (request: HttpRequest, refusal: HostRefusal, code?: ErrorCodeValue) => void;
  /** True while this node asks its clients to open other connections. */
  readonly leaving: () => boolean;
  /** The response of a request has begun. */
  readonly begun: () => void;
  /** The request continues at this node. */
  readonly stayed: (forwarded: ForwardedRequest) => void;
  /** Its response has closed. */
  readonly over: (forwarded: ForwardedRequest) => void;
}

export class ForwardedRequest extends OpenResponse implements ForwardListener {
  readonly misplaced: Misplaced;
  readonly #host: ForwardingHost;
  readonly #deadline: number;
  #pauseMs = PAUSE_MS;
  #pause: Timer | undefined;
  #forwarding: Forwarding | undefined;
  #held: Reservation | undefined;
  #streams = false;
  /** The owners were read again for a request that another node has sent here. */
  #confirmed = false;
  /** The record of the client's message; 0 without a viewer. */
  #message: number;
  /** The last hop to an owner. */
  #hop: Hop | undefined;
  #end: HopEnd = 'left';
  /** The messages of a stream, for a viewer. */
  #messages: EventMessages | undefined;

  constructor(misplaced: Misplaced, host: ForwardingHost) {
    // The owner ends a stream whose caller is no longer authenticated.
    super(misplaced.request.response, Number.POSITIVE_INFINITY);
    this.misplaced = misplaced;
    this.#host = host;
    this.#deadline = host.host.clock.now() + host.nodes.waitMs;
    this.#message = host.hops.cause;
  }

  /** True until its response begins. A GET waits for a stream, which its client opens again at another node. */
  get unanswered(): boolean {
    return !this.gone && !this.#streams && this.misplaced.request.method !== 'GET';
  }

  /** Finds the owner, and forwards the request to it. */
  begin(): void {
    this.response.listener = this;
    this.#go(this.#host.nodes.placeOf(this.misplaced.cell));
  }

  #go(place: CellPlace): void {
    const { request, here } = this.misplaced;
    if (this.gone) return;
    if (this.response.gone) return this.closed();
    switch (place.at) {
      case 'here':
        this.#release();
        this.gone = true;
        this.#host.stayed(this);
        return here();
      case 'peer':
        // Never forwarded twice: its entry finds the owner.
        if (request.notMine) return this.#confirm(() => request.notMine?.());
        return this.#forward(place.peer.node);
      case 'nobody':
        return this.#settle();
    }
  }

  /** Reads the owners again, once: another node may have given the cell to this one since the last read. */
  #confirm(otherwise: () => void): void {
    if (this.#confirmed) return otherwise();
    this.#confirmed = true;
    this.#settle();
  }

  #settle(): void {
    const { host, nodes } = this.#host;
    const left = this.#deadline - host.clock.now();
    if (this.gone) return;
    if (left <= 0) return this.#refuse(UNREACHABLE);
    nodes
      .settle(this.misplaced.cell, left)
      .then(
        (place) => (place.at === 'nobody' ? this.#again() : this.#go(place)),
        () => this.#refuse(UNREACHABLE),
      )
      .catch((error: unknown) => {
        host.bus.emit('fault', { where: 'forwarding a request', error });
        this.response.destroy();
      });
  }

  /** Tries again after a pause, until the deadline. */
  #again(): void {
    const { clock } = this.#host.host;
    if (clock.now() + this.#pauseMs >= this.#deadline) return this.#refuse(UNREACHABLE);
    this.#pause = clock.after(this.#pauseMs, () => this.#settle());
    this.#pauseMs = Math.min(2 * this.#pauseMs, MAX_PAUSE_MS);
  }

  #forward(node: string): void {
    const { host, nodes } = this.#host;
    const { text, principal } = this.misplaced;
    if (text.length > SMALL_TEXT && !this.#held) {
      const held = host.retained.reserve(principal, heapBytes(text));
      if (isExcess(held)) return this.#refuse({ ...FULL, message: `${held.message}. Retry later, or send less` });
      this.#held = held;
    }
    const forwarding = nodes.link.forward(node, this.#exchange(), this);
    // The forwarded request may have failed at once, or its client may have disconnected.
    if (this.gone) forwarding.cancel();
    else if (!this.#pause) this.#forwarding = forwarding;
    if (forwarding.number !== undefined && text !== '' && !this.gone) this.#sent({ node, number: forwarding.number });
  }

  #sent(hop: Hop): void {
    const { hops, connection } = this.#host;
    this.#hop = hop;
    this.#message = hops.sent(connection(), this.misplaced.text, this.#message, hop);
  }

  #exchange(): ForwardedExchange {
    const { request, cell, text } = this.misplaced;
    const { method, url, auth, remoteAddress } = request;
    const { endpoint, nodes } = this.#host;
    const headers = request.pick(isRead);
    return { endpoint, method, url, headers, auth, remoteAddress, cell, deadlineMs: nodes.waitMs, text };
  }

  whole(status: number, headers: Headers, body: string | undefined): void {
    // A cancellation after the end would reset the stream of the exchange at both nodes.
    this.#forwarding = undefined;
    this.#end = 'answered';
    if (this.#message !== 0 && body !== undefined)
      this.#host.hops.message(this.#host.connection(), body, this.#message);
    if (!this.gone) this.response.send(status, this.#ofConnection(headers), body);
  }

  /** Adds the header about the client's connection, which is the entry's. */
  #ofConnection(headers: Headers): Headers {
    return this.#host.leaving() ? { ...headers, connection: 'close' } : headers;
  }

  begun(status: number, headers: Headers): void {
    this.#streams = true;
    if (!this.gone) this.response.begin(status, this.#ofConnection(headers));
    this.#host.begun();
  }

  text(text: string): boolean {
    if (this.#message !== 0) this.#record(text);
    return this.gone || this.response.write(text);
  }

  #record(text: string): void {
    const { hops, connection } = this.#host;
    this.#messages ??= new EventMessages();
    for (const message of this.#messages.add(text)) hops.message(connection(), message, this.#message);
  }

  ended(): void {
    this.#forwarding = undefined;
    this.#end = 'answered';
    if (!this.gone) this.response.end();
  }

  failed(failure: LinkFailure): void {
    this.#forwarding = undefined;
    if (this.gone) return;
    if (failure !== 'not mine') this.#end = failure;
    switch (failure) {
      case 'full':
        return this.#refuse(FULL);
      case 'unreachable':
      case 'not mine':
        return this.#again();
      case 'lost':
        return this.misplaced.repeatable ? this.#again() : this.#refuse(UNKNOWN, ErrorCode.InternalError);
      case 'cut':
        return this.response.destroy();
    }
  }

  override drained(): void {
    super.drained();
    this.#forwarding?.resume();
  }

  /** The client has disconnected, or has received everything. */
  closed(): void {
    if (this.gone) return;
    this.gone = true;
    this.#host.host.metrics.forwarded(this.#end);
    if (this.#hop && this.#message !== 0) this.#host.hops.ended(this.#message, this.#hop, this.#end);
    this.#release();
    this.#forwarding?.cancel();
    this.#host.over(this);
  }

  #release(): void {
    this.#pause?.cancel();
    this.#held?.release();
    this.#held = undefined;
  }

  #refuse(refusal: HostRefusal, code: ErrorCodeValue = ErrorCode.Overloaded): void {
    if (this.#end === 'left') this.#end = refusal === UNREACHABLE ? 'unreachable' : 'full';
    if (!this.gone) this.#host.refuse(this.misplaced.request, refusal, code);
  }

  /** The owner keeps a silent stream open. */
  protected override keepAlive(): void {}

  expire(): void {}

  /** This node closes: ends a stream, which its client opens again at another node. */
  end(): void {
    if (this.gone) return;
    const { request, repeatable } = this.misplaced;
    if (this.#streams) this.response.end();
    // Its entry finds the owner.
    else if (request.notMine) request.notMine();
    // The owner may have served it: 503 would invite the client to repeat it.
    else if (this.#forwarding && !repeatable) this.#refuse(UNKNOWN, ErrorCode.InternalError);
    else this.#refuse(UNREACHABLE);
  }
}

function isRead(name: string): boolean {
  return READ.has(name) || name.startsWith('mcp-');
}
