/** Writes the mistakes of beginners, with what each is told and the measured seconds, into docs/mistakes.md. */
import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { MISTAKES, type Place } from './mistakes.ts';

export const PAGE = fileURLToPath(new URL('../../../docs/mistakes.md', import.meta.url));

const PLACES: Readonly<Record<Place, string>> = { terminal: 'terminal', log: 'log of the server' };

const all = MISTAKES.flatMap(({ mistakes }) => mistakes);

const INTRODUCTION = `# Mistakes, and what is said

${all.length} mistakes of beginners, each with the words that its author reads, and the seconds from the command to these words. In the words, \`…\` stands for any text.

\`npm run test:hour -- --write\` makes each mistake with the packed package in an empty folder, and writes this page. A full test makes each of them again, and compares the words. The seconds contain the start of Node.js, of the command and of the server; they are of 29 November 2026, while other work used both cores of the machine (a load of 15 to 25). [Errors for authors](author-errors.md) has causes and remedies.
`;

/** @param seconds of each mistake, in the order of the table */
export function pageOf(seconds: readonly string[]): string {
  let index = 0;
  const groups = MISTAKES.map(({ title, mistakes }) => {
    const rows = mistakes.map((mistake) => {
      const cells = [mistake.title, codeOf(mistake.says), PLACES[mistake.where], seconds[index] ?? ''];
      index += 1;
      return `| ${cells.join(' | ')} |\n`;
    });
    return `## ${title}\n\n| mistake | what is said | where | s |\n|---|---|---|---|\n${rows.join('')}`;
  });
  return `${INTRODUCTION}\n${groups.join('\n')}`;
}

/** The seconds that the page has now. */
export function secondsOf(page: string): string[] {
  return [...page.matchAll(/\| (\d+\.\d) \|$/gm)].map(([, seconds = '']) => seconds);
}

export const written = (): string => readFileSync(PAGE, 'utf8');

/** @param seconds of each mistake */
export function write(seconds: readonly number[]): void {
  writeFileSync(PAGE, pageOf(seconds.map((each) => each.toFixed(1))));
}

/** Words as code in the cell of a table. */
function codeOf(says: string): string {
  const text = says.replaceAll('\n', ' ').replaceAll('|', '\\|');
  return text.includes('`') ? `\`\` ${text} \`\`` : `\`${text}\``;
}
