/** Says in one line why a module failed, and where in it. */
import { pathToFileURL } from 'node:url';

/**
 * @param path the module's
 * @example reasonOf(new Error('no database'), '/tools/a.ts') // no database (at line 3, column 7)
 */
export function reasonOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `it threw ${String(error)}`;
  // Our own refusals and those of schemas speak for themselves.
  const message = ['Error', 'DefinitionError', 'SchemaError', 'TemplateError'].includes(error.name)
    ? error.message
    : `${error.name}: ${error.message}`;
  const said = message.trim().replace(/\s*\n\s*/g, ' ');
  if (said.includes(path)) return said;
  const place = placeIn(error.stack ?? '', path);
  if (place !== undefined) return `${said} (at ${place})`;
  // Of the text of a JavaScript module Node does not say where it is wrong, nor in which of the modules.
  return error instanceof SyntaxError ? `${said} (in it, or in a module that it imports)` : said;
}

/** Line and column of the module itself, where the stack names them. */
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
