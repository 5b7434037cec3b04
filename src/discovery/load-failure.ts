/** Describes in one line why a module failed, and where in the module. */
import { pathToFileURL } from 'node:url';

/**
 * @param path the module's path
 * @example reasonOf(new Error('no database'), '/tools/a.ts') // no database (at line 3, column 7)
 */
export function reasonOf(error: unknown, path: string): string {
  if (!(error instanceof Error)) return `it threw ${String(error)}`;
  // Our own errors and those of schemas need no class name in front.
  const message = ['Error', 'DefinitionError', 'SchemaError', 'TemplateError'].includes(error.name)
    ? error.message
    : `${error.name}: ${error.message}`;
  const said = message.trim().replace(/\s*\n\s*/g, ' ');
  if (said.includes(path)) return said;
  const place = placeIn(error.stack ?? '', path);
  if (place !== undefined) return `${said} (at ${place})`;
  // For a syntax error in JavaScript, Node names neither the position nor the module.
  return error instanceof SyntaxError ? `${said} (in this module or in one that it imports)` : said;
}

/** The line and column in the module itself, if the stack contains them. */
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
