/** The result of a tool: its data as lists and tables, and else its content as texts and pictures. */
import { button, element } from '../parts/dom.ts';
import { valueElement } from '../parts/values.ts';
import { word } from '../parts/words.ts';
import type { Connection } from '../view/connection.ts';
import type { ContentBlock, ToolResult } from '../view/server-proxy.ts';

/** Pictures that a page may show (its policy allows `data:`). An SVG picture in an `img` runs no script. */
const PICTURE = /^image\/(png|jpeg|gif|webp|avif|svg\+xml)$/;

/** @param titles the titles of members, by their names */
export function resultElement(
  { content, structuredContent, isError }: ToolResult,
  titles: Readonly<Record<string, string>>,
  view: Connection,
): HTMLElement {
  const blocks = (all: readonly ContentBlock[]): readonly Node[] => all.map((block) => blockElement(block, view));
  if (isError) return element('div', { class: 'problem', role: 'alert' }, ...blocks(content));
  // The text repeats the data, for models.
  const beside = structuredContent === undefined ? content : content.filter(({ type }) => type !== 'text');
  return element(
    'div',
    { class: 'result' },
    structuredContent === undefined ? undefined : valueElement(structuredContent, view.host, titles),
    ...blocks(beside),
  );
}

function blockElement({ type, ...block }: ContentBlock, view: Connection): Node {
  const { text, data, mimeType, uri, title, name } = block;
  if (type === 'image' && typeof data === 'string' && PICTURE.test(String(mimeType)))
    return element('img', {
      src: `data:${mimeType};base64,${data}`,
      alt: typeof title === 'string' ? title : word('result'),
    });
  if (type === 'resource_link' && typeof uri === 'string' && /^https:/.test(uri)) {
    const open = (): void => void view.ask('ui/open-link', { url: uri }).catch(() => {});
    return element('div', {}, button(word('open', { host: String(title ?? name ?? uri) }), open));
  }
  // Line breaks of a text are its form.
  return element('p', { class: 'text' }, typeof text === 'string' ? text : `${type} ${mimeType ?? uri ?? ''}`);
}
