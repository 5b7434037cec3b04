/** Copies the pages of docs/pages.json into site/pages for VitePress: links lead to pages of the site, diagrams are pictures. */
import { createHash } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { fileURLToPath } from 'node:url';
import { fileOf, GROUPS, REPOSITORY } from '../build/docs-list.ts';
import { readChart } from '../src/core/kernel/charts/chart.ts';
import { systemClock } from '../src/core/kernel/clock.ts';
import { pictureOf } from '../src/features/charts/chart-picture.ts';
import { loadMachine } from '../test/system/house/machines-page.ts';

const root = fileURLToPath(new URL('..', import.meta.url));
const out = join(root, 'site/pages');
/** Pictures of earlier builds: a layout takes seconds. */
const drawn = join(root, 'dist/site-charts');
const PICTURE_MS = 20_000;
/** The code that draws charts: a change of it draws all again. */
const DRAWING = readdirSync(join(root, 'src/features/charts'))
  .map((file) => readFileSync(join(root, 'src/features/charts', file), 'utf8'))
  .join('');
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

/** The pages of the site by their files in the repository. A folder of the list has a page with its contents, and each of its pages. */
const PAGES = new Map<string, string>([['README.md', 'index.md']]);
const DECISIONS = 'docs/adr';
for (const { file } of GROUPS.flatMap(({ pages }) => pages)) if (file.endsWith('.md')) PAGES.set(file, pageOf(file));
const decisions = readdirSync(join(root, DECISIONS)).filter((name) => name.endsWith('.md'));
for (const name of decisions) PAGES.set(`${DECISIONS}/${name}`, `adr/${name}`);
PAGES.set(DECISIONS, 'adr/index.md');
if (new Set(PAGES.values()).size !== PAGES.size)
  throw new Error('expected a page of its own for each file of the list');

/** The pages of docs/ are at the root of the site, those of the root of the repository in `project`. */
function pageOf(file: string): string {
  if (file.startsWith('docs/')) return file.slice('docs/'.length).toLowerCase();
  return file.includes('/') ? file.replace(/^(\w+)\/README\.md$/, '$1.md') : `project/${file.toLowerCase()}`;
}

/** The address of a file on the site, from another page, or on GitHub. */
function linkFrom(page: string, file: string, anchor: string | undefined): string {
  const target = PAGES.get(file);
  const hash = anchor === undefined ? '' : `#${anchor}`;
  if (target !== undefined)
    return target === page && hash !== '' ? hash : `/${target.replace(/(^|\/)index\.md$/, '$1')}${hash}`;
  if (file.startsWith('docs/images/')) return `/${file.slice('docs/'.length)}`;
  return `${REPOSITORY}/${/\.\w+$/.test(file) ? 'blob' : 'tree'}/main/${file}${hash}`;
}

/** A page of the repository as a page of the site. */
function staged(file: string, page: string, text: string): string {
  return outsideOfCode(text, (prose) =>
    pictures(prose).replace(/(\]\()([^)\s]+)(?=\))|(\bsrc=")([^"]+)(?=")/g, (whole, ...parts: string[]) => {
      const [open, link, attribute, source] = parts;
      const target = fileOf(file, link ?? source ?? '');
      if (target === undefined || /^(?:issues|security|actions)\b/.test(target)) return whole;
      return `${open ?? attribute ?? ''}${linkFrom(page, posix.normalize(target), (link ?? '').split('#')[1])}`;
    }),
  );
}

/** Changes a text, and leaves blocks and words of code as they are. */
function outsideOfCode(text: string, change: (prose: string) => string): string {
  const parts = text.split(/(^```[\s\S]*?^```|`[^`\n]*`)/m);
  return parts.map((part, index) => (index % 2 === 0 ? change(part) : part)).join('');
}

/** A picture for each theme of the site. Browsers choose the source of a <picture> by the theme of the system, which is another one. */
function pictures(text: string): string {
  return text.replace(
    /<picture>\s*<source [^>]*srcset="([^"]+)">\s*<img ([^>]*)src="([^"]+)">\s*<\/picture>/g,
    (_, dark, attributes, light) =>
      `<p><img class="light-only" ${attributes}src="${light}"><img class="dark-only" ${attributes}src="${dark}"></p>`,
  );
}

/** The picture of a statechart in place of its Mermaid text, which only GitHub draws. */
async function withCharts(text: string): Promise<string> {
  let result = text;
  for (const [block, name = ''] of text.matchAll(/<!-- from machines\/([\w-]+)\.ts -->\n+```mermaid\n[\s\S]*?^```/gm)) {
    const picture = join(drawn, `${name}-${createHash('sha256').update(DRAWING).update(block).digest('hex')}.svg`);
    if (!existsSync(picture)) {
      mkdirSync(drawn, { recursive: true });
      writeFileSync(picture, await chartOf(name));
    }
    write(`public/charts/${name}.svg`, readFileSync(picture, 'utf8'));
    result = result.replace(block, () => `<img class="chart" alt="The statechart ${name}" src="/charts/${name}.svg">`);
  }
  return result;
}

async function chartOf(name: string): Promise<string> {
  const options = { title: `The statechart ${name}`, active: [], clock: systemClock, waitMs: PICTURE_MS };
  return pictureOf(readChart(await loadMachine(name)), options);
}

/** The README as the first page: its title and first paragraph are the head of the page. */
function landing(text: string): string {
  const [whole = '', title = '', about = ''] = /^# (\w+)\n\n(.*)\n/.exec(text) ?? [];
  const [first = '', ...rest] = about.split(/(?<=\.) /);
  const hero = {
    name: title,
    text: first.replace(/\.$/, ''),
    tagline: rest.join(' '),
    image: {
      light: '/images/view-light.png',
      dark: '/images/view-dark.png',
      alt: 'The view of an order in a chat client',
    },
    actions: [
      { theme: 'brand', text: 'Start', link: '#start' },
      { theme: 'alt', text: 'Tutorial', link: '/tutorial' },
      { theme: 'alt', text: 'GitHub', link: REPOSITORY },
    ],
  };
  // The head of the page shows the first picture.
  const body = text.slice(whole.length).replace(/<p><img class="light-only"[^\n]*view-light\.png[^\n]*<\/p>\n/, '');
  return `---\nlayout: home\nhero: ${JSON.stringify(hero)}\n---\n${body}`;
}

/** The decisions, each with the title of its page. */
function decisionList(): string {
  const rows = decisions.map((name) => {
    const [, title = name] = /^# (.*)$/m.exec(read(`${DECISIONS}/${name}`)) ?? [];
    return `- [${title}](/adr/${name})\n`;
  });
  return `# Decisions\n\nEach page has a decision, its reasons, and what was rejected.\n\n${rows.join('')}`;
}

function write(page: string, text: string): void {
  const path = join(out, page);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, text);
}

rmSync(out, { recursive: true, force: true });
for (const [file, page] of PAGES) {
  if (file === DECISIONS) write(page, decisionList());
  else {
    const text = await withCharts(staged(file, page, read(file)));
    write(page, file === 'README.md' ? landing(text) : text);
  }
}
cpSync(join(root, 'docs/images'), join(out, 'public/images'), { recursive: true });
cpSync(join(root, 'llms.txt'), join(out, 'public/llms.txt'));
writeFileSync(
  join(out, 'site.json'),
  JSON.stringify({
    repository: REPOSITORY,
    sources: Object.fromEntries([...PAGES].map(([file, page]) => [page, file])),
    groups: GROUPS.map(({ title, pages }) => ({
      title,
      pages: pages.map((page) => ({ title: page.title, link: linkFrom('', page.file, undefined) })),
    })),
  }),
);
