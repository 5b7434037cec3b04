/** Names the arguments that a tool does not have, with those that the caller may have meant. */
import { isObject } from '../protocol/json.ts';
import { suggestion } from '../protocol/near-miss.ts';
import type { Tool } from '../protocol/types.ts';
import { clip, oneLine, quote } from '../schema/excerpts.ts';
import { explain } from '../schema/problems.ts';
import type { Problem } from '../schema/schema.ts';

/** Names in one explanation: a hostile call can have millions. */
const MAX_UNKNOWN = 4;
const MAX_KNOWN = 20;
/** Longest name for which a near one is searched, in characters. */
const MAX_NAME = 60;

/** Explains the problems of arguments, and adds the names that the tool does not have. */
export function explainArguments(tool: Tool, args: unknown, problems: readonly Problem[]): string {
  const text = explain(problems, `arguments for tool "${tool.name}"`);
  const known = knownNames(tool);
  if (!known || !isObject(args)) return text;
  const reported = new Set(problems.map(({ path }) => path));
  const unknown = Object.keys(args)
    .slice(0, 100)
    .filter((name) => !known.includes(name) && !reported.has(name))
    .slice(0, MAX_UNKNOWN);
  const lines = unknown.map((name) => {
    const near = nearName(name, known);
    const others = near === '' ? `. It has ${known.slice(0, MAX_KNOWN).join(', ') || 'none'}` : near;
    return oneLine(clip(`- there is no argument ${quote(clip(name, MAX_NAME))}${others}`, 600));
  });
  return [text, ...lines].join('\n');
}

/** Finds an argument that the schema drops in silence, and that is nearly the name of another. @returns such as `"cuont" (did you mean count?)` */
export function mistypedArgument(tool: Tool, args: unknown): string | undefined {
  if (!isObject(args)) return undefined;
  const known = knownNames(tool);
  if (!known) return undefined;
  for (const name of Object.keys(args).slice(0, 100)) {
    if (known.includes(name)) continue;
    const near = nearName(
      name,
      known.filter((each) => !Object.hasOwn(args, each)),
    );
    if (near !== '') return `${quote(name)}${near}`;
  }
  return undefined;
}

function nearName(name: string, known: readonly string[]): string {
  return name.length > MAX_NAME ? '' : suggestion(name, known);
}

/** @returns undefined if the tool takes further names */
function knownNames({
  inputSchema: { properties, additionalProperties, patternProperties },
}: Tool): string[] | undefined {
  const isOpen =
    patternProperties !== undefined || (additionalProperties !== undefined && additionalProperties !== false);
  return isObject(properties) && !isOpen ? Object.keys(properties) : undefined;
}
