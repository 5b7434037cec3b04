/** The built files of the page: those that exist when the listener opens, and no others. */
import { existsSync, readdirSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join, posix, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { brotliDecompress } from 'node:zlib';
import { packageFile } from '../../core/kernel/package-files.ts';
import { sha256 } from '../../core/kernel/sha256.ts';

interface PageFile {
  readonly body: Uint8Array;
  readonly type: string;
  readonly etag: string;
  /** True if its name contains a hash of its content. */
  readonly hashed: boolean;
}

const TYPES: Readonly<Record<string, string>> = {
  html: 'text/html; charset=utf-8',
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  json: 'application/json',
  woff2: 'font/woff2',
};
/** The template for exports. It is never served itself. */
const TEMPLATE = 'export.html';

/** The ending of a file that the build compressed (inspector/build.ts). */
const COMPRESSED = '.br';
const decompress = promisify(brotliDecompress);

export class PageFiles {
  readonly #folder: string;
  readonly #names: ReadonlySet<string>;
  /** The files that the build compressed, by their names without `.br`. */
  readonly #compressed = new Set<string>();
  readonly #loaded = new Map<string, Promise<PageFile>>();

  constructor(folder = fileURLToPath(packageFile('dist/inspector'))) {
    this.#folder = folder;
    const found = existsSync(folder) ? readdirSync(folder, { recursive: true, withFileTypes: true }) : [];
    this.#names = new Set(
      found
        .filter((entry) => entry.isFile())
        .map((entry) => posix.join(entry.parentPath.slice(folder.length).split(sep).join('/'), entry.name))
        .map((name) => name.replace(/^\//, ''))
        .map((name) => {
          if (!name.endsWith(COMPRESSED)) return name;
          const plain = name.slice(0, -COMPRESSED.length);
          this.#compressed.add(plain);
          return plain;
        })
        .filter((name) => name !== TEMPLATE && typeOf(name) !== undefined),
    );
  }

  /** True if the page was built. */
  get built(): boolean {
    return this.#names.has('index.html');
  }

  /** @param path the path of a request, without its query. Undefined for an unknown file */
  find(path: string): Promise<PageFile> | undefined {
    const name = path === '/' ? 'index.html' : path.slice(1);
    if (!this.#names.has(name)) return undefined;
    let file = this.#loaded.get(name);
    if (!file) {
      file = this.#load(name);
      file.catch(() => this.#loaded.delete(name));
      this.#loaded.set(name, file);
    }
    return file;
  }

  /** The template for exports. @throws if the page was not built */
  async template(): Promise<string> {
    return (await this.#read(TEMPLATE)).toString('utf8');
  }

  #read(name: string): Promise<Buffer> {
    const path = join(this.#folder, name);
    return this.#compressed.has(name) ? readFile(path + COMPRESSED).then((body) => decompress(body)) : readFile(path);
  }

  async #load(name: string): Promise<PageFile> {
    const body = await this.#read(name);
    const etag = `"${sha256(body).slice(0, 22)}"`;
    return { body, type: typeOf(name) ?? '', etag, hashed: name.startsWith('assets/') };
  }
}

function typeOf(name: string): string | undefined {
  return TYPES[name.slice(name.lastIndexOf('.') + 1)];
}
