/** Finds the cell whose owner must serve a request: that of the session, task, handle, question or key that it names. */

import type { RequestPlacement } from '../../core/messages/request-placement.ts';
import type { RequestView } from '../../core/messages/request-view.ts';
import { cellIn } from '../../core/protocol/cell.ts';
import { META } from '../../core/protocol/meta.ts';
import type { CallTool } from '../../core/protocol/operations.ts';
import { ANONYMOUS, LOCAL } from '../../core/protocol/principals.ts';
import { ANSWER_TOOL, shownResource } from '../../core/protocol/views.ts';
import type { Catalogues } from '../../core/server/elements.ts';
import { isRepeatable } from '../durability/tool-hints.ts';

export interface PlacedRequestsOptions {
  readonly tools: Pick<Catalogues['tools'], 'get'>;
  /** The id of the interactive request that a request continues. */
  readonly interactive: { continuedBy(request: RequestView): string | undefined };
  /** The cells of this cluster. */
  readonly cells: {
    cellFor(principal: string): number;
    /** The cell of an idempotency key: that of its principal, unless the cells of a principal are many. */
    cellOfKey(principal: string, key: string): number;
    placeOf(cell: number): { readonly at: 'here' | 'peer' | 'nobody' };
  };
}

/** The tool that runs scripts: `resume` names a run. */
const RUN_TOOL = 'run_code';
/** The URI of a resource of a machine. */
const MACHINE_URI = /^troupe:\/\/([^/]+)\/([^/]+)/;

/** The cell of the handle in the URI of a resource of a machine; undefined for any other URI, and for that of a key. */
export function cellOfUri(uri: string, tools: PlacedRequestsOptions['tools']): number | undefined {
  const [, machine, handle = ''] = MACHINE_URI.exec(uri) ?? [];
  const cell = cellIn(handle);
  return cell === undefined || tools.get(`${machine}_get`)?.access?.cellOf ? undefined : cell;
}

export class PlacedRequests implements RequestPlacement {
  readonly #options: PlacedRequestsOptions;

  constructor(options: PlacedRequestsOptions) {
    this.#options = options;
  }

  owns(cell: number): boolean {
    return this.#options.cells.placeOf(cell).at === 'here';
  }

  /** A session of an anonymous caller opens at any node, in a cell of that node. */
  cellOfSession(principal: string): number | undefined {
    return principal === ANONYMOUS || principal === LOCAL ? undefined : this.#options.cells.cellFor(principal);
  }

  cellOf(request: RequestView): number | undefined {
    const { operation, client } = request;
    if (request.continues) {
      const continued = this.#options.interactive.continuedBy(request);
      if (continued !== undefined) return cellIn(continued);
    }
    switch (operation.method) {
      case 'tasks/get':
      case 'tasks/update':
      case 'tasks/cancel':
      case 'tasks/result':
        return cellIn(operation.taskId);
      case 'tools/call':
        return this.#cellOfCall(request, operation);
      case 'resources/read':
        return cellOfUri(operation.uri, this.#options.tools);
      case 'subscriptions/listen':
        // The state of tasks is known to their owner. Every node that listens learns of changes of resources.
        return cellIn(operation.filter.tasks?.[0] ?? '');
      case 'completion/complete':
        // The handles of a principal are in its cell.
        return operation.ref.type === 'ref/resource' && MACHINE_URI.test(operation.ref.uri)
          ? this.cellOfSession(client.principal)
          : undefined;
      default:
        return undefined;
    }
  }

  #cellOfCall(request: RequestView, operation: CallTool): number | undefined {
    const { name, arguments: given } = operation;
    const shown = shownResource(name, given);
    if (shown) return cellOfUri(shown.uri, this.#options.tools);
    if (name === RUN_TOOL && typeof given.resume === 'string') return cellIn(given.resume);
    if (name === ANSWER_TOOL) return typeof given.id === 'string' ? cellIn(given.id) : undefined;
    const { principal } = request.client;
    const { access } = this.#options.tools.get(name) ?? {};
    if (access?.cellOf) return access.cellOf(given, request);
    const machine = access?.machine;
    if (machine && typeof given.handle === 'string') return cellIn(given.handle);
    const key = keyOf(request, operation, machine !== undefined);
    if (!machine && key === undefined) return undefined;
    return key === undefined ? this.cellOfSession(principal) : this.#options.cells.cellOfKey(principal, key);
  }

  mayRepeat(request: RequestView): boolean {
    const { operation } = request;
    if (operation.method !== 'tools/call') return true;
    const element = this.#options.tools.get(operation.name);
    const key = keyOf(request, operation, element?.access?.machine !== undefined);
    return (
      (element !== undefined && isRepeatable(element)) || key !== undefined || operation.input?.state !== undefined
    );
  }
}

/** The name that a client gives to a call, so that it runs once. */
function keyOf({ meta }: RequestView, { arguments: given }: CallTool, ofMachine: boolean): string | undefined {
  const key = meta?.[META.idempotencyKey] ?? (ofMachine ? given.idempotencyKey : undefined);
  return typeof key === 'string' ? key : undefined;
}
