/** Writes the list of pages into README.md and llms.txt, from docs/pages.json. Run it with npm run docs:list. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { z } from 'zod';

const root = fileURLToPath(new URL('../../..', import.meta.url));
const REPOSITORY = 'https://github.com/troupe-mcp/troupe';
const RAW = 'https://raw.githubusercontent.com/troupe-mcp/troupe/main';
/** The writer replaces the text between the two. */
const BLOCK = /(<!-- npm run docs:list writes what follows -->\n)[\s\S]*?(<!-- end -->)/;
/** A reader with little room may leave these out: the section "Optional" of llmstxt.org. */
const OPTIONAL = ['Judge', 'Change'];

const Pages = z.array(
  z.strictObject({
    title: z.string(),
    pages: z.array(z.strictObject({ file: z.string(), title: z.string(), about: z.string() })),
  }),
);

const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The groups of pages in the order in which README, llms.txt and the site show them. */
export const GROUPS = Pages.parse(JSON.parse(read('docs/pages.json')));

const { files } = z.object({ files: z.array(z.string()) }).parse(JSON.parse(read('package.json')));
const left = files.filter((file) => file.startsWith('!')).map((file) => file.slice(1));

/** True if the package of npm contains the file. */
export function ships(file: string): boolean {
  return (
    !left.some((each) => file === each || file.startsWith(`${each}/`)) &&
    ['README.md', 'LICENSE', ...files].some((each) => file === each || file.startsWith(`${each}/`))
  );
}

/** README.md with its table of pages. */
export function readmeWithList(): string {
  const rows = GROUPS.map(
    ({ title, pages }) =>
      `| ${title} | ${pages.map((page) => `[${page.title}](${linkTo(page.file)})`).join(' · ')} |\n`,
  );
  return read('README.md').replace(
    BLOCK,
    (_, begin: string, end: string) => `${begin}\n| | |\n|---|---|\n${rows.join('')}\n${end}`,
  );
}

/** The text of llms.txt, as llmstxt.org describes it: a title, a quotation that says what it is, and lists of links. */
export function llmsText(): string {
  const [, about = ''] = /^# Troupe\n\n(.*)\n/.exec(read('README.md')) ?? [];
  const list = (pages: (typeof GROUPS)[number]['pages']): string =>
    pages
      .map(
        ({ file, title, about }) =>
          `- [${title}](${/\.\w+$/.test(file) ? `${RAW}/${file}` : addressOf(file)}): ${about}\n`,
      )
      .join('');
  const sections = GROUPS.filter(({ title }) => !OPTIONAL.includes(title)).map(
    ({ title, pages }) => `## ${title}\n\n${list(pages)}`,
  );
  const optional = GROUPS.filter(({ title }) => OPTIONAL.includes(title)).flatMap(({ pages }) => pages);
  const start = `Each code block of these pages is a program that a test runs. Begin with [the README](${RAW}/README.md), then read \`docs/authors.md\`.`;
  return `# Troupe\n\n> ${about}\n\n${start}\n\n${sections.join('\n')}\n## Optional\n\n${list(optional)}`;
}

/** The anchors that GitHub and the site give to the headings of a page: lower case, dashes for spaces, no other signs. */
export function anchorsOf(page: string): string[] {
  const seen = new Map<string, number>();
  const headings = page.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} (.*)$/gm);
  return [...headings].map(([, heading = '']) => {
    const text = heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').trim();
    const slug = text
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-');
    const earlier = seen.get(slug) ?? 0;
    seen.set(slug, earlier + 1);
    return earlier === 0 ? slug : `${slug}-${earlier}`;
  });
}

function linkTo(file: string): string {
  return ships(file) ? file : addressOf(file);
}

function addressOf(file: string): string {
  return `${REPOSITORY}/${/\.\w+$/.test(file) ? 'blob' : 'tree'}/main/${file}`;
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  writeFileSync(join(root, 'README.md'), readmeWithList());
  writeFileSync(join(root, 'llms.txt'), llmsText());
}
