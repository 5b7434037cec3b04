/** Routes each admitted request to the actor or service that serves its method. */
import type { RequestMail, RequestRoutes, RequestTarget } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';

export interface RequestTargets {
  readonly tools: RequestTarget;
  readonly resources: RequestTarget;
  readonly prompts: RequestTarget;
  readonly server: RequestTarget;
  readonly subscriptions: RequestTarget;
  readonly tasks: RequestTarget;
}

export class RequestRouter implements RequestRoutes {
  readonly #targets: RequestTargets;

  constructor(targets: RequestTargets) {
    this.#targets = targets;
  }

  readonly route = (mail: RequestMail): void => {
    const { request } = mail;
    switch (request.servedBy) {
      case 'session':
        return request.client.session?.mailbox.send({ type: 'serve', request });
      case 'completions':
        return this.#targets[completes(request)].send(mail);
      default:
        return this.#targets[request.servedBy].send(mail);
    }
  };
}

/** Selects the registry of the element whose argument a request completes. */
function completes({ operation }: RequestView): 'prompts' | 'resources' {
  return operation.method === 'completion/complete' && operation.ref.type === 'ref/prompt' ? 'prompts' : 'resources';
}
