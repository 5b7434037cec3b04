/** The id of the actor that a write belongs to. */
import type { Write } from './store.ts';

export function writtenActor(write: Write): string {
  switch (write.type) {
    case 'actor':
      return write.actor.id;
    case 'timer':
      return write.timer.actor;
    case 'dead letter':
      return write.letter.actor;
    default:
      return write.actor;
  }
}
