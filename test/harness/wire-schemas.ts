/** The official JSON schema of each revision, where the folder that holds them lies beside this checkout. */
import { createHash } from 'node:crypto';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { fileURLToPath } from 'node:url';
import type { ValidateFunction } from 'ajv';
import type { Revision } from '../../src/core/protocol/revisions.ts';

const FOLDER = new URL('../../../shared/spec/', import.meta.url);
/** The validators, as programs. */
const OUT = new URL('../../dist/wire-schemas/', import.meta.url);
const NAME = /^(.*)\.schema\.json$/;
const require = createRequire(import.meta.url);

/** False in a clone without the folder: then only the official packages judge. `wire.test.ts` says so, once, in one line. */
export const haveOfficialSchemas: boolean = existsSync(FOLDER);

/** What one official schema says of a value: each fault in a line of its own, none when it fits. */
export interface OfficialSchema {
  /** True where the schema defines a type of this name. */
  has(type: string): boolean;
  /** @param type the name of a definition, such as `CallToolResult` */
  faults(type: string, value: unknown): readonly string[];
}

const schemas = new Map<string, OfficialSchema>();

/** The schema of a revision. @returns undefined where the folder is not there */
export function officialSchema(revision: Revision): OfficialSchema | undefined {
  return schemaIn(`mcp-${revision}`);
}

/** The schema of the tasks extension. @returns undefined where the folder is not there */
export function tasksSchema(): OfficialSchema | undefined {
  return schemaIn('ext-tasks');
}

function schemaIn(name: string): OfficialSchema | undefined {
  if (!haveOfficialSchemas) return undefined;
  let schema = schemas.get(name);
  if (!schema) {
    schema = read(name);
    schemas.set(name, schema);
  }
  return schema;
}

function read(name: string): OfficialSchema {
  const validators: Readonly<Record<string, ValidateFunction>> = require(fileURLToPath(programOf(name)));
  return {
    has: (type) => Object.hasOwn(validators, type),
    faults(type, value) {
      const validate = validators[type];
      if (validate === undefined) throw new Error(`the schema ${name} defines no ${type}`);
      if (validate(value)) return [];
      return (validate.errors ?? []).map(
        ({ instancePath, message, params }) =>
          `${type}${instancePath}: ${message} ${JSON.stringify(params)} (official JSON schema of ${name})`,
      );
    },
  };
}

/** What the programs are made of, beside the schemas: they are written again if it changes. */
const makers = createHash('sha256');
for (const file of ['../../package-lock.json', 'wire-compiler.ts'])
  makers.update(readFileSync(new URL(file, import.meta.url)));
const MAKERS = makers.digest();

/** The programs, by their schemas. */
const programs = new Map<string, URL>();

/** The program of a schema. Its name has the digest of what it is made of. */
function programOf(name: string): URL {
  const known = programs.get(name) ?? namedAfterDigest(name);
  programs.set(name, known);
  return known;
}

function namedAfterDigest(name: string): URL {
  const digest = createHash('sha256').update(MAKERS).update(textOf(name)).digest('hex').slice(0, 16);
  return new URL(`${name}-${digest}.cjs`, OUT);
}

function textOf(name: string): string {
  return readFileSync(new URL(`${name}.schema.json`, FOLDER), 'utf8');
}

/**
 * Compiles each schema whose program is not there: ten processes of a run need the validators, and each would use half a second
 * of processor time to compile them. The runner does it before it starts them.
 */
export async function compileSchemas(): Promise<void> {
  const names = haveOfficialSchemas ? readdirSync(FOLDER).flatMap((file) => NAME.exec(file)?.[1] ?? []) : [];
  const missing = names.filter((name) => !existsSync(programOf(name)));
  if (missing.length === 0) return;
  const { writeProgram } = await import('./wire-compiler.ts');
  for (const name of missing) writeProgram(name, textOf(name), fileURLToPath(programOf(name)));
}

// A process without the runner, such as an editor's, compiles them itself.
await compileSchemas();
