/**
 * A load balancer that knows nothing of sessions: each request goes to the next node, or to the one after it if that one
 * refuses connections.
 */
import { once } from 'node:events';
import { Agent, createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';

export interface BalancerOptions {
  /**
   * Sends a request once more, to another node, if its node dies before the response begins, as `proxy_next_upstream error
   * non_idempotent` of nginx does. Otherwise such a request gets 502.
   */
  readonly resends?: boolean;
}

export interface BalancedRequest {
  readonly incoming: IncomingMessage;
  readonly body: Buffer;
}

/** A request on its way through the balancer. */
interface Passed extends BalancedRequest {
  readonly outgoing: ServerResponse;
  /** Whether it may be sent once more although a node may have served it. */
  readonly again: boolean;
}

export class Balancer {
  readonly port: number;
  /** The number of requests that were sent once more. */
  resent = 0;
  /** The requests whose responses broke after they had begun. */
  readonly broken: BalancedRequest[] = [];
  readonly #server: Server;
  readonly #ports: readonly number[];
  readonly #resends: boolean;
  /** A connection for each request: one that is used again may be closed by its node at that moment, which looks like a killed node. */
  readonly #agent = new Agent({ keepAlive: false });
  /** Nodes that its health check has taken out. */
  readonly #out = new Set<number>();
  #next = 0;

  private constructor(server: Server, port: number, ports: readonly number[], { resends = false }: BalancerOptions) {
    this.#server = server;
    this.port = port;
    this.#ports = ports;
    this.#resends = resends;
    server.on('request', (incoming: IncomingMessage, outgoing: ServerResponse) => void this.#pass(incoming, outgoing));
  }

  /** @param ports of the nodes, on 127.0.0.1 */
  static async open(ports: readonly number[], options: BalancerOptions = {}): Promise<Balancer> {
    const server = createServer();
    // A client that is late may send a request while the connection closes, which looks like a failed node.
    server.keepAliveTimeout = 0;
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    return new Balancer(server, address.port, ports, options);
  }

  /** Sends no request to this node any more, as after a health check without an answer. */
  takeOut(port: number): void {
    this.#out.add(port);
  }

  putBack(port: number): void {
    this.#out.delete(port);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    this.#agent.destroy();
    await once(this.#server, 'close');
  }

  async #pass(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
    // A connection that breaks while its request arrives has nobody to answer.
    const body = await buffer(incoming).catch(() => undefined);
    if (!body) return;
    const ports = this.#ports.filter((port) => !this.#out.has(port));
    this.#next += 1;
    const first = this.#next % ports.length;
    this.#try({ incoming, outgoing, body, again: this.#resends }, [...ports.slice(first), ...ports.slice(0, first)]);
  }

  #try(passed: Passed, [port, ...others]: readonly number[]): void {
    const { incoming, outgoing, body } = passed;
    const { method, url, headers } = incoming;
    const forward = request({ host: '127.0.0.1', port, method, path: url, headers, agent: this.#agent }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      // A stream may be silent for long after it has begun.
      outgoing.flushHeaders();
      answer.pipe(outgoing);
      // A node that died in the middle of a response breaks the client's connection, as a balancer does.
      answer.on('error', () => {
        this.broken.push(passed);
        outgoing.destroy();
      });
    });
    outgoing.on('close', () => forward.destroy());
    forward.on('error', (error) => {
      if (outgoing.destroyed || outgoing.headersSent) return void outgoing.destroy();
      const refused = 'code' in error && error.code === 'ECONNREFUSED';
      if (others.length > 0 && refused) return this.#try(passed, others);
      // Whether the node has carried out the request is unknown.
      if (others.length === 0 || !passed.again) return void outgoing.writeHead(502).end();
      this.resent += 1;
      this.#try({ ...passed, again: false }, others);
    });
    forward.end(body);
  }
}
