/** The tools of an OpenAPI document without a mount, for the comparison with a lock file. */
import { systemClock } from '../../core/kernel/clock.ts';
import type { MountOptions } from '../mounts/mount-options.ts';
import type { PinnableDefinitions } from '../mounts/pins.ts';
import { compileDocument } from './compile-document.ts';
import { catalogueOf } from './document-catalogue.ts';
import { readOpenApi } from './document-source.ts';
import type { OpenApiOptions } from './openapi-settings.ts';

/** As the option `maxListed` of a mount. */
const MAX_OPERATIONS = 5_000;

/**
 * Reads and compiles a document.
 *
 * @param document a path or an address
 * @throws {DocumentError}
 * @example await documentDefinitions('./openapi.json', { readOnly: true });
 */
export async function documentDefinitions(
  document: string,
  options: OpenApiOptions,
  { only, except, maxListed = MAX_OPERATIONS }: Pick<MountOptions, 'only' | 'except' | 'maxListed'> = {},
): Promise<PinnableDefinitions> {
  const source = await readOpenApi(document, { clock: systemClock });
  return catalogueOf(compileDocument(source, { ...options, only, except }, maxListed), options);
}
