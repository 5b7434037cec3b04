/** Display names for the inspector: clients, input requests, operations and their facts. */

import type { ClientFacts } from '../../messages/client-facts.ts';
import type { InputRequest } from '../../messages/client-input.ts';
import type { RequestView } from '../../messages/request-view.ts';
import type { Operation } from '../../protocol/operations.ts';
import type { Implementation } from '../../protocol/types.ts';
import type { Facts, Waits } from './records.ts';

/** Longest text of an input request that serves as its name. */
const MAX_LABEL = 80;

/** @example nameOfClient({ name: 'claude', version: '1.0' }) // 'claude 1.0' */
export function nameOfClient({ name, title, version }: Implementation): string {
  return `${title ?? name} ${version}`;
}

/** The addressee of an input request: the user of a client, or its model. */
export function addresseeOf(request: InputRequest, { info }: Pick<ClientFacts, 'info'>): string {
  const client = info ? nameOfClient(info) : 'the client';
  if (request.method === 'sampling/createMessage') return `the model of ${client}`;
  return request.method === 'roots/list' ? client : `the user of ${client}`;
}

/** A short name for an input request: its message or its method. */
export function nameOfQuestion({ method, params }: InputRequest): string {
  const message: unknown = params !== undefined && 'message' in params ? params.message : undefined;
  if (typeof message !== 'string') return method;
  return message.length > MAX_LABEL ? `${message.slice(0, MAX_LABEL - 1)}…` : message;
}

/** The name of an operation: its method and the element that it names. @example 'tools/call greet' */
export function nameOfOperation(operation: Operation): string {
  const named = 'name' in operation ? operation.name : 'uri' in operation ? operation.uri : undefined;
  return typeof named === 'string' ? `${operation.method} ${named}` : operation.method;
}

/** The facts of a request that the inspector shows. Times in milliseconds of the server's clock. */
export function factsOf({ id, operation, client, deadline, exchange }: RequestView): Facts {
  const from = client.info && nameOfClient(client.info);
  return { id, operation, client: from, principal: client.principal, exchange: exchange?.id, deadline };
}

/** The wait of an actor for the end of a request. */
export function waitOf({ operation, client, deadline, timeoutMs, cause }: RequestView): Waits {
  const whom = client.info && nameOfClient(client.info);
  return { what: `the end of ${nameOfOperation(operation)}`, whom, until: deadline, lasts: timeoutMs, because: cause };
}

/** A state with a count, if the count is not 0. @example counted('paused', 3) // 'paused (3)' */
export function counted(state: unknown, count: number): string {
  return count === 0 ? String(state) : `${String(state)} (${count})`;
}
