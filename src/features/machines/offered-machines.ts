/** The machines that a server offers for handles, by name. */
import { HandleError } from './handle-error.ts';
import type { MachineKind } from './machine-definition.ts';

export class OfferedMachines {
  readonly #kinds = new Map<string, MachineKind>();

  /** Offers a machine, and replaces one of the same name. */
  set(kind: MachineKind): void {
    this.#kinds.set(kind.name, kind);
  }

  /** @returns false if there is no such machine */
  delete(name: string): boolean {
    return this.#kinds.delete(name);
  }

  all(): Iterable<MachineKind> {
    return this.#kinds.values();
  }

  get(name: string): MachineKind | undefined {
    return this.#kinds.get(name);
  }

  /**
   * Returns the machine that is currently offered under this name.
   *
   * @throws {HandleError} if there is none
   */
  kindOf(name: string): MachineKind {
    const kind = this.#kinds.get(name);
    if (kind) return kind;
    throw new HandleError('unknown', `this server has no machine "${name}"`);
  }
}
