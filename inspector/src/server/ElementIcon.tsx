/** The icon that a server gives itself or an element: only an image inside of the definition is shown. */
import type { Plain } from '../../../src/inspector/frames.ts';
import { isList, member, textOfValue } from '../../../src/inspector/model/plain-values.ts';

/** As an image, an SVG runs no script and loads nothing. It never becomes a part of the document. */
const SHOWN = /^data:image\/(?:png|jpeg|gif|webp|svg\+xml)[;,][^«…]*$/;

export function ElementIcon({ icons, size = 32 }: { readonly icons: Plain | undefined; readonly size?: number }) {
  const sources = isList(icons) ? icons.map((icon) => textOfValue(member(icon, 'src')) ?? '') : [];
  const source = sources.find((each) => SHOWN.test(each));
  if (source !== undefined) return <img class="offer-icon" src={source} alt="" width={size} height={size} />;
  if (sources.length === 0) return null;
  return (
    <span class="offer-icon elsewhere" role="img" aria-label="icon at another address" title={sources.join('\n')}>
      ?
    </span>
  );
}
