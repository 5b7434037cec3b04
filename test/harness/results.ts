/** What tests read in results of calls. */

/** The texts of a result, each on a line of its own: of another block its JSON, and without content that of the result. */
export function textOf(result: { readonly content?: unknown }): string {
  const { content } = result;
  if (!Array.isArray(content)) return JSON.stringify(result);
  return content.map((block) => (typeof block?.text === 'string' ? block.text : JSON.stringify(block))).join('\n');
}
