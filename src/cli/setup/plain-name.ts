/** Makes names of servers that the configuration of every client accepts. */

/** Replaces the characters of a name that some clients, or a shell, would reject. */
export function plainName(name: string): string {
  return name.replace(/[^A-Za-z0-9_-]+/g, '-').replace(/^-+|-+$/g, '') || 'server';
}
