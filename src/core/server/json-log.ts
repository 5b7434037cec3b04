/** Operator logs for programs: lines of JSON, and loggers with the interface of pino. */
import { hostname } from 'node:os';
import { systemClock } from '../kernel/clock.ts';
import type { LogFields, OperatorLog } from '../kernel/operator-log.ts';
import type { JsonValue } from '../protocol/json.ts';
import { writeJson } from '../protocol/json-text.ts';

/** The levels of pino, a common format for logs of JSON lines. */
const PINO_LEVELS = { info: 30, warning: 40, error: 50 } as const;

/**
 * Returns a log of JSON lines in the format of pino: `level` (30, 40, 50), `time`, `pid`, `hostname`, `msg`, and the
 * fields of {@link LogFields}. The stack of an error is in `err.stack`, not in `msg`.
 *
 * @param write receives each line with its line end. Default: stderr, because stdout may belong to the protocol
 * @example const server = createServer({ name: 'orders', version: '1.0.0', log: jsonLog() });
 */
export function jsonLog(write: (line: string) => void = (line) => void process.stderr.write(line)): OperatorLog {
  const host = hostname();
  return (level, message, fields) => {
    const line: Record<string, JsonValue> = {
      level: PINO_LEVELS[level],
      time: systemClock.date(),
      pid: process.pid,
      hostname: host,
      ...plainFields(fields),
      msg: sentence(message, fields),
    };
    write(`${writeJson(line)}\n`);
  };
}

/** The part of pino's interface that {@link fromPino} uses. */
export interface PinoLogger {
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/**
 * Returns a log that writes through a logger of pino, or one with its interface, such as `request.log` of Fastify.
 *
 * @example const server = createServer({ name: 'orders', version: '1.0.0', log: fromPino(pino()) });
 */
export function fromPino(logger: PinoLogger): OperatorLog {
  return (level, message, fields) =>
    logger[level === 'warning' ? 'warn' : level](forPino(fields), sentence(message, fields));
}

function plainFields({ err, ...fields }: Partial<LogFields> = {}): Record<string, JsonValue> {
  return { ...fields, ...(err === undefined ? {} : { err: { ...err } }) };
}

/** Pino's serializer of `err` takes the type of an error from its constructor, or else from `name`. */
function forPino({ err, ...fields }: Partial<LogFields> = {}): object {
  if (err === undefined) return fields;
  const { type, message, stack } = err;
  const error: object = Object.create(null, { name: { value: type } });
  return { ...fields, err: Object.assign(error, { type, message, stack }) };
}

/** The first line of a message whose other lines are the stack of its error. */
function sentence(message: string, fields: LogFields | undefined): string {
  return fields?.err === undefined ? message : (message.split('\n', 1)[0] ?? message);
}
