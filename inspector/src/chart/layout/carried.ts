/** Layouts inside an exported page, which has no worker for them. */
import { isPlaced, type PlacedChart } from '../../../../src/features/charts/placed.ts';

/** By the ids of the charts. */
export interface Carried {
  readonly [id: string]: readonly PlacedChart[];
}

const PLACE = 'pictures';
/** The text before the recording in the template of an exported page. */
const BEFORE = '<script type="application/json" id="recording">';

/**
 * Inserts layouts into an exported page, as a block of data next to its recording. Without layouts, the page is
 * unchanged.
 */
export function withPictures(html: string, pictures: Carried): string {
  const at = html.indexOf(BEFORE);
  if (at === -1) return html;
  const block = `<script type="application/json" id="${PLACE}">${JSON.stringify(pictures).replaceAll('<', '\\u003c')}</script>\n`;
  return html.slice(0, at) + block + html.slice(at);
}

/** Reads the layouts in this page; empty if it is no exported page, or its data is invalid. */
export function carriedPictures(): Carried {
  const text = document.getElementById(PLACE)?.textContent ?? '{}';
  try {
    return readPictures(JSON.parse(text));
  } catch {
    return {};
  }
}

export function readPictures(data: unknown): Carried {
  if (!isObject(data)) return {};
  const read: [string, readonly PlacedChart[]][] = [];
  for (const [id, pictures] of Object.entries(data))
    if (Array.isArray(pictures) && pictures.length > 0 && pictures.every(isPlaced)) read.push([id, pictures]);
  return Object.fromEntries(read);
}

function isObject(data: unknown): data is { readonly [key: string]: unknown } {
  return typeof data === 'object' && data !== null;
}
