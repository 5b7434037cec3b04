/** Says in one line why a module failed, and where in it. */
import { pathToFileURL } from 'node:url';

/**
 * @param path the module's
 * @example reasonOf(new Error('no database'), '/tools/a.ts') // Error: no database (at a.ts:3:7)
 */
export function reasonOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `it threw ${String(error)}`;
  // Our own refusals and those of schemas speak for themselves.
  const message = ['Error', 'DefinitionError', 'SchemaError', 'TemplateError'].includes(error.name)
    ? error.message
    : `${error.name}: ${error.message}`;
  const said = message.trim().replace(/\s*\n\s*/g, ' ');
  const place = said.includes(path) ? undefined : placeIn(error.stack ?? '', path);
  return place === undefined ? said : `${said} (at ${place})`;
}

/** Line and column of the module itself, where the stack names them; Node puts a syntax error's on top. */
function placeIn(stack: string, path: string): string | undefined {
  for (const name of [pathToFileURL(path).href, path]) {
    for (const line of stack.split('\n')) {
      const at = line.indexOf(name);
      const [, place] = (at === -1 ? null : /^(?:\?[^:]*)?:(\d+(?::\d+)?)/.exec(line.slice(at + name.length))) ?? [];
      if (place !== undefined) return `line ${place.replace(':', ', column ')}`;
    }
  }
  return undefined;
}
