/** An API that an OpenAPI document describes, as the target of a mount. */
import { resolve } from 'node:path';
import { sha256 } from '../../core/kernel/sha256.ts';
import { describe, type JsonObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { digest } from '../../core/store/seal.ts';
import type { DirectHost, DirectTarget, DirectUpstream } from '../mounts/direct-target.ts';
import { asJson } from './document-catalogue.ts';
import { LazyOpenApi } from './lazy-openapi.ts';
import { CONFIGURABLE_API, type OpenApiOptions } from './openapi-settings.ts';

/** The member by which `isDirect` knows a target. */
const DIRECT = Symbol.for('troupe.direct');

/** Makes the target of `openapi()`. @throws {DefinitionError} for an invalid document or option */
export function apiTarget(document: string | URL | JsonObject, options: OpenApiOptions): DirectTarget {
  if (typeof document !== 'string' && (typeof document !== 'object' || document === null))
    throw new DefinitionError(`openapi: expected a path, an address or a document, got ${describe(document)}`);
  option.check('openapi: ', options, { ...CONFIGURABLE_API, auth: option.anything }, DefinitionError);
  return new OpenApiTarget(document, options);
}

class OpenApiTarget implements DirectTarget {
  readonly [DIRECT] = true;
  readonly document: string | URL | JsonObject;
  readonly options: OpenApiOptions;

  constructor(document: string | URL | JsonObject, options: OpenApiOptions) {
    this.document = document;
    this.options = options;
  }

  /** The address without its query, which may have a secret. */
  get name(): string {
    const { document } = this;
    const address = String(document);
    if (typeof document === 'object' && !(document instanceof URL)) return 'an OpenAPI document';
    return /^https?:/i.test(address) && URL.canParse(address)
      ? new URL(address).origin + new URL(address).pathname
      : address;
  }

  get key(): string {
    const { document } = this;
    // A catalogue that was stored with other policies would let calls run unapproved.
    const policies = Object.entries(this.options.operations ?? {}).filter(([, { approve }]) => approve !== undefined);
    const more = policies.length === 0 ? [] : [digest(asJson(Object.fromEntries(policies)))];
    if (typeof document === 'object' && !(document instanceof URL)) return digest(['openapi', document, ...more]);
    const text = String(document);
    return sha256(`openapi\0${/^[a-z]+:\/\//i.test(text) ? text : resolve(text)}${more.join('')}`);
  }

  open(host: DirectHost): DirectUpstream {
    return new LazyOpenApi(this.document, this.options, host);
  }
}
