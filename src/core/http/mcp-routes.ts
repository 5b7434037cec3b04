/** Routes POST, GET and DELETE to a session, a stream or the shared connection. */

import type { Quota } from '../kernel/quota.ts';
import { cellIn } from '../protocol/cell.ts';
import { ErrorCode, type ErrorCodeValue } from '../protocol/errors.ts';
import { messageOf } from '../protocol/json.ts';
import type { RequestId } from '../protocol/jsonrpc.ts';
import { isLegacyRevision, isModernRevision, SUPPORTED_REVISIONS } from '../protocol/revisions.ts';
import type { TransportHost } from '../transports/transport.ts';
import { EVENT_STREAM } from './event-stream.ts';
import type { EndpointNodes, ForwardingHost } from './forwarded-request.ts';
import type { HostRefusal } from './host-guard.ts';
import type { HttpAuthenticator } from './http-authenticator.ts';
import { HttpConnections } from './http-connections.ts';
import type { Body, BodyFault, CommonHeaders, Headers, HttpRequest } from './http-message.ts';
import type { ResolvedHttpOptions } from './http-options.ts';
import type { HttpSession } from './http-session.ts';
import { HTTP_METHODS, STREAM } from './methods-of-paths.ts';
import { type Accepted, accepts, asksForEvents, BOTH, contentFault, shown } from './negotiate.ts';

/** The headers that the official clients send with a POST: they are compared, not read. */
const USUAL_TYPE = 'application/json';
const USUAL_ACCEPT = 'application/json, text/event-stream';

/** Rejects a request, and provides the headers of every response. */
export interface RouteAnswers extends CommonHeaders {
  refuse(request: HttpRequest, refusal: HostRefusal, code?: ErrorCodeValue, id?: RequestId): void;
}

/** An open endpoint: its connections, and the routes to them. */
export interface OpenRoutes {
  readonly host: TransportHost;
  readonly connections: HttpConnections;
  readonly routes: McpRoutes;
}

/** Opens the connections of an endpoint. It loads this module when it opens: a server without HTTP does not. */
export function openRoutes(
  host: TransportHost,
  options: ResolvedHttpOptions,
  exchanges: Quota,
  answers: RouteAnswers & Pick<ForwardingHost, 'leaving' | 'refuse'>,
  authenticator: HttpAuthenticator | undefined,
  cluster: EndpointNodes | undefined,
): OpenRoutes {
  const connections = new HttpConnections(options, exchanges, host, answers, authenticator, cluster);
  return { host, connections, routes: new McpRoutes(connections, exchanges, answers) };
}

/** Callers have counted one exchange for each POST and GET; a rejection gives it back. */
export class McpRoutes {
  readonly #connections: HttpConnections;
  readonly #exchanges: Quota;
  readonly #answers: RouteAnswers;

  constructor(connections: HttpConnections, exchanges: Quota, answers: RouteAnswers) {
    this.#connections = connections;
    this.#exchanges = exchanges;
    this.#answers = answers;
  }

  post(request: HttpRequest, query: string, principal: string): void {
    const type = request.header('content-type');
    const encoding = request.header('content-encoding');
    const fault = type === USUAL_TYPE && encoding === undefined ? undefined : contentFault(type, encoding);
    if (fault !== undefined) return this.#refuse(request, principal, 415, fault);
    const accept = request.header('accept');
    const accepted = accept === USUAL_ACCEPT ? BOTH : accepts(accept);
    if (!accepted.json && !accepted.sse) {
      const expected = 'Accept: expected application/json and text/event-stream';
      return this.#refuse(request, principal, 406, `${expected}, got ${shown(accept)}`);
    }
    const old = STREAM.exec(query)?.[1];
    request.body(this.#connections.host, principal, (body: Body) => {
      if ('fault' in body) return this.#unread(request, body, principal);
      const { text } = body;
      const cell = this.#connections.nodes && cellOfPost(request, old);
      if (cell === undefined || !this.#connections.isElsewhere(cell))
        return this.#postHere(request, text, accepted, old, principal);
      this.#connections.forward({
        ...{ request, principal, cell, text },
        // A message for a stream of 2024-11-05 has no stored reply.
        repeatable: old === undefined,
        here: () => this.#postHere(request, text, accepted, old, principal),
      });
    });
  }

  /** Rejects a POST or a GET. */
  #refuse(
    request: HttpRequest,
    principal: string,
    status: number,
    message: string,
    code?: ErrorCodeValue,
    headers?: Headers,
  ): void {
    this.#exchanges.remove(principal);
    this.#answers.refuse(request, headers ? { status, message, headers } : { status, message }, code);
  }

  #postHere(request: HttpRequest, text: string, accepted: Accepted, old: string | undefined, principal: string): void {
    if (old !== undefined) {
      this.#exchanges.remove(principal);
      if (this.#connections.oldText(old, principal, text, request.auth))
        return request.response.send(202, this.#answers.headers(request) ?? {}, undefined);
      return this.#answers.refuse(request, { status: 404, message: 'unknown stream. Open one with GET' });
    }
    const id = request.header('mcp-session-id');
    const revision = request.header('mcp-protocol-version');
    const session = id === undefined ? undefined : this.#connections.session(id, principal);
    // Nearly all requests of a session name its revision.
    if (session && revision === session.dialect.revision)
      return this.#connections.post(request, text, accepted, principal, session);
    // A modern request has no session: the header is ignored (2026-07-28 streamable-http, "Earlier Streamable HTTP Revisions").
    if (id === undefined || isModernRevision(revision))
      return this.#connections.post(request, text, accepted, principal, undefined);
    if (session) return this.#postTo(session, request, text, accepted);
    this.#wake(
      request,
      principal,
      (restored) => this.#postTo(restored, request, text, accepted),
      (status, message, code) => this.#refuse(request, principal, status, message, code),
    );
  }

  #postTo(session: HttpSession, request: HttpRequest, text: string, accepted: Accepted): void {
    const { principal } = session;
    const revision = request.header('mcp-protocol-version');
    if (revision === undefined || isLegacyRevision(revision))
      this.#connections.post(request, text, accepted, principal, session);
    else this.#refuse(request, principal, 400, unsupported(revision));
  }

  /** Finds the stored session that a request names, if it is not in memory. */
  #wake(
    request: HttpRequest,
    principal: string,
    found: (session: HttpSession) => void,
    refuse: (status: number, message: string, code?: ErrorCodeValue) => void,
  ): void {
    const { waking: all } = this.#connections;
    // While the server closes and all sessions leave, a missing session may still be open.
    const none = (): void =>
      all.closed ? refuse(503, 'this server is closed', ErrorCode.ShuttingDown) : refuse(404, NO_SESSION);
    const waking = all.wake(request.header('mcp-session-id') ?? '', principal);
    if (!waking) return none();
    waking
      .then(
        // Two requests at once both restore it; and a session in memory is not stored as hibernating.
        (restored) => restored ?? this.#connections.session(request.header('mcp-session-id') ?? '', principal),
        (error: unknown) => {
          // The store is closed by then, too.
          if (all.closed) return undefined;
          this.#connections.host.log('error', `http: cannot look up a session: ${messageOf(error)}`);
          refuse(503, 'the server cannot look up this session because its store is failing. Retry later');
          return null;
        },
      )
      .then((session) => {
        if (session === 'damaged') refuse(500, DAMAGED);
        else if (session) found(session);
        else if (session === undefined) none();
      })
      .catch((error: unknown) => {
        this.#connections.host.bus.emit('fault', { where: 'waking a session', error });
        request.response.destroy();
      });
  }

  #unread(request: HttpRequest, body: BodyFault, principal: string): void {
    const { host } = this.#connections;
    const refuse = (status: number, message: string, code: ErrorCodeValue): void =>
      this.#refuse(request, principal, status, message, code);
    switch (body.fault) {
      case 'cut':
        this.#exchanges.remove(principal);
        return request.response.destroy();
      case 'too long': {
        this.#exchanges.remove(principal);
        const message = `the body exceeds ${host.maxMessageBytes} bytes (limits.maxMessageBytes)`;
        const id = body.start === undefined ? undefined : host.idIn(body.start);
        const refusal = { status: 413, message, headers: { connection: 'close' } };
        return this.#answers.refuse(request, refusal, ErrorCode.InvalidRequest, id);
      }
      case 'no room':
        return refuse(503, `${body.why}. Retry later, or send less`, ErrorCode.Overloaded);
      case 'not UTF-8':
        return refuse(400, 'the body is not valid UTF-8', ErrorCode.ParseError);
      case 'read already': {
        const message = 'the body was already read. Mount server.node or server.fetch before any body parser';
        return refuse(500, message, ErrorCode.InternalError);
      }
    }
  }

  get(request: HttpRequest, principal: string): void {
    const refuse = (status: number, message: string, code?: ErrorCodeValue, headers?: Headers): void =>
      this.#refuse(request, principal, status, message, code, headers);
    const id = request.header('mcp-session-id');
    const revision = request.header('mcp-protocol-version');
    const accept = request.header('accept');
    if (isModernRevision(revision))
      return refuse(405, `revision ${revision} has no GET: expected POST`, undefined, { allow: HTTP_METHODS });
    if (!asksForEvents(accept)) return refuse(406, expectedEvents(accept));
    if (id === undefined) {
      if (revision !== undefined && !isLegacyRevision(revision)) return refuse(400, unsupported(revision));
      // Only streams of a session have events with ids.
      if (request.header('last-event-id') !== undefined)
        return refuse(400, 'Mcp-Session-Id: expected the id from the response to "initialize", got none');
      // A client of Streamable HTTP has a session before it sends a GET, and names it. A GET without a session is
      // HTTP+SSE, even if it names a revision: some clients send that header on either transport.
      return this.#openOld(request, principal);
    }
    const serve = (): void => {
      const session = this.#connections.session(id, principal);
      if (session) return this.#getOf(session, request, refuse);
      this.#wake(request, principal, (restored) => this.#getOf(restored, request, refuse), refuse);
    };
    this.#atOwner(request, principal, cellIn(id), serve);
  }

  /** Serves a request without a body here, or at the owner of its cell. */
  #atOwner(request: HttpRequest, principal: string, cell: number | undefined, serve: () => void): void {
    if (!this.#connections.isElsewhere(cell)) return serve();
    this.#connections.forward({ request, principal, cell, text: '', repeatable: true, here: serve });
  }

  /**
   * A GET of the path that serves HTTP+SSE. Its headers for a session or a revision belong to another transport and are
   * ignored.
   */
  getOld(request: HttpRequest, principal: string): void {
    const accept = request.header('accept');
    if (asksForEvents(accept)) return this.#openOld(request, principal);
    this.#refuse(request, principal, 406, expectedEvents(accept));
  }

  #openOld(request: HttpRequest, principal: string): void {
    this.#connections.openOld(request, principal, this.#answers.headers(request) ?? {});
  }

  #getOf(session: HttpSession, request: HttpRequest, refuse: (status: number, message: string) => void): void {
    const revision = request.header('mcp-protocol-version');
    if (revision !== undefined && !isLegacyRevision(revision)) return refuse(400, unsupported(revision));
    // The client may have disconnected while the session was read.
    if (request.response.gone) return this.#exchanges.remove(session.principal);
    const headers = { ...EVENT_STREAM, ...this.#answers.headers(request), 'mcp-session-id': session.id };
    const lastEventId = request.header('last-event-id');
    if (lastEventId === undefined) {
      if (!this.#connections.listen(request, session, headers))
        refuse(
          409,
          'this session already has the maximum number of GET streams; each message goes to one of them only',
        );
      return;
    }
    const resume = (): void => this.#resume(session, request, lastEventId, headers, refuse);
    const fetching = session.bringBack(lastEventId, this.#connections.host.clock.now(), request);
    if (!fetching) return resume();
    session.busy += 1;
    fetching
      .finally(() => {
        session.busy -= 1;
      })
      .then(resume, (error: unknown) => {
        this.#connections.host.log('error', `http: cannot look up a stream: ${messageOf(error)}`);
        refuse(503, 'the server cannot replay this stream because its store is failing. Retry later');
      });
  }

  #resume(
    session: HttpSession,
    request: HttpRequest,
    lastEventId: string,
    headers: Headers,
    refuse: (status: number, message: string) => void,
  ): void {
    const { principal } = session;
    // The client may have disconnected while the stream was read.
    if (request.response.gone) return this.#exchanges.remove(principal);
    switch (this.#connections.resume(request, session, lastEventId, headers)) {
      case 'the rest':
        return;
      case 'no more':
        // WHATWG HTML, "Server-sent events": 204 stops a client from reconnecting, which it would do after a stream
        // without events.
        this.#exchanges.remove(principal);
        return request.response.send(204, this.#answers.headers(request) ?? {}, undefined);
      case 'unknown':
        return refuse(
          404,
          'Last-Event-ID: unknown event of this session, or later events have expired (http.maxReplayEvents, http.maxReplayBytes, http.replayMs). Open a new session with "initialize"',
        );
    }
  }

  delete(request: HttpRequest, principal: string): void {
    const id = request.header('mcp-session-id');
    if (isModernRevision(request.header('mcp-protocol-version')))
      return this.#answers.refuse(request, {
        status: 405,
        message: 'this revision has no sessions. Expected POST',
        headers: { allow: HTTP_METHODS },
      });
    if (id === undefined)
      return this.#answers.refuse(request, {
        status: 400,
        message: 'Mcp-Session-Id: expected the id of the session to end, got none',
      });
    const revision = request.header('mcp-protocol-version');
    const refuse = (status: number, message: string): void => this.#answers.refuse(request, { status, message });
    const end = (session: HttpSession): void => {
      if (revision !== undefined && !isLegacyRevision(revision)) return refuse(400, unsupported(revision));
      this.#connections.end(session, 'ended by the client');
      const ended = (): void => request.response.send(204, this.#answers.headers(request) ?? {}, undefined);
      // Respond only when the end is durable, so that no restart revives the session; otherwise the client learns that
      // it may return.
      if (session.keeper)
        session.keeper.gate(ended, (why) =>
          refuse(503, `the session has ended, but the store cannot persist that: ${why}`),
        );
      else ended();
    };
    this.#atOwner(request, principal, cellIn(id), () => {
      const session = this.#connections.session(id, principal);
      if (session) return end(session);
      this.#wake(request, principal, end, refuse);
    });
  }
}

/** The cell that the headers or the query of a POST name. Anything else is found out by the core, which parses the body. */
function cellOfPost(request: HttpRequest, stream: string | undefined): number | undefined {
  if (stream !== undefined) return cellIn(stream);
  if (!isModernRevision(request.header('mcp-protocol-version'))) return cellIn(request.header('mcp-session-id') ?? '');
  // Of the modern methods with an id in `Mcp-Name`, those of tasks name what lasts.
  return request.header('mcp-method')?.startsWith('tasks/') ? cellIn(request.header('mcp-name') ?? '') : undefined;
}

/** Never 404: the client would open another session and silently lose the data of this one. */
const DAMAGED =
  'Mcp-Session-Id: the stored data of this session is damaged. Nothing was done. Ask the operator to restore a backup';
const NO_SESSION =
  'Mcp-Session-Id: unknown session. It may have ended, or expired when idle (http.sessionIdleMs). Open a new one with "initialize"';

function expectedEvents(accept: string | undefined): string {
  if (/\btext\/html\b/i.test(accept ?? ''))
    return 'this address is an MCP server, and shows no page. Give it to an MCP client, or try it with `npx troupe call ADDRESS`';
  return `Accept: expected text/event-stream for a GET, got ${shown(accept)}`;
}

function unsupported(revision: string): string {
  return `MCP-Protocol-Version: expected one of ${SUPPORTED_REVISIONS.join(', ')}, got ${shown(revision)}`;
}
