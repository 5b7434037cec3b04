/** Settings of the reader in the browser's storage: pane sizes and theme. It stores nothing of a server. */

const PREFIX = 'troupe.';

export function recall(name: string): string | undefined {
  try {
    return localStorage.getItem(PREFIX + name) ?? undefined;
  } catch {
    // A page that was opened as a file may have no storage.
    return undefined;
  }
}

export function remember(name: string, value: string): void {
  try {
    localStorage.setItem(PREFIX + name, value);
  } catch {}
}
