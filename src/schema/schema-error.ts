/** The error of a schema that is refused at registration: where it is wrong, what it has, and how to put it right. */
import { clip } from './excerpts.ts';

/**
 * Thrown when a schema cannot be registered.
 *
 * @param where whose schema it is, such as `tool "add": input`
 * @param at JSON Pointer of the offending place, such as `#/properties/a`; `#` for the root
 * @param problem what is wrong, with what came
 * @param fix what to write instead
 */
export class SchemaError extends Error {
  override readonly name = 'SchemaError';
  readonly at: string;

  constructor(where: string, at: string, problem: string, fix: string, cause?: unknown) {
    const place = at === '#' ? '' : `at ${clip(at, 200)}: `;
    super(`${where}: ${place}${problem}; ${fix}`, cause === undefined ? {} : { cause });
    this.at = at;
  }
}
