/** Inserts a recording into the page: one file that opens without a server. */

/** The placeholder of the recording in the template (`inspector/build.ts`). */
const PLACE = '"TROUPE-RECORDING"';

/** @param recording JSON. It goes into a data block that only an end tag can end. */
export function exportPage(template: string, recording: string): string {
  const at = template.indexOf(PLACE);
  if (at === -1) throw new Error(`the template has no ${PLACE}: rebuild the page (npm run build)`);
  const data = recording
    .replace(/</g, '\\u003c')
    .replace(/\u2028/g, '\\u2028')
    .replace(/\u2029/g, '\\u2029');
  return template.slice(0, at) + data + template.slice(at + PLACE.length);
}
