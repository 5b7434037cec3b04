/** The token of this server's inspector: it follows the `#` in the address and is removed from there. */

const NAME = 'troupe.token';

/** Removes the token from the address bar, where others could read or copy it. */
export function takeToken(): string | undefined {
  const given = location.hash.slice(1);
  if (given !== '') {
    history.replaceState(null, '', location.pathname + location.search);
    try {
      sessionStorage.setItem(NAME, given);
    } catch {}
    return given;
  }
  try {
    return sessionStorage.getItem(NAME) ?? undefined;
  } catch {
    return undefined;
  }
}
