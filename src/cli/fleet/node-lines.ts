/** Copies the output of a node process to stderr, with the name of the node before each line. */
import type { Readable } from 'node:stream';

/** Maximum length of a line, in characters. Longer lines are split. */
const MAX_LINE = 64 * 1024;

/** @param pause stops reading while stderr is full */
export function copyLines(from: Readable, name: string, to: NodeJS.WritableStream = process.stderr): void {
  let rest = '';
  const write = (text: string): void => {
    if (to.write(text)) return;
    from.pause();
    to.once('drain', () => from.resume());
  };
  from.setEncoding('utf8');
  from.on('data', (chunk: string) => {
    const lines = (rest + chunk).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > MAX_LINE) {
      lines.push(rest);
      rest = '';
    }
    if (lines.length > 0) write(lines.map((line) => `[${name}] ${line}\n`).join(''));
  });
  from.on('end', () => {
    if (rest !== '') write(`[${name}] ${rest}\n`);
    rest = '';
  });
  // The end of the process closes the pipe.
  from.on('error', () => {});
}
