/** Writes the list of pages into README.md and llms.txt, from docs/pages.json. Run it with npm run docs:list. */
import { readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { z } from 'zod';

const root = fileURLToPath(new URL('..', import.meta.url));
export const REPOSITORY = 'https://github.com/troupe-mcp/troupe';
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

/** The anchor that GitHub and the site give to a heading: lower case, dashes for spaces, no other signs. */
export function slugOf(heading: string): string {
  return heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');
}

/** The anchors of a page. The second heading with the same words ends with "-1". */
export function anchorsOf(page: string): string[] {
  const seen = new Map<string, number>();
  const headings = page.replace(/^```[\s\S]*?^```/gm, '').matchAll(/^#{1,6} (.*)$/gm);
  return [...headings].map(([, heading = '']) => {
    const slug = slugOf(heading.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').trim());
    const earlier = seen.get(slug) ?? 0;
    seen.set(slug, earlier + 1);
    return earlier === 0 ? slug : `${slug}-${earlier}`;
  });
}

/** The links of a page outside of its code, and the files of its pictures. */
export function linksOf(text: string): string[] {
  const prose = text.replace(/^```[\s\S]*?^```/gm, '').replace(/`[^`\n]*`/g, '');
  return [...prose.matchAll(/\]\(([^)\s]+)\)|\b(?:src|srcset)="([^"]+)"/g)].map(([, link, file]) => link ?? file ?? '');
}

/** The file of this repository to which a link leads, or undefined for an address elsewhere. */
export function fileOf(page: string, link: string): string | undefined {
  const [target = ''] = link.split('#');
  if (target.startsWith(`${REPOSITORY}/`))
    return target.slice(REPOSITORY.length + 1).replace(/^(?:blob|tree|raw)\/main\//, '');
  if (/^[a-z]+:/.test(target)) return undefined;
  return target === '' ? page : join(dirname(page), target);
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
