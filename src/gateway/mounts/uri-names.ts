/** The URI under which a mount offers a resource of its upstream, and the way back. The page of a view uses both, too. */

const SCHEME = /^[A-Za-z][A-Za-z0-9+.-]*:/;
/** Schemes that hosts look at (MCP Apps, SEP-2640): the mount's name becomes the first segment after `//`. */
const KEPT = ['ui://', 'skill://'];

/**
 * The offered form of an upstream's URI or URI template. A template's values pass unchanged: expanding the offered
 * template gives a URI that `toUpstream` converts to the expansion of the upstream's.
 *
 * @param mount the mount's name; false for a mount that offers its URIs unchanged
 * @example
 * toOffered('gh', 'file:///{+path}'); // 'gh+file:///{+path}'
 * toOffered('gh', 'ui://board/main'); // 'ui://gh/board/main'
 * toOffered('gh', 'readme'); // 'gh:readme': a text without a scheme
 */
export function toOffered(mount: string | false, uri: string): string {
  if (mount === false) return uri;
  for (const scheme of KEPT) if (uri.startsWith(scheme)) return `${scheme}${mount}/${uri.slice(scheme.length)}`;
  return SCHEME.test(uri) ? `${mount}+${uri}` : `${mount}:${uri}`;
}

/** The upstream's form of an offered URI; undefined if the URI is of another mount. */
export function toUpstream(mount: string | false, uri: string): string | undefined {
  if (mount === false) return uri;
  for (const scheme of KEPT) {
    const start = `${scheme}${mount}/`;
    if (uri.startsWith(start)) return scheme + uri.slice(start.length);
  }
  if (uri.startsWith(`${mount}:`)) return uri.slice(mount.length + 1);
  const rest = uri.startsWith(`${mount}+`) ? uri.slice(mount.length + 1) : '';
  return SCHEME.test(rest) ? rest : undefined;
}
