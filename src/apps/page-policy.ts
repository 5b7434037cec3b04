/** Puts a policy into a page, on top of that of the host: some hosts let pages reach origins that were not declared. */
import { createHash } from 'node:crypto';
import type { AppOrigins } from './app-options.ts';

/** Comments, and scripts with their attributes and text: neither contains markup. */
const NO_MARKUP = /<!--[\s\S]*?-->|<script\b([^>]*)>([\s\S]*?)<\/script\s*>/gi;
const OWN_POLICY = /<meta\b[^>]*http-equiv\s*=\s*["']?content-security-policy/i;
const DOCTYPE = /^\s*<!doctype html[^>]*>/i;
/** The part of a page before everything that the policy must precede. Without the tags, browsers add a head for the policy. */
const BEGINNING = /^\s*<!doctype html[^>]*>(?:\s*<html(?:\s[^>]*)?>)?(?:\s*<head(?:\s[^>]*)?>)?/i;

/** True for the text of an HTML5 document. */
export function isPage(text: string): boolean {
  return DOCTYPE.test(text);
}

/**
 * Returns the page with a policy: it runs the scripts that are in its text, by their hashes, and uses the origins that its
 * author declares. A page with a policy of its own stays as it is.
 *
 * @param text a page, with line feeds only: browsers hash a script after they have replaced carriage returns
 */
export function withPolicy(text: string, origins: AppOrigins = {}): string {
  if (OWN_POLICY.test(text.replace(NO_MARKUP, ''))) return text;
  const end = BEGINNING.exec(text)?.[0].length ?? 0;
  const policy = policyOf(text, origins);
  return `${text.slice(0, end)}<meta http-equiv="Content-Security-Policy" content="${policy}">${text.slice(end)}`;
}

function policyOf(text: string, origins: AppOrigins): string {
  const { connectDomains = [], resourceDomains = [], frameDomains = [], baseUriDomains = [] } = origins;
  const hashes = new Set(
    [...text.matchAll(NO_MARKUP)].flatMap(([, attributes = '', body]) =>
      body === undefined || /(?:^|[\s/"'])src\s*=/i.test(attributes)
        ? []
        : [`'sha256-${createHash('sha256').update(body).digest('base64')}'`],
    ),
  );
  const from = (directive: string, ...sources: readonly string[]): string =>
    `${directive} ${sources.length === 0 ? "'none'" : sources.join(' ')}`;
  return [
    "default-src 'none'",
    from('script-src', ...hashes, ...resourceDomains),
    from('style-src', "'unsafe-inline'", ...resourceDomains),
    from('img-src', 'data:', 'blob:', ...resourceDomains),
    from('font-src', 'data:', ...resourceDomains),
    from('media-src', 'data:', 'blob:', ...resourceDomains),
    from('connect-src', ...connectDomains),
    from('frame-src', ...frameDomains),
    from('base-uri', ...baseUriDomains),
    "form-action 'none'",
    "object-src 'none'",
  ].join('; ');
}
