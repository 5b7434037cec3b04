/** The arguments of a rule: one use of one element, and the request that uses it. */
import type { Auth } from '../../../core/messages/auth.ts';
import type {
  AuthorizationCall,
  AuthorizationContext,
  GuardedElement,
} from '../../../core/messages/authorization-rule.ts';
import type { Element } from '../../../core/messages/registry-messages.ts';
import type { RequestView } from '../../../core/messages/request-view.ts';
import { isJsonObject, type JsonObject } from '../../../core/protocol/json.ts';
import { viaOf } from '../../../core/requests/inner-requests.ts';

/** One element that a request uses. */
export interface Subject {
  readonly kind: GuardedElement['kind'];
  readonly name: string;
  /** Undefined for a name that is not registered. */
  readonly element: Element<NonNullable<GuardedElement['definition']>> | undefined;
  readonly arguments: JsonObject;
  readonly uri: string | undefined;
}

const NONE: readonly string[] = [];
export const NO_ARGUMENTS: JsonObject = {};

export function ruleCallOf(request: RequestView, subject: Subject): AuthorizationCall {
  return {
    method: request.operation.method,
    element: guardedElement(subject.kind, subject.name, subject.element),
    arguments: subject.arguments,
    uri: subject.uri,
    auth: request.auth,
    principal: request.client.principal,
  };
}

export function guardedElement(kind: Subject['kind'], name: string, element: Subject['element']): GuardedElement {
  const access = element?.access;
  return { kind, name, definition: element?.definition, scopes: access?.scopes ?? NONE, machine: access?.machine };
}

export class RuleContext implements AuthorizationContext {
  /** True if a rule has read more than its caller: another request of the caller may get another decision. */
  readsRequest = false;
  readonly #request: RequestView;

  constructor(request: RequestView) {
    this.#request = request;
  }

  get auth(): Auth | undefined {
    return this.#request.auth;
  }

  get principal(): string {
    return this.#request.client.principal;
  }

  get session(): AuthorizationContext['session'] {
    this.readsRequest = true;
    const { session } = this.#request.client;
    return session && { id: session.id };
  }

  get client(): AuthorizationContext['client'] {
    this.readsRequest = true;
    const { info, capabilities, dialect } = this.#request.client;
    return { info, capabilities, revision: dialect.revision, era: dialect.era };
  }

  get requestId(): AuthorizationContext['requestId'] {
    this.readsRequest = true;
    return this.#request.id;
  }

  get meta(): JsonObject {
    this.readsRequest = true;
    const { meta } = this.#request;
    return isJsonObject(meta) ? meta : {};
  }

  get via(): AuthorizationContext['via'] {
    this.readsRequest = true;
    return viaOf(this.#request);
  }

  get signal(): AbortSignal {
    this.readsRequest = true;
    return this.#request.signal;
  }
}
