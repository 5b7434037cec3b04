/** The lines of one client, which may come through a relay (`troupe run`, `troupe attach`): that relay learns what it must know of the server. */
import type { ConnectionId } from '../messages/connection-events.ts';
import { asideOf, isAside, type RelayMail, type RelayReport, readRelayMail } from './relay.ts';
import type { TransportHost } from './transport.ts';

export interface RelayedClientOptions {
  readonly host: TransportHost;
  readonly connection: ConnectionId;
  /** Sends one line to the client, or to its relay. */
  send(text: string): void;
}

/** Passes lines on to the bus. It counts them and reports rejected ones once a relay has sent its greeting. */
export class RelayedClient {
  readonly #options: RelayedClientOptions;
  /** Lines of the client so far, those included that were no text or too long. */
  #lines = 0;
  /** The core is at work on the line that was counted last. */
  #working = false;
  /** The tools of the last list that was sent. */
  #repeatable: readonly string[] | undefined;
  /** The tools have changed since that list. */
  #stale = false;
  #slow = false;
  /** Absent where no relay has sent its greeting. */
  #listening: (() => void)[] | undefined;

  constructor(options: RelayedClientOptions) {
    this.#options = options;
  }

  /** A line came in. */
  line(text: string): void {
    const mail = isAside(text) ? readRelayMail(text) : undefined;
    if (mail) return this.#receive(mail);
    const { host, connection } = this.#options;
    this.#lines += 1;
    this.#working = true;
    host.bus.emit('connection.text', { connection, text });
    this.#working = false;
  }

  /** A line came in that was skipped. */
  unreadable(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void {
    const { host, connection } = this.#options;
    this.#lines += 1;
    this.#working = true;
    host.bus.emit('connection.unreadable', { connection, reason, bytes, head });
    this.#working = false;
  }

  /** The client reads slowly: a list of tools waits, and only the last one is sent. */
  slow(): void {
    this.#slow = true;
  }

  drained(): void {
    this.#slow = false;
    if (this.#listening && this.#stale) this.#tellTools();
  }

  /** The connection is over. */
  end(): void {
    for (const stop of this.#listening ?? []) stop();
    this.#listening = [];
  }

  #receive(mail: RelayMail): void {
    if (mail.type === 'unreadable') this.unreadable(mail.reason, mail.bytes, mail.head);
    else if (!this.#listening) this.#greet();
  }

  #greet(): void {
    const { host, connection } = this.#options;
    this.#listening = [
      host.bus.on('connection.rejected', (event) => {
        if (event.connection === connection && this.#working)
          this.#tell({ type: 'rejected', line: this.#lines, id: event.id });
      }),
      host.bus.on('tools.changed', () => {
        // Many tools may change in one turn, as when a folder of modules is loaded.
        if (this.#stale) return;
        this.#stale = true;
        host.clock.soon(() => this.#tellTools());
      }),
    ];
    this.#tell({ type: 'limit', maxMessageBytes: host.maxMessageBytes });
    this.#stale = true;
    this.#tellTools();
  }

  #tellTools(): void {
    if (this.#slow) return;
    this.#stale = false;
    const tools = this.#options.host.repeatableTools();
    if (this.#repeatable?.join('\n') === tools.join('\n')) return;
    this.#repeatable = tools;
    this.#tell({ type: 'repeatable', tools });
  }

  #tell(mail: RelayReport): void {
    this.#options.send(asideOf(mail));
  }
}
