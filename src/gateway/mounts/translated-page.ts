/** Puts a script into the page of an upstream's view, which translates the names in the messages of the page. */
import { readFileSync } from 'node:fs';
import { packageFile } from '../../core/kernel/package-files.ts';
import { isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { copyNumbers } from '../../core/protocol/json-text.ts';
import type { PageNames } from './page-names.ts';

/** Hosts keep a page for the time of its hints, and the names in it change with the lists of its upstream. */
const PAGE_TTL_MS = 300_000;
/** A byte order mark, comments as browsers read them, and the document type may precede the first script. */
const BEGINNING = /^\uFEFF?(?:\s|<!--(?!-?>)(?:(?!--!?>)[\s\S])*--!?>)*(?:<!doctype[^>]*>)?/i;

let script: string | undefined;

/** @returns whether a result of `resources/read` may have a page: hosts open no other address in a frame */
export function isPageUri(uri: string): boolean {
  return uri.startsWith('ui://');
}

/**
 * Returns the result of a read with the script in each page.
 *
 * @param result of `resources/read`
 * @throws {Error} if the package has no script: it is not built
 */
export function withTranslation(result: JsonObject, names: PageNames): JsonObject {
  const { contents, ttlMs } = result;
  if (!Array.isArray(contents)) return result;
  return copyNumbers(result, {
    ...result,
    contents: contents.map((page) => (isJsonObject(page) ? translated(page, names) : page)),
    ...(typeof ttlMs === 'number' && ttlMs > PAGE_TTL_MS ? { ttlMs: PAGE_TTL_MS } : {}),
  });
}

function translated(page: JsonObject, names: PageNames): JsonObject {
  const { mimeType, text, blob } = page;
  if (typeof mimeType !== 'string' || !/^text\/html\b/i.test(mimeType)) return page;
  if (typeof text === 'string') return { ...page, text: withScript(text, names) };
  if (typeof blob !== 'string') return page;
  const html = withScript(Buffer.from(blob, 'base64').toString('utf8'), names);
  return { ...page, blob: Buffer.from(html, 'utf8').toString('base64') };
}

/** The script stands before the policy of the page, which does not apply to it, and before every script of the page. */
function withScript(html: string, names: PageNames): string {
  script ??= readFileSync(packageFile('dist/apps/mounted.js'), 'utf8');
  const at = BEGINNING.exec(html)?.[0].length ?? 0;
  const data = JSON.stringify(names).replaceAll('&', '&amp;').replaceAll('"', '&quot;');
  return `${html.slice(0, at)}<script data-names="${data}">${script}</script>${html.slice(at)}`;
}
