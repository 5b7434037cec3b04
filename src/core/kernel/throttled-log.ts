/** The operator log with a rate, for messages that a peer can cause as often as it likes. */
import type { Clock } from './clock.ts';
import type { OperatorLogLevel } from './operator-log.ts';
import { TokenBucket } from './token-bucket.ts';

/** Maximum number of messages at once, and then in a second. */
const BURST = 20;
const PER_SECOND = 0.1;

/** Returns the log. It counts the messages that it drops, and says their number with the next message. */
export function throttledLog<Fields extends readonly unknown[]>(
  log: (level: OperatorLogLevel, message: string, ...fields: Fields) => void,
  clock: Clock,
): typeof log {
  const bucket = new TokenBucket(PER_SECOND, BURST, clock.now());
  let dropped = 0;
  return (level, message, ...fields) => {
    if (bucket.take(clock.now()) > 0) {
      dropped += 1;
      return;
    }
    const more = dropped === 0 ? '' : ` (${dropped} messages before this one were not logged)`;
    dropped = 0;
    log(level, `${message}${more}`, ...fields);
  };
}
