/** Checks the capabilities that a client must declare before it can be asked, and names a missing one. */

import { CannotAsk } from '../../core/execution/input-errors.ts';
import type { InputRequest } from '../../core/messages/client-input.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { ClientCapabilities } from '../../core/protocol/types.ts';

/** Returns the reason why this client must not be asked (2026-07-28 MRTR, "Server Requirements"); undefined if it may be. */
export function cannotAsk({ method, params }: InputRequest, capabilities: ClientCapabilities): CannotAsk | undefined {
  const { elicitation, sampling, roots } = capabilities;
  switch (method) {
    case 'elicitation/create': {
      if (params.mode === 'url')
        return isObject(elicitation) && elicitation.url !== undefined
          ? undefined
          : new CannotAsk('opening a page for the user', { elicitation: { url: {} } });
      // Until 2025-06-18 there is only the form mode. An empty capability still means forms (2025-11-25 elicitation,
      // "Capabilities").
      const forms = isObject(elicitation) && (elicitation.form !== undefined || elicitation.url === undefined);
      return forms ? undefined : new CannotAsk('an answer from the user', { elicitation: { form: {} } });
    }
    case 'sampling/createMessage':
      if (!isObject(sampling)) return new CannotAsk("an answer from the client's model", { sampling: {} });
      if ((params.tools ?? params.toolChoice) === undefined || isObject(sampling.tools)) return undefined;
      return new CannotAsk("tool use by the client's model", { sampling: { tools: {} } });
    case 'roots/list':
      return isObject(roots) ? undefined : new CannotAsk("the user's roots", { roots: {} });
  }
}
