/** House rules of the page: everything that it shows is untrusted, so it makes text nodes only. */
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliDecompressSync, gzipSync } from 'node:zlib';
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';

const root = fileURLToPath(new URL('../../../inspector/src/', import.meta.url));
const test = suite('house rules of the page');

const files = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((file) => /\.tsx?$/.test(file));
const read = (file: string): string => readFileSync(join(root, file), 'utf8');

test('nothing becomes HTML or code that was data before', () => {
  const pattern = /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\b|new Function|srcdoc|javascript:/;
  assert.ok(files.length > 20);
  assert.equal(
    files.filter((file) => pattern.test(read(file))),
    [],
  );
});

test('the page sends requests only to the server that it came from', () => {
  const named = files.filter((file) => /https?:\/\//.test(read(file).replace(/\/\*[\s\S]*?\*\/|\/\/ .*/g, '')));
  // What is copied as a command names the reader's own machine; SVG has its name in the shape of an address.
  assert.equal(
    named.filter((file) => !/curl\.ts$/.test(file) && /https?:\/\/(?!www\.w3\.org)/.test(read(file))),
    [],
  );
});

test('each file opens with one sentence that says what it is', () => {
  assert.equal(
    files.filter((file) => !/^(\/\/ [^\n]*\n)*\/\*\*( [^\n]*|\n \* [A-Z])/.test(read(file))),
    [],
  );
});

/** A browser's transfer is counted in gzip. The build has compressed large files with Brotli. */
function gzippedBytes(file: string): number {
  const content = existsSync(`${file}.br`) ? brotliDecompressSync(readFileSync(`${file}.br`)) : readFileSync(file);
  return gzipSync(content, { level: 9 }).length;
}

test('before the layout worker, the scripts are at most 60 kB gzipped', () => {
  const dist = fileURLToPath(new URL('../../../dist/inspector/', import.meta.url));
  const html = readFileSync(`${dist}index.html`, 'utf8');
  const scripts = [...html.matchAll(/(?:src|href)="\.\/(assets\/[^"]+\.js)"/g)].map(([, file = '']) => file);
  assert.ok(scripts.length > 0 && readdirSync(`${dist}assets`).length > scripts.length);
  const sizes = scripts.map((file) => gzippedBytes(dist + file));
  const all = sizes.reduce((sum, size) => sum + size, 0);
  assert.ok(all <= 60_000, `${scripts.join(', ')}: ${all} bytes gzipped`);
});

test('the view of the server is loaded later, and has at most 20 kB gzipped', () => {
  const dist = fileURLToPath(new URL('../../../dist/inspector/', import.meta.url));
  const [chunk, ...more] = readdirSync(`${dist}assets`).filter((file) => /^ServerView-.*\.js(\.br)?$/.test(file));
  assert.ok(chunk !== undefined && more.length === 0);
  assert.not.ok(readFileSync(`${dist}index.html`, 'utf8').includes('ServerView'), 'loaded with the page');
  const size = gzippedBytes(`${dist}assets/${chunk?.replace(/\.br$/, '')}`);
  assert.ok(size <= 20_000, `${chunk}: ${size} bytes gzipped`);
});

test('the page is one sheet of files of its own: nothing inline, nothing from outside', () => {
  const dist = fileURLToPath(new URL('../../../dist/inspector/', import.meta.url));
  const html = readFileSync(`${dist}index.html`, 'utf8');
  assert.not.match(html, /<style|<script(?![^>]*src=)|https?:|style="|\son\w+="/);
});
