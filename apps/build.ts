/** Builds the library of pages, `troupe/app`, into dist/apps. Fails if it is larger than its limit. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { buildPages } from '../page-build.ts';

const source = fileURLToPath(new URL('./src', import.meta.url));

/** Bytes of the library, gzipped: a host loads it with every view. */
const LIBRARY_BYTES = 4_096;

await buildPages({
  name: 'apps',
  inputs: ['apps'],
  last: 'app.js',
  async build(folder) {
    await bundled(join(source, 'app.ts'), folder, 'app.js');
    withinLimit('app.js', readFileSync(join(folder, 'app.js'), 'utf8'), LIBRARY_BYTES);
  },
});

/** Bundles a module into one file, with its style sheets beside it. */
async function bundled(entry: string, folder: string, name: string): Promise<void> {
  const { build } = await import('vite');
  await build({
    configFile: false,
    root: source,
    logLevel: 'warn',
    publicDir: false,
    build: {
      outDir: folder,
      emptyOutDir: false,
      target: 'es2022',
      modulePreload: false,
      assetsInlineLimit: 0,
      cssCodeSplit: false,
      reportCompressedSize: false,
      rolldownOptions: {
        input: entry,
        preserveEntrySignatures: 'strict',
        checks: { pluginTimings: false },
        output: { entryFileNames: name, assetFileNames: '[name][extname]', codeSplitting: false },
      },
    },
  });
}

function withinLimit(name: string, text: string, limit: number): void {
  const size = gzipSync(text, { level: 9 }).length;
  if (size > limit) throw new Error(`${name}: expected at most ${limit} bytes gzipped, got ${size}`);
  if (process.argv.includes('--sizes')) process.stdout.write(`${name}: ${size} of ${limit} bytes gzipped\n`);
}
