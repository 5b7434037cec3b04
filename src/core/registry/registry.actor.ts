/**
 * The registry actor: holds a catalogue, answers list requests, resolves names to references, and reports each change.
 * The registry runs nothing.
 */

import { type Actor, type ActorSystem, type AfterTurn, type Behaviour, spawn } from '../kernel/actor.ts';
import type { Facts } from '../kernel/inspection/records.ts';
import type { Registered, RegistryMail } from '../messages/registry-messages.ts';
import type { RequestView } from '../messages/request-view.ts';
import { ProtocolError, toWireError } from '../protocol/errors.ts';
import { respond } from '../requests/active-request.ts';
import type { Catalogue } from './catalogue.ts';

interface RegistryOptions<D> {
  readonly system: ActorSystem;
  readonly address: string;
  readonly catalogue: Catalogue<D>;
  /**
   * Answers or forwards one request; may throw a {@link ProtocolError}. It forwards in `afterwards`, because a handler
   * may register elements and needs the registry to be free.
   */
  serve(request: RequestView, afterwards: AfterTurn): void;
  /** Called after a change that lists show. */
  changed(): void;
}

export function spawnRegistry<D>(options: RegistryOptions<D>): Actor<RegistryMail<D>> {
  return spawn(
    { kind: 'registry', address: options.address },
    options.system,
    (_, afterwards) => new Registry(options, afterwards),
  );
}

class Registry<D> implements Behaviour<RegistryMail<D>> {
  readonly #options: RegistryOptions<D>;
  readonly #afterwards: AfterTurn;

  constructor(options: RegistryOptions<D>, afterwards: AfterTurn) {
    this.#options = options;
    this.#afterwards = afterwards;
  }

  facts(): Facts {
    const { catalogue } = this.#options;
    const offers = catalogue.all().map(({ key, enabled }) => (enabled ? key : `${key} (disabled)`));
    return { version: catalogue.version, offers };
  }

  state(): string {
    return `version ${this.#options.catalogue.version}`;
  }

  receive(mail: RegistryMail<D>): void {
    if (mail.type === 'request') {
      try {
        return this.#options.serve(mail.request, this.#afterwards);
      } catch (error) {
        if (!(error instanceof ProtocolError)) throw error;
        return respond(mail.request, { ok: false, error: toWireError(error, '') });
      }
    }
    const { catalogue, changed } = this.#options;
    const before = catalogue.listVersion;
    const registered = this.#register(mail);
    mail.from?.send({ type: 'registered', registered });
    if (catalogue.listVersion !== before) changed();
  }

  #register(mail: Exclude<RegistryMail<D>, { type: 'request' }>): Registered {
    const { catalogue } = this.#options;
    switch (mail.type) {
      case 'register':
        return catalogue.register(mail.offer);
      case 'update':
        return catalogue.update(mail.offer);
      case 'enable':
        return catalogue.setEnabled(mail.key, true);
      case 'disable':
        return catalogue.setEnabled(mail.key, false);
      case 'remove':
        return catalogue.remove(mail.key);
      case 'replace source':
        return catalogue.replaceSource(mail.source, mail.offers);
      case 'clear':
        return catalogue.clear();
      case 'announce':
        return catalogue.announce();
    }
  }

  crashed(mail: RegistryMail<D>, error: unknown): void {
    const incident = this.#options.system.incident(this.#options.address, error);
    if (mail.type === 'request') {
      respond(mail.request, { ok: false, error: toWireError(error, incident) });
    } else {
      const registered = { ok: false, why: `the registry failed (incident ${incident})` } as const;
      mail.from?.send({ type: 'registered', registered });
    }
  }
}
