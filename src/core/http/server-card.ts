/**
 * The card of a server over HTTP, and the catalogue that names it, for clients and registries that look for servers (SEP-2127, a draft).
 * Experimental: all names and paths of the draft are here.
 */
import { type JsonObject, shortened } from '../protocol/json.ts';
import * as option from '../protocol/option-rows.ts';
import { SUPPORTED_REVISIONS } from '../protocol/revisions.ts';
import type { Implementation } from '../protocol/types.ts';
import type { Headers } from './http-message.ts';

/** The card of a server. It is served to everybody, and has nothing that is not an option. */
export interface ServerCardOptions {
  /**
   * The address of the MCP endpoint for clients, such as `https://mcp.example.com/mcp`. Default: https, the first name of
   * `allowedHosts` and `path`.
   */
  readonly url?: string;
  /** The name: a domain backwards, a slash, and a name. Default: the host of `url` backwards, and the name of the server. */
  readonly name?: string;
  /** The path of the catalogue. Default `/.well-known/ai-catalog.json`; `false`: none. */
  readonly catalog?: string | false;
}

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json';
const CARD_TYPE = 'application/mcp-server-card+json';
/** The path of a card, below that of its endpoint. */
const CARD_PATH = '/server-card';
const CATALOG_PATH = '/.well-known/ai-catalog.json';
const CATALOG_TYPE = 'application/ai-catalog+json';
const CATALOG_VERSION = '1.0';
const NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;
const LONGEST_NAME = 200;
/** The longest title and description. */
const LONGEST_TEXT = 100;

/** A page of any site may read a card. */
const OPEN: Headers = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': 'GET, HEAD',
  'access-control-allow-headers': 'Content-Type, If-None-Match',
  'access-control-expose-headers': 'ETag',
  'cache-control': 'public, max-age=3600',
  'x-content-type-options': 'nosniff',
};

const PATH = option.expected(
  'a path such as "/.well-known/ai-catalog.json", or false',
  (value) => value === false || (typeof value === 'string' && /^\/[\w\-.~/]+$/.test(value)),
);
const rows: option.Rows<ServerCardOptions> = {
  url: option.expected('an https address without a query', (value) => {
    const url = typeof value === 'string' && URL.canParse(value) ? new URL(value) : undefined;
    return url?.protocol === 'https:' && url.search === '' && url.hash === '' && url.username === '';
  }),
  name: option.expected(
    'a domain backwards, a slash and a name, such as "com.example/shop"',
    (value) => typeof value === 'string' && value.length <= LONGEST_NAME && NAME.test(value),
  ),
  catalog: PATH,
};
const group = option.group('true, or { url, name, catalog }', rows);

/** The row of the option `card`. */
export const cardRow: option.Check = (value) => (typeof value === 'boolean' ? undefined : group(value));

/** A document of a card. */
export interface CardDocument {
  readonly headers: Headers;
  readonly body: JsonObject;
}

interface CardPlace {
  readonly card?: boolean | ServerCardOptions | undefined;
  readonly allowedHosts?: readonly string[] | undefined;
  readonly path: string;
}

/** The address of an endpoint by its options. @throws {TypeError} if they have none */
function addressOf({ card, allowedHosts, path }: CardPlace): string {
  const given = typeof card === 'object' ? card.url : undefined;
  const [host] = allowedHosts ?? [];
  if (given !== undefined) return given;
  if (host !== undefined) return new URL(path, `https://${host}`).href;
  throw new TypeError(
    'http: card: expected the address of this server for clients, got none. Set allowedHosts: ["mcp.example.com"], or card: { url: "https://mcp.example.com/mcp" }',
  );
}

/** Checks that a card can have an address. @throws {TypeError} */
export function checkCard(place: CardPlace): void {
  if (place.card) addressOf(place);
}

/** The documents of a server by their paths; none without the option `card`. */
export function cardDocuments(place: CardPlace, info: Implementation): ReadonlyMap<string, CardDocument> {
  const { card, path } = place;
  if (!card) return new Map();
  const url = addressOf(place);
  const { hostname, pathname } = new URL(url);
  const options = card === true ? {} : card;
  const own = info.name.replace(/[^a-zA-Z0-9._-]+/g, '-');
  const name = options.name ?? `${hostname.split('.').reverse().join('.')}/${own}`.slice(0, LONGEST_NAME);
  const { title, version, description = `The MCP server ${info.name}.`, websiteUrl, icons } = info;
  const body: JsonObject = {
    ...{ $schema: SCHEMA, name, version, description: shortened(description, LONGEST_TEXT - 1) },
    ...(title === undefined ? {} : { title: shortened(title, LONGEST_TEXT - 1) }),
    ...(websiteUrl === undefined ? {} : { websiteUrl }),
    ...(icons === undefined ? {} : { icons: icons.map((icon) => ({ ...icon })) }),
    remotes: [{ type: 'streamable-http', url, supportedProtocolVersions: [...SUPPORTED_REVISIONS] }],
  };
  const found: CardDocument = { headers: { ...OPEN, 'content-type': CARD_TYPE }, body };
  // A proxy may remove a part of the path.
  const documents = new Map([pathname, path].map((each) => [each.replace(/\/$/, '') + CARD_PATH, found]));
  if (options.catalog === false) return documents;
  const entry = {
    ...{ identifier: `urn:air:${hostname}:mcp:${own}`, type: CARD_TYPE },
    url: url.replace(/\/$/, '') + CARD_PATH,
  };
  return documents.set(options.catalog ?? CATALOG_PATH, {
    headers: { ...OPEN, 'content-type': CATALOG_TYPE },
    body: { specVersion: CATALOG_VERSION, entries: [entry] },
  });
}
