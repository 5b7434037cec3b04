/** Text in an SVG picture. */

const ENTITIES: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&apos;',
};

/** Text escaped for XML, without characters that XML forbids and without invisible ones. */
export function xml(text: string): string {
  return text
    .toWellFormed()
    .replace(/[\p{Cc}\p{Cf}\p{Cn}]/gu, ' ')
    .replace(/[&<>"']/g, (mark) => ENTITIES[mark] ?? '');
}
