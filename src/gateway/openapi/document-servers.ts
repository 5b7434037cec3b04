/** The base addresses of an API: its servers, with their variables, and what the configuration says. */
import { isLoopback } from '../../core/http/host-guard.ts';
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import type { ApiServerOptions } from './compile-options.ts';
import { DocumentError } from './document-source.ts';

/** A base address, or the reason why there is none. */
type Base = { readonly base: string } | { readonly problem: string };

export class DocumentServers {
  readonly #options: ApiServerOptions;
  /** The address of a document that was fetched. */
  readonly #document: URL | undefined;
  readonly #root: Base;
  /** The origin of the document's own first server, which `baseUrl` replaces. */
  readonly #replaced: string | undefined;

  /** @throws {DocumentError} for a `baseUrl` that is no address */
  constructor(servers: JsonValue | undefined, options: ApiServerOptions, document: URL | undefined) {
    this.#options = options;
    this.#document = document;
    const own = this.#first(servers);
    this.#replaced = 'base' in own ? new URL(own.base).origin : undefined;
    this.#root = options.baseUrl === undefined ? own : { base: baseOf(options.baseUrl) };
  }

  /** The origins that the operator names: in the options, as the address of the document, or in a document that is a file. */
  get trusted(): readonly string[] {
    const { baseUrl, origins = [] } = this.#options;
    const found = this.#document?.origin ?? ('base' in this.#root ? this.#root.base : undefined);
    const all = [baseUrl, ...origins, found].filter((each) => each !== undefined);
    return [...new Set(all.map((each) => new URL(each).origin))];
  }

  /** @param servers those of the operation, and of its path */
  baseFor(...servers: readonly (JsonValue | undefined)[]): Base {
    const own = servers.find((each) => Array.isArray(each) && each.length > 0);
    // A document without servers of its own is that of one server, which the configuration names.
    if (own === undefined || (this.#options.baseUrl !== undefined && this.#replaced === undefined)) return this.#root;
    const found = this.#first(own);
    if ('problem' in found || 'problem' in this.#root) return found;
    const { origin } = new URL(found.base);
    if (origin === this.#replaced && this.#options.baseUrl !== undefined)
      return { base: `${new URL(this.#root.base).origin}${new URL(found.base).pathname.replace(/\/+$/, '')}` };
    const allowed = [
      new URL(this.#root.base).origin,
      ...(this.#options.origins ?? []).map((each) => new URL(each).origin),
    ];
    if (allowed.includes(origin)) return found;
    return { problem: `the server is ${origin}. Add it to origins if the credentials may be sent there` };
  }

  /** The first server with `https`, else the first one that may be used. */
  #first(servers: JsonValue | undefined): Base {
    const given = Array.isArray(servers) && servers.length > 0 ? servers : [{ url: '/' }];
    const bases = given.filter(isJsonObject).map((server) => this.#base(server));
    const usable = bases.flatMap((base) => ('base' in base ? base : []));
    return usable.find(({ base }) => base.startsWith('https:')) ?? usable[0] ?? bases[0] ?? { problem: NO_SERVER };
  }

  #base({ url, variables }: JsonObject): Base {
    if (typeof url !== 'string') return { problem: NO_SERVER };
    let missing: string | undefined;
    const filled = url.replace(/\{([^{}]*)\}/g, (_, name: string) => {
      const variable = isJsonObject(variables) ? variables[name] : undefined;
      const value = this.#options.variables?.[name] ?? (isJsonObject(variable) ? variable.default : undefined);
      if (typeof value !== 'string' && typeof value !== 'number') missing ??= name;
      return String(value);
    });
    if (missing !== undefined) return { problem: `the server ${url} has the variable ${missing}. Set it in variables` };
    if (!URL.canParse(filled, this.#document?.href)) return { problem: NO_SERVER };
    const address = new URL(filled, this.#document?.href);
    if (address.protocol !== 'https:' && address.protocol !== 'http:') return { problem: NO_SERVER };
    if (address.protocol === 'http:' && !isLoopback(address.hostname) && address.origin !== this.#document?.origin)
      return { problem: `the server ${address.origin} is not encrypted. Set baseUrl to its https address` };
    return { base: baseOf(address) };
  }
}

const NO_SERVER = 'the document names no server with an address. Set baseUrl';

/** @throws {DocumentError} */
function baseOf(given: string | URL): string {
  const expected = 'baseUrl: expected an address such as https://api.example.com/v1';
  if (!URL.canParse(String(given))) throw new DocumentError(`${expected}, got ${String(given).slice(0, 100)}`);
  const { protocol, username, password, origin, pathname } = new URL(given);
  if (!/^https?:$/.test(protocol) || username !== '' || password !== '')
    throw new DocumentError(`${expected}, without credentials`);
  return `${origin}${pathname.replace(/\/+$/, '')}`;
}
