/** Changes one entry in YAML that people edit: comments and the order of the other members stay. */
import type { JsonObject } from '../../core/protocol/json.ts';

/**
 * Sets or removes an entry of a map that is a member of the document's map.
 *
 * @param entry undefined removes it
 * @returns the new text, and whether the entry was there
 * @throws {Error} for a text that is not YAML, or whose member is no map
 */
export async function withYamlEntry(
  text: string,
  member: string,
  name: string,
  entry: JsonObject | undefined,
): Promise<{ readonly text: string; readonly present: boolean }> {
  // The page of the inspector shows entries, too, and must not load the package for that.
  const { isMap, parseDocument } = await import('yaml');
  const document = parseDocument(text);
  const [problem] = document.errors;
  if (problem) throw new Error(problem.message);
  const entries: unknown = document.get(member);
  const isEmpty = entries === undefined || entries === null;
  if (document.contents !== null && !isMap(document.contents)) throw new Error('expected a map');
  if (!isEmpty && !isMap(entries)) throw new Error(`${member}: expected a map`);
  const present = isMap(entries) && entries.has(name);
  if (entry === undefined) {
    if (!present) return { text, present };
    document.deleteIn([member, name]);
  } else if (isEmpty) document.set(member, document.createNode({ [name]: entry }));
  else document.setIn([member, name], document.createNode(entry));
  return { text: document.toString({ lineWidth: 0 }), present };
}

/** The YAML of a file that contains one entry only: each value in its JSON form, which YAML includes. */
export function yamlEntry(member: string, name: string, entry: JsonObject): string {
  const lines = Object.entries(entry).map(([key, value]) => `    ${key}: ${JSON.stringify(value)}`);
  return [`${member}:`, `  ${JSON.stringify(name)}:`, ...lines].join('\n');
}
