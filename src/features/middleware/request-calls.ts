/** Converts operations into the calls that middleware receives, and changed calls back into operations. */
import { describe, isObject } from '../../core/protocol/json.ts';
import type { Operation } from '../../core/protocol/operations.ts';
import type { RequestCall } from './middleware.ts';

/** Returns the request as middleware receives it: without what ties it to an earlier request, or makes it a task. */
export function receivedCall(operation: Operation): RequestCall {
  switch (operation.method) {
    case 'tools/call':
      return { method: operation.method, params: { name: operation.name, arguments: operation.arguments } };
    case 'prompts/get':
      return { method: operation.method, params: { name: operation.name, arguments: operation.arguments } };
    case 'resources/read':
    case 'skills/get':
    case 'resources/subscribe':
    case 'resources/unsubscribe':
      return { method: operation.method, params: { uri: operation.uri } };
    case 'tools/list':
    case 'resources/list':
    case 'resources/templates/list':
    case 'prompts/list':
    case 'skills/list':
    case 'tasks/list':
      return { method: operation.method, params: { cursor: operation.cursor } };
    case 'resources/directory/read':
      return { method: operation.method, params: { uri: operation.uri, cursor: operation.cursor } };
    case 'completion/complete': {
      const { method, ref, argument, resolved } = operation;
      return { method, params: { ref, argument, resolved } };
    }
    case 'initialize': {
      const { method, protocolVersion, capabilities, clientInfo } = operation;
      return { method, params: { protocolVersion, capabilities, clientInfo } };
    }
    case 'logging/setLevel':
      return { method: operation.method, params: { level: operation.level } };
    case 'subscriptions/listen':
      return { method: operation.method, params: { filter: operation.filter } };
    case 'tasks/get':
    case 'tasks/cancel':
    case 'tasks/result':
      return { method: operation.method, params: { taskId: operation.taskId } };
    case 'tasks/update':
      return {
        method: operation.method,
        params: { taskId: operation.taskId, responses: operation.responses },
      };
    // Ping, discovery, and the methods of features, whose params are for the feature only.
    default:
      return { method: operation.method, params: {} };
  }
}

/**
 * Returns the operation with the parameters that a middleware has passed to `next`. Its name stays: admission, stored
 * replies and request states belong to the element that the client has called.
 *
 * @throws {TypeError} if the method, the name, or a parameter that must stay was changed, or a parameter is invalid
 */
export function changedOperation(operation: Operation, call: RequestCall): Operation {
  if (operation.method === 'tools/call' && call.method === 'tools/call') {
    const { name, arguments: args } = call.params;
    check('name', `"${operation.name}", because a middleware cannot redirect a call`, name, name === operation.name);
    check('arguments', 'an object', args, isObject(args));
    return { ...operation, arguments: args };
  }
  if (operation.method === 'prompts/get' && call.method === 'prompts/get') {
    const { name, arguments: args } = call.params;
    check('name', `"${operation.name}", because a middleware cannot redirect a request`, name, name === operation.name);
    check('arguments', 'an object of strings', args, isObject(args) && Object.values(args).every(isString));
    return { ...operation, arguments: args };
  }
  if (operation.method === 'resources/read' && call.method === 'resources/read') {
    const { uri } = call.params;
    check('uri', 'a string', uri, isString(uri));
    return { ...operation, uri };
  }
  if (operation.method === 'completion/complete' && call.method === 'completion/complete') {
    const { argument, resolved } = call.params;
    check('argument', '{ name, value }', argument, isString(argument?.name) && isString(argument?.value));
    check('resolved', 'an object of strings', resolved, isObject(resolved) && Object.values(resolved).every(isString));
    return { ...operation, argument, resolved };
  }
  if (call.method !== operation.method)
    throw new TypeError(`next: expected a call of ${operation.method}, got ${describe(call.method)}`);
  throw new TypeError(`next: the parameters of ${call.method} cannot be changed: call next() without arguments`);
}

function isString(value: unknown): value is string {
  return typeof value === 'string';
}

function check(name: string, expected: string, got: unknown, fits: boolean): void {
  if (!fits) throw new TypeError(`next: params.${name}: expected ${expected}, got ${describe(got)}`);
}
