/** The server actor: governs the server's lifecycle and answers requests about the server itself. */
import { type ServerEvent, serverMachine } from '../../../machines/server.ts';
import { type Actor, type ActorSystem, type Behaviour, spawn } from '../kernel/actor.ts';
import type { Timer } from '../kernel/clock.ts';
import type { Charted, Facts, Waits } from '../kernel/inspection/records.ts';
import { step } from '../kernel/step.ts';
import type { Mailbox } from '../messages/mailbox.ts';
import type { Capabilities } from '../messages/offered-capabilities.ts';
import { EMPTY, type Outcome } from '../messages/results.ts';
import type { ServerMail } from '../messages/server-messages.ts';
import { toWireError } from '../protocol/errors.ts';
import { misrouted, respond } from '../requests/active-request.ts';
import type { OpenConnections } from '../sessions/connections.ts';

interface ServerActorOptions {
  readonly system: ActorSystem;
  readonly graceMs: number;
  readonly capabilities: Pick<Capabilities, 'describe'>;
  /** Facts about the server for the inspector. */
  facts(): Facts;
  /** Each sends `connection idle` when it drains and none of its requests is in flight. */
  readonly connections: Pick<OpenConnections, 'drain'>;
  /** Nothing is in flight, or the grace time is over: close every transport, then send `stopped`. */
  stop(reason: string): void;
}

export function spawnServer(options: ServerActorOptions): Actor<ServerMail> {
  return spawn({ kind: 'server', address: 'server' }, options.system, (self) => new ServerActor(options, self));
}

class ServerActor implements Behaviour<ServerMail> {
  /** Never quarantined: no other actor could close the server. */
  readonly policy = { restarts: Number.POSITIVE_INFINITY, windowMs: 1 };
  readonly #options: ServerActorOptions;
  readonly #self: Mailbox<ServerMail>;
  readonly #busy = new Set<string>();
  #snapshot = serverMachine.initial;
  #reason = '';
  #grace: Timer | undefined;

  constructor(options: ServerActorOptions, self: Mailbox<ServerMail>) {
    this.#options = options;
    this.#self = self;
  }

  chart(): Charted {
    return this.#snapshot.charted();
  }

  waits(): readonly Waits[] {
    if (this.#snapshot.path !== 'draining') return [];
    return [
      { what: `waiting for ${this.#busy.size} connections to finish their requests`, lasts: this.#options.graceMs },
    ];
  }

  facts(): Facts {
    return this.#options.facts();
  }

  state(): string {
    return String(this.#snapshot.path);
  }

  receive(mail: ServerMail): void {
    switch (mail.type) {
      case 'request': {
        const { request } = mail;
        return respond(request, this.#answer(mail));
      }
      case 'drain':
        return this.#drain(mail.reason, mail.connections);
      case 'connection idle':
        this.#busy.delete(mail.connection);
        // While the server runs, the end of a connection changes nothing.
        if (this.#busy.size === 0 && this.#snapshot.path === 'draining') this.#step({ type: 'idle' });
        return;
      case 'started':
        // Each transport reports that it has opened; the first report starts the server.
        if (this.#snapshot.path === 'starting') this.#step(mail);
        return;
      default:
        return this.#step(mail);
    }
  }

  #answer({ request }: Extract<ServerMail, { type: 'request' }>): Outcome {
    switch (request.operation.method) {
      case 'ping':
        return EMPTY;
      case 'server/discover':
        return { ok: true, result: { kind: 'discover', introduction: this.#options.capabilities.describe() } };
      default:
        return { ok: false, error: toWireError(misrouted(request, 'the server'), '') };
    }
  }

  #drain(reason: string, connections: readonly string[]): void {
    const was = this.#snapshot.path;
    this.#reason ||= reason;
    for (const connection of connections) this.#busy.add(connection);
    this.#step({ type: 'drain' });
    if (was === this.#snapshot.path || this.#snapshot.path !== 'draining') return;
    this.#grace = this.#options.system.clock.after(this.#options.graceMs, () =>
      this.#self.send({ type: 'grace over' }),
    );
    this.#options.connections.drain();
    if (this.#busy.size === 0) this.#step({ type: 'idle' });
  }

  #step(event: ServerEvent): void {
    const was = this.#snapshot.path;
    const recorder = { inspection: this.#options.system.inspection, actor: 'server' };
    this.#snapshot = step(this.#snapshot, event, recorder) ?? this.#snapshot;
    if (was === this.#snapshot.path) return;
    if (this.#snapshot.path === 'stopping') {
      this.#grace?.cancel();
      this.#options.stop(this.#reason);
    }
  }

  crashed(mail: ServerMail, error: unknown): void {
    const incident = this.#options.system.incident('server', error);
    if (mail.type === 'request') respond(mail.request, { ok: false, error: toWireError(error, incident) });
  }
}
