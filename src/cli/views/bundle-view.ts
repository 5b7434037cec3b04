/** Bundles the script of a view, and all that it imports, into one HTML file. Uses the package vite, which is optional. */
import { basename, dirname, extname } from 'node:path';
import { messageOf } from '../../core/protocol/json.ts';
import { htmlPage } from '../html-page.ts';

interface BundledView {
  readonly html: string;
  /** The paths of the author's files in the page. */
  readonly files: readonly string[];
}

/** A page is one file: its pictures and fonts are in it. */
const INLINE_BYTES = 100_000_000;

/**
 * @param source the path of the script. A `vite.config` beside it applies
 * @param mode `development` leaves the names in the code
 * @throws {Error} if vite is not installed, or cannot bundle the script
 */
export async function bundleView(source: string, mode: 'production' | 'development'): Promise<BundledView> {
  const { build } = await vite();
  const root = dirname(source);
  const built = await build({
    root,
    mode,
    logLevel: 'silent',
    publicDir: false,
    build: {
      write: false,
      target: 'es2022',
      modulePreload: false,
      minify: mode === 'production',
      assetsInlineLimit: INLINE_BYTES,
      cssCodeSplit: false,
      reportCompressedSize: false,
      rolldownOptions: { input: source, output: { format: 'es', codeSplitting: false } },
    },
  });
  if ('close' in built) throw new Error('expected a build that ends, got a watcher');
  let script = '';
  let style = '';
  const files = new Set([source]);
  for (const part of [built].flat().flatMap(({ output }) => output)) {
    if (part.type === 'chunk') {
      script += part.code;
      for (const id of part.moduleIds) files.add(id.replace(/\?.*$/, ''));
    } else if (part.fileName.endsWith('.css')) style += textOf(part.source);
    else throw new Error(`${part.fileName}: a view is one file, and this cannot be in it`);
  }
  const title = basename(source, extname(source));
  const html = htmlPage({ title, script, style, images: undefined, body: '<div id="root"></div>' });
  return { html, files: [...files].filter((file) => !file.startsWith('\0') && !file.includes('/node_modules/')) };
}

async function vite() {
  try {
    return await import('vite');
  } catch (error) {
    throw new Error(`views with an entry need the package vite: npm install --save-dev vite (${messageOf(error)})`);
  }
}

function textOf(source: string | Uint8Array): string {
  return typeof source === 'string' ? source : new TextDecoder().decode(source);
}
