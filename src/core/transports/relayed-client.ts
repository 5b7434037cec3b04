/** Receives the lines of one client, which may come through a relay (`troupe run`, `troupe attach`), and sends the server's reports to that relay. */
import type { ConnectionId } from '../messages/connection-events.ts';
import { asideOf, isAside, type RelayMail, type RelayReport, readRelayMail } from './relay.ts';
import type { TransportHost } from './transport.ts';

interface RelayedClientOptions {
  readonly host: TransportHost;
  readonly connection: ConnectionId;
  /** Sends one line to the client, or to its relay. */
  send(text: string): void;
}

/** Emits lines on the bus. After a relay's greeting, it also reports rejected lines. */
export class RelayedClient {
  readonly #options: RelayedClientOptions;
  /** The number of lines so far, including skipped ones. */
  #lines = 0;
  /** The server is processing the last line. */
  #working = false;
  /** The last list of tools that was sent. */
  #repeatable: readonly string[] | undefined;
  /** The tools have changed since that list. */
  #stale = false;
  #slow = false;
  /** The bus subscriptions; undefined before a relay's greeting. */
  #listening: (() => void)[] | undefined;

  constructor(options: RelayedClientOptions) {
    this.#options = options;
  }

  /** A line has arrived. */
  line(text: string): void {
    const mail = isAside(text) ? readRelayMail(text) : undefined;
    if (mail) return this.#receive(mail);
    const { host, connection } = this.#options;
    this.#lines += 1;
    this.#working = true;
    host.bus.emit('connection.text', { connection, text });
    this.#working = false;
  }

  /** A line was skipped. */
  unreadable(reason: 'too long' | 'not UTF-8', bytes: number, head: string): void {
    const { host, connection } = this.#options;
    this.#lines += 1;
    this.#working = true;
    host.bus.emit('connection.unreadable', { connection, reason, bytes, head });
    this.#working = false;
  }

  /** The client reads slowly: lists of tools wait, and only the last one is sent. */
  slow(): void {
    this.#slow = true;
  }

  drained(): void {
    this.#slow = false;
    if (this.#listening && this.#stale) this.#sendTools();
  }

  /** The connection has ended. */
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
          this.#report({ type: 'rejected', line: this.#lines, id: event.id });
      }),
      host.bus.on('tools.changed', () => {
        // Sends one list for all changes of a turn, for example when many modules load.
        if (this.#stale) return;
        this.#stale = true;
        host.clock.soon(() => this.#sendTools());
      }),
    ];
    this.#report({ type: 'limit', maxMessageBytes: host.maxMessageBytes });
    this.#stale = true;
    this.#sendTools();
  }

  #sendTools(): void {
    if (this.#slow) return;
    this.#stale = false;
    const tools = this.#options.host.repeatableTools();
    if (this.#repeatable?.join('\n') === tools.join('\n')) return;
    this.#repeatable = tools;
    this.#report({ type: 'repeatable', tools });
  }

  #report(report: RelayReport): void {
    this.#options.send(asideOf(report));
  }
}
