/** A store of a test that dies at one of its writes. */
import type { Write } from '../../../../src/core/store/store.ts';
import { Disk } from '../support.ts';

export class DyingDisk extends Disk {
  #left: number;
  readonly #stores: boolean;

  constructor(at: number, stores: boolean) {
    super();
    this.#left = at;
    this.#stores = stores;
  }

  get dead(): boolean {
    return this.#left < 0;
  }

  override write(writes: readonly Write[]): Promise<void> {
    this.#left -= 1;
    if (this.#left >= 0) return super.write(writes);
    if (this.#left === -1 && this.#stores) void super.write(writes);
    return new Promise(() => {});
  }
}
