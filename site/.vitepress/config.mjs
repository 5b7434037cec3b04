/** The site: the pages and their order come from `site/stage.ts`, which reads docs/pages.json. */
import { readFileSync } from 'node:fs';
import { defineConfig } from 'vitepress';

const { repository, sources, groups } = JSON.parse(
  readFileSync(new URL('../pages/site.json', import.meta.url), 'utf8'),
);

/** The anchors of GitHub, so that a link leads to the same heading in both. `slugOf` of build/docs-list.ts is the same. */
const slugify = (heading) =>
  heading
    .toLowerCase()
    .replace(/[^\p{L}\p{N}_ -]/gu, '')
    .replaceAll(' ', '-');

/** Three figures on a stage. */
const ICON =
  '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32" fill="#5672cd"><circle cx="8" cy="12" r="4"/><circle cx="16" cy="8" r="4"/><circle cx="24" cy="12" r="4"/><path d="M3 25q5-12 10 0zM11 25q5-16 10 0zM19 25q5-12 10 0z"/></svg>';

export default defineConfig({
  title: 'Troupe',
  description: 'A TypeScript framework for MCP servers, and the runtime that keeps them up.',
  lang: 'en',
  // GitHub Pages serves the site below the name of the repository: SITE_BASE=/troupe/
  base: process.env.SITE_BASE ?? '/',
  srcDir: 'pages',
  outDir: '../dist/site',
  cacheDir: '../dist/site-cache',
  cleanUrls: true,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `data:image/svg+xml,${encodeURIComponent(ICON)}` }]],
  markdown: { anchor: { slugify }, headers: { slugify }, toc: { slugify } },
  /** The file of the repository stands for its copy. */
  transformPageData: (page) => ({ filePath: sources[page.filePath] ?? page.filePath }),
  themeConfig: {
    nav: [
      { text: 'Tutorial', link: '/tutorial' },
      { text: 'For authors', link: '/authors' },
      { text: 'Commands', link: '/commands' },
      { text: 'Client', link: '/client' },
    ],
    sidebar: groups.map(({ title, pages }) => ({
      text: title,
      collapsed: false,
      items: pages.map((page) => ({ text: page.title, link: page.link.replace(/\.md$/, '') })),
    })),
    outline: [2, 3],
    search: { provider: 'local' },
    socialLinks: [{ icon: 'github', link: repository }],
    editLink: { pattern: `${repository}/blob/main/:path`, text: 'The source of this page' },
    notFound: {
      title: 'There is no such page',
      quote: 'Search for its words, or begin with the first page.',
      linkText: 'First page',
    },
  },
});
