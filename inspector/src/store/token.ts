/** The key to this server's inspection: it comes behind the `#` of the address, and does not stay there. */

const NAME = 'troupe.token';

/** Moves the token out of the address bar, where it could be read over a shoulder, or copied. */
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
