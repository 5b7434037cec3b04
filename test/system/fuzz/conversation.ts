/** A conversation that is held to the model, message by message, and to what must never be told. */
import { hostname, tmpdir } from 'node:os';
import { fileURLToPath } from 'node:url';
import type { MemoryPeer, Server } from '../../../src/index.ts';
import { Model } from './model.ts';

/** What must never be in an answer, unless the client said it first. */
const SECRETS = [
  fileURLToPath(new URL('../../../', import.meta.url)).slice(0, -1),
  process.execPath,
  hostname(),
  tmpdir(),
];
const STACK = /\n\s+at |node:internal|node_modules|\.[cm]?[jt]s:\d+/;

/** One connection, each text of which the {@link Model} has seen. */
export class Conversation {
  readonly model = new Model();
  readonly sent: string[] = [];
  readonly got: string[] = [];
  readonly #peer: MemoryPeer;
  /** The bus guards its listeners: what is wrong is kept, and thrown where it is seen. */
  #wrong: Error | undefined;

  constructor(peer: MemoryPeer) {
    this.#peer = peer;
    this.#peer.onText((text) => {
      this.got.push(text);
      try {
        this.model.receives(text);
        this.#leaks(text);
      } catch (error) {
        this.#wrong ??= new Error(`${String(error)}\n  it sent ${text.slice(0, 500)}`);
      }
    });
  }

  send(text: string): void {
    this.sent.push(text);
    this.model.sends(text);
    this.#peer.send(text);
    this.model.heard();
    this.look();
  }

  /** @throws {Error} the first thing that was wrong */
  look(): void {
    if (this.#wrong) throw this.#wrong;
  }

  async close(): Promise<void> {
    this.#peer.close();
    await this.#peer.closed;
    this.look();
  }

  #leaks(text: string): void {
    const secret = SECRETS.find((each) => text.includes(each) && !this.sent.some((said) => said.includes(each)));
    if (secret) throw new Error(`it tells the client "${secret}"`);
    if (STACK.test(text) && !this.sent.some((said) => STACK.test(said))) throw new Error('it tells the client a stack');
  }
}

/** The actors that have something in flight, as the inspector shows them. */
export function busy(server: Server): string[] {
  const states: string[] = [];
  const stop = server.inspect((record) => {
    if (record.type !== 'state') return;
    const idle = record.actor.startsWith('requests/')
      ? record.state.endsWith('(0)')
      : !record.actor.startsWith('executor/') || record.state === 'idle';
    if (!idle) states.push(`${record.actor}: ${record.state}`);
  });
  stop();
  return states;
}
