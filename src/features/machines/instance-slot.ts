/** A schedule of the instances of a machine, and one of its slots in a mailbox. Types only. */
import type { DueSlot, SlotPlan } from '../schedules/schedule-slots.ts';

/** A schedule of the instances of a machine. */
export interface InstanceSchedule extends SlotPlan {
  readonly event: string;
}

/** A slot of an instance, in its mailbox. */
export interface InstanceSlot {
  readonly schedule: string;
  readonly slot: DueSlot;
}
