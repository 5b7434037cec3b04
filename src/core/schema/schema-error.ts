/** The error for a schema that is rejected at registration: the place, the problem and the fix. */
import { clip } from './excerpts.ts';

/**
 * Thrown if a schema cannot be registered.
 * @param where the owner of the schema, such as `tool "add": input`
 * @param at JSON Pointer of the invalid place, such as `#/properties/a`; `#` for the root
 * @param problem what is wrong, with the value that came
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
