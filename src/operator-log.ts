/** The operator log: one line for each event that the person who runs the server must know about. */
import { messageOf } from './protocol/json.ts';

export type OperatorLog = (level: 'info' | 'warning' | 'error', message: string) => void;

/** Makes a log that may throw safe: its failures go to stderr, and the caller continues. */
export function guardLog(log: OperatorLog): OperatorLog {
  return (level, message) => {
    try {
      log(level, message);
    } catch (error) {
      stderrLog('error', `the server's own log threw (${messageOf(error)}) for: ${level}: ${message}`);
    }
  };
}

/** Writes one line to stderr: stdout may belong to the protocol. */
export const stderrLog: OperatorLog = (level, message) => {
  process.stderr.write(`troupe ${level}: ${message}\n`);
};
