/** The registration of machines, as authors use it. Types only: the declarations of the package do not contain its implementation. */
import type { RegisteredElement } from '../../core/registry/registration.ts';
import type { DeadLetter } from '../../core/store/store.ts';
import type { AnyMachine } from './define-machine.ts';
import type { HandleEvent, HandleView } from './handle-messages.ts';
import type { Caller, SendOptions } from './machine-definition.ts';

/** The machines of a server, for its other features. */
export interface MachinesService extends MachineRegistration {
  /**
   * Sends an event to the instance of a key, at whichever node owns it, and creates the instance if there is none. The store is open.
   *
   * @throws {HandleError}
   */
  sendTo(machine: string, key: string, event: HandleEvent, caller: Caller, options?: SendOptions): Promise<HandleView>;
  /** The same from the program. @throws {TypeError | HandleError} */
  send(machine: string, key: string, event: object, options: SendOptions): Promise<HandleView>;
  /** Delivers the message of a dead letter again. @returns false for another letter @throws {Error} if it is not accepted */
  again(letter: DeadLetter): Promise<boolean>;
}

/** Registration of machines at run time. Visible changes reach clients as changed lists of tools and resources. */
export interface MachineRegistration {
  /**
   * Registers a machine. @throws {DefinitionError | SchemaError | TypeError} if the definition is invalid, or a name is
   * taken, also by a tool
   */
  register(definition: AnyMachine): RegisteredElement;
  /**
   * Replaces a machine. Its instances are migrated, or continue on the machine with which they started. @throws as
   * `register`, or if no such machine exists
   */
  update(definition: AnyMachine): void;
  /** Offers a hidden machine again. */
  enable(name: string): void;
  /** Hides a machine from lists and calls without removing it. */
  disable(name: string): void;
  /** Removes a machine. Its instances stay stored but unreachable until they expire. */
  remove(name: string): void;
  /** Replaces all machines of one source, or rejects all of them. */
  replaceSource(source: string, definitions: readonly AnyMachine[]): void;
  /** The registered definitions as their authors wrote them. */
  definitions(): readonly AnyMachine[];
}
