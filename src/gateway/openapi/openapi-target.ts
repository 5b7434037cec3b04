/** `openapi()`, which each program imports: the rest of it loads with its first call. */
import type { JsonObject } from '../../core/protocol/json.ts';
import type { DirectTarget } from '../mounts/direct-target.ts';
import { apiTarget } from './api-target.ts';
import type { OpenApiOptions } from './openapi-settings.ts';

/**
 * Makes the target of a mount of an OpenAPI document: each operation becomes a tool.
 *
 * @param document a path, an `https:` address, or the document itself: OpenAPI 3.0, 3.1 or 3.2, or Swagger 2
 * @throws {DefinitionError} for an invalid document or option
 * @example
 * await server.mount('shop', openapi('https://shop.example.com/openapi.json', { readOnly: true }));
 */
export function openapi(document: string | URL | JsonObject, options: OpenApiOptions = {}): DirectTarget {
  return apiTarget(document, options);
}
