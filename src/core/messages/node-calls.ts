/**
 * Calls between the nodes of a cluster that no client has made: a service of one node calls the same service at the owner of a cell.
 * A server without other nodes has the calls of {@link ownCalls}.
 */
import type { JsonObject, JsonValue } from '../protocol/json.ts';

/** Serves the calls of other nodes, and those of this node for its own cells. What it throws, the caller gets as a text. */
export type NodeService = (body: JsonObject) => Promise<JsonValue>;

export interface NodeCalls {
  /** Serves the calls of a name, which all nodes have. */
  serve(name: string, service: NodeService): void;
  /**
   * Counts a call that this node serves itself, so that its cell does not move meanwhile.
   *
   * @returns a function to call once, at its end; undefined if this node does not own the cell
   */
  enter(cell: number): (() => void) | undefined;
  /**
   * Calls a service at the owner of a cell, which may be this node.
   *
   * @param repeatable true if the call may be sent to the next owner although the first one may have served it
   * @throws {NodeCallError} if no owner answers, or the outcome is unknown; or with the text of what the service threw
   */
  call(cell: number, name: string, body: JsonObject, repeatable?: boolean): Promise<JsonValue>;
}

/** The reason why a call to another node has no result. */
export class NodeCallError extends Error {
  override readonly name = 'NodeCallError';
  /** `unreachable`: nothing has happened. `unknown`: it may have happened. `failed`: the service threw. */
  readonly reason: 'unreachable' | 'unknown' | 'failed';

  constructor(reason: NodeCallError['reason'], message: string) {
    super(message);
    this.reason = reason;
  }
}

/** The calls of a server that owns all cells. */
export function ownCalls(): NodeCalls {
  const services = new Map<string, NodeService>();
  return {
    serve: (name, service) => void services.set(name, service),
    enter: () => () => {},
    call: (_, name, body) => serviceOf(services, name)(body),
  };
}

/** @throws {NodeCallError} if there is none */
export function serviceOf(services: ReadonlyMap<string, NodeService>, name: string): NodeService {
  const service = services.get(name);
  if (service) return service;
  throw new NodeCallError('failed', `this node has no service "${name}"`);
}
