/** A connection to PostgreSQL that is opened again when it is lost. */
import { systemClock, type Timer } from '../../core/kernel/clock.ts';
import { messageOf } from '../../core/protocol/json.ts';
import { StoreError } from '../../core/store/store.ts';
import type { PostgresAddress } from './postgres-address.ts';
import { type ConnectionOptions, PostgresConnection } from './postgres-connection.ts';
import { mayConnectLater, postgresError } from './postgres-faults.ts';
import type { PrimaryTimeline } from './primary-timeline.ts';

/** Milliseconds until each further attempt; the last one repeats. */
const BACK_OFF_MS = [100, 200, 400];
/** Maximum number of attempts at a time: those to a machine that is gone hang for `connectMs`. */
const MAX_ATTEMPTS = 16;

export interface ConnectionOwner {
  /** Called with each new connection before its use. @throws {StoreError} `foreign` or `locked` end all attempts */
  prepare(connection: PostgresConnection): Promise<void>;
  up(connection: PostgresConnection): void;
  /** The connection is lost; the next attempt follows. */
  down(reason: StoreError): void;
  /** An attempt reached a database of which this process can make no use; the next attempt follows. */
  rejected?(reason: StoreError): void;
  /** There are no more attempts. */
  gaveUp(reason: StoreError): void;
}

export class ReconnectingConnection {
  readonly #address: PostgresAddress;
  readonly #options: ConnectionOptions;
  readonly #primary: PrimaryTimeline;
  readonly #owner: ConnectionOwner;
  #current: PostgresConnection | undefined;
  #closed = false;
  /** Number of attempts since the connection was lost. */
  #attempts = 0;
  /** Number of attempts that have not ended. */
  #underway = 0;
  /** True while a new connection is being prepared: one at a time, because it takes locks. */
  #preparing = false;
  #retry: Timer | undefined;

  constructor(address: PostgresAddress, options: ConnectionOptions, primary: PrimaryTimeline, owner: ConnectionOwner) {
    this.#address = address;
    this.#options = options;
    this.#primary = primary;
    this.#owner = owner;
  }

  /** The connection, while there is one. */
  get current(): PostgresConnection | undefined {
    return this.#current;
  }

  /**
   * Connects for the first time.
   *
   * @param withinMs milliseconds for all attempts together
   * @throws {StoreError} of the last attempt
   */
  async open(withinMs: number): Promise<void> {
    const end = systemClock.now() + withinMs;
    const hold = systemClock.hold();
    try {
      for (let attempt = 0; ; attempt += 1) {
        const error = await this.#connect().then(() => undefined, found);
        if (error === undefined) return;
        const wait = BACK_OFF_MS[Math.min(attempt, BACK_OFF_MS.length - 1)] ?? 0;
        if (this.#closed || !mayConnectLater(error) || systemClock.now() + wait > end)
          throw postgresError(error, `${this.#address.label}: no connection`);
        await new Promise<void>((resolve) => systemClock.after(wait, resolve));
      }
    } finally {
      hold.cancel();
    }
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#retry?.cancel();
    await this.#current?.close();
    this.#current = undefined;
  }

  async #connect(): Promise<void> {
    const connection = await PostgresConnection.open(this.#address, this.#options);
    if (this.#current || this.#preparing) return connection.abandon('another attempt was faster');
    this.#preparing = true;
    try {
      await this.#primary.admit(connection, this.#address.label);
      await this.#owner.prepare(connection);
      if (connection.failure) throw connection.failure;
      if (this.#closed) throw new StoreError('closed', `${this.#address.label} is closed`);
    } catch (error) {
      connection.abandon(messageOf(error));
      throw error;
    } finally {
      this.#preparing = false;
    }
    this.#retry?.cancel();
    this.#current = connection;
    this.#attempts = 0;
    void connection.ended.then((reason) => this.#lost(reason));
    this.#owner.up(connection);
  }

  #lost(reason: StoreError): void {
    this.#current = undefined;
    if (this.#closed) return;
    this.#owner.down(reason);
    this.#again();
  }

  /** Attempts until one succeeds. One that hangs does not hold up the next: a failover may lead that elsewhere. */
  #again(): void {
    const wait = BACK_OFF_MS[Math.min(this.#attempts, BACK_OFF_MS.length - 1)] ?? 0;
    this.#attempts += 1;
    this.#retry = systemClock.after(wait, () => {
      this.#again();
      if (!this.#preparing && this.#underway < MAX_ATTEMPTS) void this.#attempt();
    });
  }

  async #attempt(): Promise<void> {
    this.#underway += 1;
    try {
      await this.#connect();
    } catch (error) {
      if (this.#closed || this.#current) return;
      const reason = postgresError(error, `${this.#address.label}: no connection`);
      if (!mayConnectLater(error)) {
        this.#closed = true;
        this.#retry?.cancel();
        this.#owner.gaveUp(reason);
      } else if (error instanceof StoreError) this.#owner.rejected?.(reason);
    } finally {
      this.#underway -= 1;
    }
  }
}

function found(error: unknown): unknown {
  return error ?? new Error('no reason');
}
