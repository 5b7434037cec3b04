/** Temporary directories of modules, for tests that load, change and load again. */
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { moduleUrl } from '../../harness/compiled.ts';

/** The package as modules in a temporary directory import it. */
export const TROUPE = moduleUrl('src/index.ts');

/** A directory that is removed when the process ends. */
export class Tree {
  readonly path: string;

  constructor(files: Readonly<Record<string, string>> = {}) {
    this.path = realpathSync(mkdtempSync(join(tmpdir(), 'troupe-')));
    process.on('exit', () => rmSync(this.path, { recursive: true, force: true }));
    for (const [name, text] of Object.entries(files)) this.write(name, text);
  }

  /** The path of a file in it. */
  at(name: string): string {
    return join(this.path, name);
  }

  write(name: string, text: string): void {
    mkdirSync(dirname(this.at(name)), { recursive: true });
    writeFileSync(this.at(name), text);
  }

  remove(name: string): void {
    rmSync(this.at(name), { recursive: true });
  }
}

/** A module with one tool, which answers a text. */
export function toolModule(name: string, answer = name): string {
  return `export const ${name} = (): string => ${JSON.stringify(answer)};\n${name}.schema = { type: 'object' };\n`;
}
