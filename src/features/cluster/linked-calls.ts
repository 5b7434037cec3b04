/** The calls between the nodes of a cluster, over their links. */
import type { LinkedExchange, LinkFailure, NodeEndpoint, NodeEntry } from '../../core/http/other-nodes.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import type { Quota } from '../../core/kernel/quota.ts';
import { NodeCallError, type NodeCalls, type NodeService, serviceOf } from '../../core/messages/node-calls.ts';
import { isJsonObject, type JsonObject, type JsonValue, messageOf } from '../../core/protocol/json.ts';
import { fromText, toText } from '../../core/store/serialize.ts';

/** Milliseconds before another attempt, at first and at most. */
const PAUSE_MS = 10;
const MAX_PAUSE_MS = 160;

interface LinkedCallsOptions {
  readonly nodes: NodeEntry;
  readonly clock: Clock;
  readonly limits: { readonly maxMessageBytes: number; readonly timeoutMs: number };
  readonly retained: Quota;
}

/** The calls of a node of a cluster, as the first endpoint of its links. */
export class LinkedCalls implements NodeCalls, NodeEndpoint {
  readonly #options: LinkedCallsOptions;
  readonly #endpoint: number;
  readonly #services = new Map<string, NodeService>();

  constructor(options: LinkedCallsOptions) {
    this.#options = options;
    this.#endpoint = options.nodes.serve(this);
  }

  serve(name: string, service: NodeService): void {
    this.#services.set(name, service);
  }

  enter(cell: number): (() => void) | undefined {
    const { nodes } = this.#options;
    return nodes.placeOf(cell).at === 'here' ? nodes.enter(cell) : undefined;
  }

  async call(cell: number, name: string, body: JsonObject, repeatable = false): Promise<JsonValue> {
    const { nodes, clock } = this.#options;
    const deadline = clock.now() + nodes.waitMs;
    let mayHaveRun = false;
    const givenUp = (): NodeCallError => (mayHaveRun ? outcomeUnknown() : unreachable());
    for (let pauseMs = PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, MAX_PAUSE_MS)) {
      const place = nodes.placeOf(cell);
      if (place.at === 'here') return this.#here(cell, name, body);
      const failure = place.at === 'peer' ? await this.#ask(place.peer.node, cell, name, body) : undefined;
      if (failure !== undefined && typeof failure !== 'string') return failure.value;
      mayHaveRun ||= failure === 'lost' || failure === 'cut';
      if (mayHaveRun && !repeatable) throw givenUp();
      const left = deadline - clock.now();
      if (failure === 'full' || left <= 0) throw givenUp();
      await new Promise<void>((resolve) => clock.after(Math.min(pauseMs, left), resolve));
      await nodes.settle(cell, Math.max(1, deadline - clock.now())).catch(() => {
        throw givenUp();
      });
    }
  }

  async #here(cell: number, name: string, body: JsonObject): Promise<JsonValue> {
    const leave = this.#options.nodes.enter(cell);
    try {
      return await serviceOf(this.#services, name)(body);
    } finally {
      leave();
    }
  }

  #ask(
    node: string,
    cell: number,
    name: string,
    body: JsonObject,
  ): Promise<LinkFailure | { readonly value: JsonValue }> {
    const { nodes, clock, limits } = this.#options;
    return new Promise((resolve, reject) => {
      const answered = (status: number, text = ''): void => {
        timer.cancel();
        if (status !== 200) return reject(new NodeCallError('failed', text));
        try {
          resolve({ value: fromText(text, `the answer of another node to "${name}"`) });
        } catch (error) {
          reject(error);
        }
      };
      const failed = (failure: LinkFailure): void => {
        timer.cancel();
        resolve(failure);
      };
      const timer = clock.after(limits.timeoutMs, () => forwarding.cancel());
      const forwarding = nodes.link.forward(
        node,
        {
          ...{
            endpoint: this.#endpoint,
            method: 'POST',
            url: name,
            headers: {},
            auth: undefined,
            remoteAddress: undefined,
          },
          ...{ cell, deadlineMs: nodes.waitMs, text: toText(body) },
        },
        {
          whole: (status, _, text) => answered(status, text),
          // This endpoint sends each answer whole.
          begun: () => forwarding.cancel(),
          text: () => true,
          ended: () => failed('cut'),
          failed,
        },
      );
    });
  }

  forwarded(exchange: LinkedExchange): void {
    const { nodes, limits, retained } = this.#options;
    // Never forwarded twice: its entry finds the owner.
    if (nodes.placeOf(exchange.cell).at !== 'here') return exchange.notMine();
    const leave = nodes.enter(exchange.cell);
    exchange.body({ maxMessageBytes: limits.maxMessageBytes, retained }, '', (body) => {
      void this.#serve(exchange, 'text' in body ? body.text : '').finally(leave);
    });
  }

  async #serve({ url, response }: LinkedExchange, text: string): Promise<void> {
    try {
      const body = fromText(text, `the call of another node of "${url}"`);
      if (!isJsonObject(body)) throw new TypeError('expected an object');
      response.send(200, {}, toText(await serviceOf(this.#services, url)(body)));
    } catch (error) {
      response.send(500, {}, messageOf(error));
    }
  }

  rated(): void {}
}

function unreachable(): NodeCallError {
  return new NodeCallError('unreachable', 'the node that serves this call cannot be reached now. Retry later');
}

function outcomeUnknown(): NodeCallError {
  return new NodeCallError(
    'unknown',
    'the node that served this call ended. The call may or may not have run; its outcome is unknown',
  );
}
