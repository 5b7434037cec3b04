/** Reads resources for views, as `resources/read` does, and names the version of what it has read. */

import type { Context } from '../../core/execution/context.ts';
import type { ResourceExecution, ResourceImplementation } from '../../core/execution/execution.ts';
import { ErrorCode, ProtocolError } from '../../core/protocol/errors.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import type { Resource, ResourceContents, ResourceTemplate } from '../../core/protocol/types.ts';
import type { Catalogue } from '../../core/registry/catalogue.ts';
import { resolver } from '../../core/registry/resolve.ts';
import { digest } from '../../core/store/seal.ts';

/** A resource as a view shows it. */
export interface ReadVersion {
  /** Differs if the resource does. */
  readonly version: string | number;
  /** The members of the result of `troupe_watch`. */
  readonly data: JsonObject;
}

/** Length of the version of a resource that counts none, in characters. */
const VERSION_LENGTH = 16;

export class ResourceReads {
  readonly #execution: ResourceExecution;
  readonly #resolve: ReturnType<typeof resolver>;
  readonly #implementations: ReadonlyMap<number, ResourceImplementation>;

  /** @param implementations of the resources of the catalogue, by their references */
  constructor(
    catalogue: Catalogue<Resource | ResourceTemplate>,
    implementations: ReadonlyMap<number, ResourceImplementation>,
    execution: ResourceExecution,
  ) {
    this.#resolve = resolver(catalogue);
    this.#implementations = implementations;
    this.#execution = execution;
  }

  /** @throws {ProtocolError} if there is no such resource, or the caller may not read it; any other error of its reader */
  async read(uri: string, ctx: Context): Promise<ReadVersion> {
    const { element, variables = {} } = this.#resolve(uri) ?? {};
    const implementation = element && this.#implementations.get(element.ref);
    if (!implementation) throw new ProtocolError(ErrorCode.ResourceNotFound, 'Resource not found');
    if (implementation.live) {
      const data = await implementation.live({ uri, variables }, ctx);
      return { version: data.version, data };
    }
    const { contents } = await this.#execution.execute(
      { uri, resource: element.definition, variables, implementation },
      ctx,
    );
    const data = dataOf(contents);
    return { version: digest(data).slice(0, VERSION_LENGTH), data };
  }
}

/** Members of the result of `troupe_watch` itself. An object that has one of them is the `value`. */
const RESERVED = ['changed', 'version', 'value'];

/** The members of a resource that is one JSON object; otherwise its `value`, or its contents. */
function dataOf(contents: readonly ResourceContents[]): JsonObject {
  const [only, ...more] = contents;
  const text = more.length === 0 && only && 'text' in only ? only.text : undefined;
  const value = text === undefined ? undefined : jsonIn(text);
  if (isJsonObject(value) && !RESERVED.some((name) => Object.hasOwn(value, name))) return value;
  if (value !== undefined) return { value };
  // A reader returns JSON: the codec would otherwise reject its result.
  return text === undefined ? { contents: contents as readonly JsonObject[] } : { value: text };
}

function jsonIn(text: string): JsonValue | undefined {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
