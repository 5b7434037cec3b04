/** The weight of a batch in the queue of a store. */
import type { Write } from './store.ts';

/** Its texts, and a constant for each row. */
export function lengthOfWrites(writes: readonly Write[]): number {
  let length = 0;
  for (const write of writes) length += 64 + textOf(write).length;
  return length;
}

function textOf(write: Write): string {
  switch (write.type) {
    case 'snapshot':
    case 'event':
    case 'reply':
      return write.data;
    case 'timer':
      return write.timer.data;
    case 'dead letter':
      return write.letter.mail;
    case 'actor':
    case 'timer off':
    case 'trim':
    case 'forget':
      return '';
  }
}
