/** Records the requests that this node forwards: the client's message, the hop to the owner, the owner's messages, and the end. */
import type { Hop, HopEnd, HopRecords } from '../../messages/hop-records.ts';
import type { Inspection } from './inspection.ts';

export class InspectedHops implements HopRecords {
  readonly #inspection: Inspection;

  constructor(inspection: Inspection) {
    this.#inspection = inspection;
  }

  get cause(): number {
    return this.#inspection.on ? this.#inspection.cause : 0;
  }

  sent(connection: string, text: string, cause: number, hop: Hop): number {
    const inspection = this.#inspection;
    if (!inspection.on) return cause;
    // The codec does not read a message of a session at another node, so nothing has recorded it.
    const wire = cause || inspection.record({ type: 'wire', connection, direction: 'in', text });
    this.#because(wire, () => inspection.record({ type: 'hop', way: 'to', ...hop }));
    return wire;
  }

  message(connection: string, text: string, cause: number): void {
    const inspection = this.#inspection;
    this.#because(cause, () => inspection.record({ type: 'wire', connection, direction: 'out', text, about: cause }));
  }

  ended(cause: number, hop: Hop, end: HopEnd): void {
    const inspection = this.#inspection;
    this.#because(cause, () => inspection.record({ type: 'hop', way: 'to', ...hop, end }));
  }

  #because(cause: number, record: () => void): void {
    const inspection = this.#inspection;
    if (!inspection.on) return;
    inspection.withCause(cause, () => {
      if (inspection.full) record();
    });
  }
}
