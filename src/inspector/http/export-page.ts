/** Puts a recording into the page: one file that opens without a server. */

/** Where the recording goes in the template (`inspector/build.ts`). */
const PLACE = '"TROUPE-RECORDING"';

/** @param recording JSON. It goes into a block of data, where nothing but an end tag ends it. */
export function exportPage(template: string, recording: string): string {
  const at = template.indexOf(PLACE);
  if (at === -1) throw new Error(`the template has no ${PLACE}: build the page again (npm run build)`);
  const data = recording
    .replace(/</g, '\\u003c')
    .replace(/\u2028/g, '\\u2028')
    .replace(/\u2029/g, '\\u2029');
  return template.slice(0, at) + data + template.slice(at + PLACE.length);
}
