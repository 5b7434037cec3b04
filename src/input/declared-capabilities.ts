/** What a client must have declared to be asked something, and what it is told that has not. */
import type { InputRequest } from '../messages/input-messages.ts';
import { isObject } from '../protocol/json.ts';
import type { ClientCapabilities } from '../protocol/types.ts';
import { CannotAsk } from './input-errors.ts';

/** Why a client may not be asked this (2026-07-28 MRTR, "Server Requirements"); undefined where it may. */
export function cannotAsk({ method, params }: InputRequest, capabilities: ClientCapabilities): CannotAsk | undefined {
  const { elicitation, sampling, roots } = capabilities;
  switch (method) {
    case 'elicitation/create': {
      if (params.mode === 'url')
        return isObject(elicitation) && elicitation.url !== undefined
          ? undefined
          : new CannotAsk('a visit of the user to a page', { elicitation: { url: {} } });
      // Until 2025-06-18 there is one mode; an empty capability stands for it still (2025-11-25 elicitation, "Capabilities").
      const forms = isObject(elicitation) && (elicitation.form !== undefined || elicitation.url === undefined);
      return forms ? undefined : new CannotAsk('an answer of the user', { elicitation: { form: {} } });
    }
    case 'sampling/createMessage':
      if (!isObject(sampling)) return new CannotAsk("an answer of the client's model", { sampling: {} });
      if ((params.tools ?? params.toolChoice) === undefined || isObject(sampling.tools)) return undefined;
      return new CannotAsk("tools for the client's model", { sampling: { tools: {} } });
    case 'roots/list':
      return isObject(roots) ? undefined : new CannotAsk("the user's roots", { roots: {} });
  }
}
