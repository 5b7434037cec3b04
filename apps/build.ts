/** Builds the library of pages, `troupe/app`, the generated pages and the script for the pages of mounts into dist/apps. Fails if one is larger than its limit. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { buildPages, onlyFile } from '../build/page-build.ts';
import { htmlPage } from '../src/cli/html-page.ts';

const source = fileURLToPath(new URL('./src', import.meta.url));

/** Bytes of the library, gzipped: a host loads it with every view. */
const LIBRARY_BYTES = 4_096;
/** Bytes of the script and the style of a page, gzipped. */
const PAGE_BYTES = 11_264;
/** Bytes of the script in the page of a mount, gzipped. */
const MOUNTED_BYTES = 2_048;
const PAGES = ['machine', 'tool'];
/** The placeholder of the definition in a page. Its JSON contains `\u003c` instead of `<`. */
const PLACE = '"TROUPE-VIEW"';
/** The placeholder of the chart: the markup of an SVG picture, because the policy lets the script parse none. */
const CHART = '<!--TROUPE-CHART-->';

await buildPages({
  name: 'apps',
  inputs: [
    'apps',
    'src/features/apps/view-definition.ts',
    'src/features/apps/view-texts.ts',
    'src/features/charts/sketch.ts',
    'src/gateway/mounts/page-names.ts',
    'src/gateway/mounts/uri-names.ts',
    'src/gateway/mounts/uri-places.ts',
    'src/core/protocol/json.ts',
  ],
  last: 'app.js',
  async build(folder) {
    for (const page of PAGES) {
      // Beside the folder of the result, in one that is deleted.
      const parts = join(folder, '..', page);
      mkdirSync(parts);
      await bundled(join(source, `pages/${page}.ts`), parts, `${page}.js`);
      const [script, style] = [onlyFile(parts, '.js'), onlyFile(parts, '.css')];
      withinLimit(`${page}.html`, script + style, PAGE_BYTES);
      writeFileSync(
        join(folder, `${page}.html`),
        htmlPage({
          title: 'View',
          script,
          style,
          images: 'data:',
          body: CHART,
          data: { id: 'definition', json: PLACE },
        }),
      );
    }
    // In a page, the names of a script that is no module are those of all scripts.
    await bundled(join(source, 'pages/mounted.ts'), folder, 'mounted.js', 'iife');
    withinLimit('mounted.js', readFileSync(join(folder, 'mounted.js'), 'utf8'), MOUNTED_BYTES);
    await bundled(join(source, 'app.ts'), folder, 'app.js');
    withinLimit('app.js', readFileSync(join(folder, 'app.js'), 'utf8'), LIBRARY_BYTES);
  },
});

/** Bundles a module into one file, with its style sheets beside it. */
async function bundled(entry: string, folder: string, name: string, format: 'es' | 'iife' = 'es'): Promise<void> {
  const { build } = await import('vite');
  await build({
    configFile: false,
    root: source,
    logLevel: 'warn',
    publicDir: false,
    build: {
      outDir: folder,
      emptyOutDir: false,
      // The frames of chat clients are of this year: no other syntax for older browsers.
      target: 'esnext',
      modulePreload: false,
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      reportCompressedSize: false,
      rolldownOptions: {
        input: entry,
        preserveEntrySignatures: 'strict',
        checks: { pluginTimings: false },
        output: { format, entryFileNames: name, assetFileNames: '[name][extname]', codeSplitting: false },
      },
    },
  });
}

function withinLimit(name: string, text: string, limit: number): void {
  const size = gzipSync(text, { level: 9 }).length;
  if (size > limit) throw new Error(`${name}: expected at most ${limit} bytes gzipped, got ${size}`);
  if (process.argv.includes('--sizes')) process.stdout.write(`${name}: ${size} of ${limit} bytes gzipped\n`);
}
