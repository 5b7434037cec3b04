/** Compiles an official JSON schema to a program that validates each of its types. */
import { mkdirSync, readdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import standalone from 'ajv/dist/standalone/index.js';
import addFormats from 'ajv-formats';

// Not strict: the schemas use keywords that only document.
const OPTIONS = { strict: false, allErrors: true, code: { source: true } };

/** Writes the program, which exports a validator for each type, and deletes those of other versions of the schema. */
export function writeProgram(name: string, text: string, path: string): void {
  const document: { $schema?: string; $defs?: object; definitions?: object } = JSON.parse(
    // `schema.ts`, from which this file is made, has `number` for an answer (ElicitResult): its generator writes `integer`.
    text.replace(/("string",\s*)"integer"(,\s*"boolean")/g, '$1"number"$2'),
  );
  const modern = document.$schema?.includes('2020-12');
  const ajv = modern ? new Ajv2020(OPTIONS) : new Ajv(OPTIONS);
  addFormats.default(ajv);
  ajv.addSchema(document, name);
  const types = Object.keys(document.$defs ?? document.definitions ?? {});
  const places = types.map((type) => [type, `${name}#/${modern ? '$defs' : 'definitions'}/${type}`]);
  const program = standalone.default(ajv, Object.fromEntries(places));
  const folder = dirname(path);
  mkdirSync(folder, { recursive: true });
  for (const file of readdirSync(folder))
    if (file.startsWith(`${name}-`) && file.endsWith('.cjs')) rmSync(join(folder, file), { force: true });
  // Whole or not at all, because another process may load it at the same time.
  const part = `${path}.${process.pid}`;
  writeFileSync(part, program);
  renameSync(part, path);
}
