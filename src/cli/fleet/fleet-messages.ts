/** The messages between the parent of `troupe serve --nodes` and its node processes, over Node's IPC channel. */

import type { AddressInfo } from 'node:net';
import type { MetricsFormat } from '../../core/http/metrics-listener.ts';
import { isObject } from '../../core/protocol/json.ts';

/** The name and place of a node, in the environment variable {@link NODE_VARIABLE}. */
export interface NodeIdentity {
  /** The number of the node, from 1. */
  readonly name: string;
  /** The number of processes that had this name before. */
  readonly generation: number;
  /** The port that the parent has opened. */
  readonly address: AddressInfo;
}

/** The environment variable of a node process. */
export const NODE_VARIABLE = 'TROUPE_NODE';

/** From the parent to a node. */
export type NodeOrder =
  /** A connection, whose socket travels with the message. */
  | { readonly type: 'connection'; readonly id: number }
  /** Another process replaces this one: let the clients move to it, then close. */
  | { readonly type: 'replace' }
  /** The fleet stops. */
  | { readonly type: 'close'; readonly reason: string }
  | { readonly type: 'metrics'; readonly id: number; readonly format: MetricsFormat }
  /** The heartbeat: the node answers with the same. */
  | { readonly type: 'beat' };

/** From a node to the parent. */
export type NodeReport =
  | {
      readonly type: 'ready';
      /** The name and version of the server. */
      readonly server: string;
      /** Instructions for connecting clients, the same from each node. */
      readonly lines: readonly string[];
      /** True if the nodes share a store, so that any of them serves any client. */
      readonly shared: boolean;
      /** Maximum time in milliseconds from the order to close until the server has closed. */
      readonly closeMs: number;
      /** The hard limit of its watchdog in milliseconds; undefined for none. */
      readonly hardMs: number | undefined;
    }
  /** The answer to the heartbeat. A debugger may pause the process. */
  | { readonly type: 'beat'; readonly debugged: boolean }
  /** The node serves this connection. */
  | { readonly type: 'taken'; readonly id: number }
  /** So many of its connections have closed. */
  | { readonly type: 'closed'; readonly count: number }
  | { readonly type: 'metrics'; readonly id: number; readonly text: string /** JSON. */; readonly readiness: string };

/** Reads a message of the other process, which runs the same package, or another version of it after an update. */
export function isNodeReport(message: unknown): message is NodeReport {
  return isObject(message) && typeof message.type === 'string';
}

/** Reads an order of the parent. */
export function isNodeOrder(message: unknown): message is NodeOrder {
  return isObject(message) && typeof message.type === 'string';
}
