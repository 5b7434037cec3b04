/** The log of the operator: one line for each thing that a person who runs the server must know. */
import { messageOf } from './protocol/json.ts';

export type OperatorLog = (level: 'info' | 'warning' | 'error', message: string) => void;

/** A log that may throw: what it would not take goes to stderr, and whoever logged goes on. */
export function guardLog(log: OperatorLog): OperatorLog {
  return (level, message) => {
    try {
      log(level, message);
    } catch (error) {
      stderrLog('error', `the server's own log threw (${messageOf(error)}); it was told: ${level}: ${message}`);
    }
  };
}

/** One line on stderr: stdout may belong to the protocol. */
export const stderrLog: OperatorLog = (level, message) => {
  process.stderr.write(`troupe ${level}: ${message}\n`);
};
