/** The page of an app: its text, its address with a hash of the text, and the resources that serve it. */
import { readFileSync } from 'node:fs';
import { extname, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { Listed } from '../../core/messages/registry-messages.ts';
import { describe, type JsonObject, messageOf } from '../../core/protocol/json.ts';
import { PAGE_TYPE } from '../../core/protocol/views.ts';
import type { ResourceDefinition } from '../../core/registry/define.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { launcher } from '../../core/server/launcher.ts';
import { type AppDefinition, uiOfPage } from './app-options.ts';

/** Milliseconds for which clients may keep a page: its address changes with its text. */
const PAGE_TTL_MS = 86_400_000;
/** Length of the hash in an address, in hexadecimal digits. */
const HASH_LENGTH = 8;

/** The beginning of an HTML5 document. */
const DOCTYPE = /^\s*<!doctype html[^>]*>/i;

/** A resource that serves a page, and who finds it in a list. */
export type PageResource = ResourceDefinition & { readonly listed: Listed; readonly opener?: string };

export interface ServedPage {
  /** Of the page, such as `ui://shop/board.1f0c9a3e.html`. */
  readonly uri: string;
  readonly resources: readonly PageResource[];
}

interface PageSource {
  /** The name in the address. */
  readonly name: string;
  /** The text that is hashed: it changes with the page. */
  readonly identity: string;
  /** Made when a client first reads the page. */
  text(): string | Promise<string>;
  readonly ui: JsonObject;
  readonly shown: Pick<ResourceDefinition, 'title' | 'description' | 'icons'>;
  /** The tool whose rules decide about the page; undefined for a page that is no tool's own. */
  readonly opener?: string;
}

/**
 * Makes the resources of a page. Hosts keep views by their addresses and ask for old addresses days later: a template answers
 * every other hash with the current page.
 */
export function pageOf(server: string, { name, identity, text, ui, shown, opener }: PageSource): ServedPage {
  const hash = sha256(identity, 'hex').slice(0, HASH_LENGTH);
  const prefix = `ui://${encodeURIComponent(server.toWellFormed())}/${name}`;
  const uri = `${prefix}.${hash}.html`;
  const handler: ResourceDefinition['handler'] = async (asked) => ({
    contents: [{ uri: asked.uri, mimeType: PAGE_TYPE, text: await text(), _meta: { ui } }],
    ttlMs: PAGE_TTL_MS,
    cacheScope: 'public',
  });
  const shared = {
    ...shown,
    name,
    mimeType: PAGE_TYPE,
    meta: { ui },
    handler,
    ...(opener === undefined ? {} : { opener }),
  };
  return {
    uri,
    resources: [
      { uri, ...shared, listed: 'views' },
      { uri: `${prefix}.{hash}.html`, ...shared, listed: 'none' },
    ],
  };
}

/**
 * Reads the page of an author's app.
 *
 * @throws {DefinitionError} if the page cannot be read, or is no HTML5 document
 */
export function authorsPage(server: string, app: AppDefinition): ServedPage {
  const { name, csp, title, description, icons } = app;
  const written = readPage(app);
  let text: Promise<string> | undefined;
  const shown = {
    ...(title === undefined ? {} : { title }),
    ...(description === undefined ? {} : { description }),
    ...(icons === undefined ? {} : { icons }),
  };
  return pageOf(server, {
    name,
    identity: `${JSON.stringify(csp ?? {})}${written}`,
    text: () => (text ??= guarded(written, csp)),
    ui: uiOfPage(app),
    shown,
  });
}

/** Imports the parser of pages on demand: most servers have no app. */
async function guarded(written: string, csp: AppDefinition['csp']): Promise<string> {
  const { withPolicy } = await import('./page-policy.ts');
  return withPolicy(written, csp);
}

/** The path of an app's script. */
export function entryPath(entry: string | URL): string {
  return entry instanceof URL || entry.startsWith('file:') ? fileURLToPath(entry) : resolve(entry);
}

/** The path of the page that `troupe build` writes for a script. */
export function builtPath(source: string): string {
  return `${source.slice(0, source.length - extname(source).length)}.view.html`;
}

/** @throws {DefinitionError} if the page was not built */
function readBundled(name: string, entry: string | URL): string {
  const source = entryPath(entry);
  const text = launcher()?.page?.(source);
  if (text !== undefined) return text;
  const built = builtPath(source);
  try {
    return readFileSync(built, 'utf8');
  } catch {
    throw new DefinitionError(
      `app "${name}": entry: ${built} is missing. Make it with: troupe build FILE, where FILE is the module of the server`,
    );
  }
}

function readPage({ name, html, entry }: AppDefinition): string {
  if (entry !== undefined) return readBundled(name, entry);
  let text: unknown;
  try {
    text = html instanceof URL ? readFileSync(html, 'utf8') : typeof html === 'function' ? html() : html;
  } catch (error) {
    throw new DefinitionError(`app "${name}": html: cannot read the page: ${messageOf(error)}`);
  }
  if (typeof text !== 'string')
    throw new DefinitionError(
      `app "${name}": html: expected the function to return the text of a page, got ${describe(text)}`,
    );
  if (!DOCTYPE.test(text))
    throw new DefinitionError(
      `app "${name}": html: expected an HTML5 document, which begins with <!doctype html>, got ${describe(text.slice(0, 40))}`,
    );
  // After a byte order mark, browsers that get the page as a string find no document type.
  return text.replace(/^\uFEFF/, '').replace(/\r\n?/g, '\n');
}
