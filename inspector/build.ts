/** Builds the page and the template of an exported page into dist/inspector. Does nothing if no input has changed since the last build. */
import { readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';
import { buildPages, onlyFile } from '../build/page-build.ts';
import { htmlPage } from '../src/cli/html-page.ts';

/** The placeholder of the recording in the template. */
const PLACE = '"TROUPE-RECORDING"';
/** The package contains a file of this many bytes compressed. The inspector decompresses the file when it is first requested. */
const COMPRESSED_BYTES = 3_000;

await buildPages({
  name: 'inspector',
  inputs: [
    'inspector',
    'src/features/charts',
    'src/inspector/frames.ts',
    'src/inspector/model',
    'src/features/asking/form-fields.ts',
    'src/features/asking/form-model.ts',
    'src/core/protocol/json.ts',
    'src/core/schema',
  ],
  last: 'export.html.br',
  async build(page) {
    const { build } = await import('vite');
    const configFile = fileURLToPath(new URL('./vite.config.ts', import.meta.url));
    const alone = join(page, '../export');
    await build({ configFile, mode: 'page', build: { outDir: page } });
    await build({ configFile, mode: 'export', build: { outDir: alone } });
    writeFileSync(join(page, 'export.html'), exported(join(alone, 'assets')));
    for (const file of readdirSync(page, { recursive: true, encoding: 'utf8' })) compress(join(page, file));
  },
});

/** Replaces a file by its compressed form, unless it is small: ELK alone is half of the package. */
function compress(file: string): void {
  const found = statSync(file);
  if (!found.isFile() || found.size < COMPRESSED_BYTES) return;
  writeFileSync(`${file}.br`, brotliCompressSync(readFileSync(file)));
  rmSync(file);
}

/** Makes one HTML file that opens without a server. */
function exported(assets: string): string {
  return htmlPage({
    title: 'troupe recording',
    script: onlyFile(assets, '.js'),
    style: onlyFile(assets, '.css'),
    images: 'data: blob:',
    head: '<meta name="color-scheme" content="light dark">\n<link rel="icon" href="data:,">\n',
    body: '<div id="page"></div>',
    data: { id: 'recording', json: PLACE },
  });
}
