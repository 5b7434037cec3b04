/** Routes each admitted request to the actor or service that serves its method. */
import type { RequestAdmission, RequestMail, RequestRoutes, RequestTarget } from '../messages/request-messages.ts';
import type { RequestView } from '../messages/request-view.ts';

export interface RequestTargets {
  readonly tools: RequestTarget;
  readonly resources: RequestTarget;
  readonly skills: RequestTarget;
  readonly prompts: RequestTarget;
  readonly server: RequestTarget;
  readonly subscriptions: RequestTarget;
  readonly tasks: RequestTarget;
}

/** Serves what belongs to the session of a request. */
const OWN_SESSION: RequestTarget = {
  send: ({ request }) => request.client.session?.mailbox.send({ type: 'serve', request }),
};

export class RequestRouter implements RequestRoutes {
  #targets: RequestTargets & { readonly session: RequestTarget };

  /** Undefined while no rule exists. */
  #admission: Pick<RequestAdmission, 'admit'> | undefined;

  constructor(targets: RequestTargets) {
    this.#targets = { ...targets, session: OWN_SESSION };
  }

  /** Asks the rules before each request that is routed from now on. */
  guard(admission: Pick<RequestAdmission, 'admit'>): void {
    this.#admission = admission;
  }

  readonly route = (mail: RequestMail): void => {
    if (this.#admission) this.#admission.admit(mail, this.#pass);
    else this.#pass(mail);
  };

  readonly #pass = (mail: RequestMail): void => {
    const { request } = mail;
    const { servedBy } = request;
    this.#targets[servedBy === 'completions' ? completes(request) : servedBy].send(mail);
  };

  /** Puts something around all targets, except those of `direct`, for requests that are routed from now on. */
  wrap(around: (target: RequestTarget) => RequestTarget, direct: Partial<RequestTargets>): void {
    const { tools, resources, skills, prompts, server, subscriptions, tasks, session } = this.#targets;
    this.#targets = {
      tools: around(tools),
      resources: around(resources),
      skills: around(skills),
      prompts: around(prompts),
      server: around(server),
      subscriptions: around(subscriptions),
      tasks: around(tasks),
      session: around(session),
      ...direct,
    };
  }
}

/** Selects the registry of the element whose argument a request completes. */
function completes({ operation }: RequestView): 'prompts' | 'resources' {
  return operation.method === 'completion/complete' && operation.ref.type === 'ref/prompt' ? 'prompts' : 'resources';
}
