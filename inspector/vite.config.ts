/** The build of the page: small hashed files for the listener, and one complete file for exports. */
import { fileURLToPath } from 'node:url';
import { defineConfig, type Plugin } from 'vite';

const here = fileURLToPath(new URL('.', import.meta.url));

/** An exported page lays out its charts itself: it has no worker. */
const noWorker: Plugin = {
  name: 'no-worker',
  enforce: 'pre',
  resolveId: (id) => (id.endsWith('?worker&url') ? '\0no-worker' : undefined),
  load: (id) => (id === '\0no-worker' ? "export default ''" : undefined),
};

export default defineConfig(({ mode }) => ({
  root: here,
  base: './',
  logLevel: 'warn',
  oxc: { jsx: { runtime: 'automatic', importSource: 'preact' } },
  plugins: mode === 'export' ? [noWorker] : [],
  worker: { format: 'es' },
  build: {
    outDir: fileURLToPath(new URL('../dist/inspector', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    modulePreload: { polyfill: false },
    // Inlines no file as data: the policy of the page allows only its own server.
    assetsInlineLimit: 0,
    cssCodeSplit: false,
    reportCompressedSize: false,
    chunkSizeWarningLimit: 2_000,
    rolldownOptions: {
      checks: { pluginTimings: false },
      ...(mode === 'export' ? { output: { codeSplitting: false } } : {}),
    },
  },
}));
