/** Makes plain text of descriptions, which OpenAPI documents write as Markdown and often as HTML. */

const ENTITIES: Readonly<Record<string, string>> = { lt: '<', gt: '>', quot: '"', apos: "'", nbsp: ' ', amp: '&' };

/**
 * Removes the tags of HTML, and shortens the text at a space.
 *
 * @param length most UTF-16 code units of the result
 * @example descriptionText('<p>Lists pets.</p>', 1_024) // 'Lists pets.'
 */
export function descriptionText(text: string, length: number): string {
  // Long texts are shortened at last, and need not be searched whole.
  const start = text.slice(0, length * 4);
  const plain = start.includes('<') || start.includes('&') ? withoutHtml(start) : start;
  const tidy = plain
    .replace(/[ \t]+\n/g, '\n')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  if (tidy.length <= length) return tidy;
  const cut = tidy.slice(0, length - 1);
  const space = cut.lastIndexOf(' ');
  return `${cut.slice(0, space > length / 2 ? space : undefined).toWellFormed()}…`;
}

function withoutHtml(text: string): string {
  return text
    .replace(/<!--.*?-->/gs, '')
    .replace(/<(?:br|\/p|\/li|\/h\d|\/tr|\/div)\b[^<>]{0,200}>/gi, '\n')
    .replace(/<li\b[^<>]{0,200}>/gi, '- ')
    .replace(/<\/?[a-z][a-z0-9]*\b[^<>]{0,500}>/gi, '')
    .replace(/&(lt|gt|quot|apos|nbsp|amp);/g, (whole, name: string) => ENTITIES[name] ?? whole);
}
