/** Builds the page and the template of an exported page into dist/inspector. Does nothing if no input has changed since the last build. */
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync } from 'node:zlib';

const here = fileURLToPath(new URL('.', import.meta.url));
const root = join(here, '..');
const out = join(root, 'dist/inspector');
const stamp = join(root, 'dist/inspector.inputs');

/** The placeholder of the recording in the template. It is in a data block, so the recording must contain `\u003c` instead of `<`. */
const PLACE = '"TROUPE-RECORDING"';
/** The package contains a file of this many bytes compressed. The inspector decompresses the file when it is first requested. */
const COMPRESSED_BYTES = 3_000;

const inputs = digest();
const built = existsSync(join(out, 'export.html.br')) && existsSync(stamp) && readFileSync(stamp, 'utf8') === inputs;
if (!built || process.argv.includes('--force')) {
  const { build } = await import('vite');
  const configFile = join(here, 'vite.config.ts');
  // Build into a new folder and rename it: a running server and another build never see half of the page.
  const making = mkdtempSync(join(root, 'dist/inspector-'));
  try {
    const [page, alone] = [join(making, 'page'), join(making, 'export')];
    await build({ configFile, mode: 'page', build: { outDir: page } });
    await build({ configFile, mode: 'export', build: { outDir: alone } });
    writeFileSync(join(page, 'export.html'), single(alone));
    for (const file of readdirSync(page, { recursive: true, encoding: 'utf8' })) compress(join(page, file));
    rmSync(out, { recursive: true, force: true });
    renameSync(page, out);
    writeFileSync(stamp, inputs);
  } finally {
    rmSync(making, { recursive: true, force: true });
  }
}

/** Replaces a file by its compressed form, unless it is small: ELK alone is half of the package. */
function compress(file: string): void {
  const found = statSync(file);
  if (!found.isFile() || found.size < COMPRESSED_BYTES) return;
  writeFileSync(`${file}.br`, brotliCompressSync(readFileSync(file)));
  rmSync(file);
}

/** Returns a digest of the inputs: the files of the page, the model that it shares with the server, and the versions of the packages. */
function digest(): string {
  const hash = createHash('sha256');
  const folders = ['inspector', 'src/inspector/model', 'src/charts', 'src/schema'];
  const files = [
    'package-lock.json',
    'src/inspector/frames.ts',
    'src/input/form-fields.ts',
    'src/protocol/json.ts',
    ...folders.flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((file) => join(folder, file)),
    ),
  ];
  for (const file of files.sort()) {
    if (/^inspector.dev/.test(file) || !statSync(join(root, file)).isFile()) continue;
    hash.update(`${file}\n`).update(readFileSync(join(root, file)));
  }
  return hash.digest('hex');
}

/** Makes one HTML file that opens without a server. Its policy allows its own script and style, and no request. */
function single(alone: string): string {
  const assets = readdirSync(join(alone, 'assets'));
  const only = (ending: string): string => {
    const [name, ...more] = assets.filter((file) => file.endsWith(ending));
    if (name === undefined || more.length > 0)
      throw new Error(`expected one ${ending} file in ${alone}/assets: ${assets.join(', ')}`);
    return readFileSync(join(alone, 'assets', name), 'utf8');
  };
  const script = only('.js').replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
  const style = only('.css').replaceAll('</style', '<\\/style');
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    'img-src data: blob:',
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>troupe recording</title>
<link rel="icon" href="data:,">
<style>${style}</style>
</head>
<body>
<div id="page"></div>
<script type="application/json" id="recording">${PLACE}</script>
<script type="module">${script}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${createHash('sha256').update(text).digest('base64')}`;
}
