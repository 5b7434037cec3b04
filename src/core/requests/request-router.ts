/** Serves each request by the actor or service of its method. */
import type { RequestMail, RequestTarget } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';

/** The actors and services that serve requests, by the names that rows of methods have. */
export type RequestTargets = Readonly<Record<string, RequestTarget>>;

/** Serves what belongs to the session of a request. */
const OWN_SESSION: RequestTarget = {
  send: ({ request }) => request.client.session?.mailbox.send({ type: 'serve', request }),
};

export class RequestRouter {
  readonly #targets = new Map<string, RequestTarget>([['session', OWN_SESSION]]);

  /** Registers actors and services by their names. */
  register(targets: RequestTargets): void {
    for (const [servedBy, target] of Object.entries(targets)) this.#targets.set(servedBy, target);
  }

  readonly serve = (mail: RequestMail): void => {
    const { request } = mail;
    const { servedBy } = request;
    const target = this.#targets.get(servedBy === 'completions' ? completes(request) : servedBy);
    if (!target) throw new Error(`nothing serves ${request.operation.method}, although the methods table has it`);
    target.send(mail);
  };
}

/** Selects the registry of the element whose argument a request completes. */
function completes({ operation }: RequestView): 'prompts' | 'resources' {
  return operation.method === 'completion/complete' && operation.ref.type === 'ref/prompt' ? 'prompts' : 'resources';
}
