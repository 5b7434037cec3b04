/** The official JSON schema of each revision, where the folder that holds them lies beside this checkout. */
import { existsSync, readFileSync } from 'node:fs';
import { Ajv, type ValidateFunction } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { Revision } from '../../src/core/protocol/revisions.ts';

const FOLDER = new URL('../../../shared/spec/', import.meta.url);

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
  const document: { $schema?: string; $defs?: object; definitions?: object } = JSON.parse(
    // `schema.ts`, from which this file is made, has `number` for an answer (ElicitResult): its generator writes `integer`.
    readFileSync(new URL(`${name}.schema.json`, FOLDER), 'utf8').replace(
      /("string",\s*)"integer"(,\s*"boolean")/g,
      '$1"number"$2',
    ),
  );
  const modern = document.$schema?.includes('2020-12');
  // Not strict: the schemas use keywords that only document.
  const ajv = modern ? new Ajv2020({ strict: false, allErrors: true }) : new Ajv({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, name);
  const types = document.$defs ?? document.definitions ?? {};
  const validators = new Map<string, ValidateFunction>();
  return {
    has: (type) => type in types,
    faults(type, value) {
      let validate = validators.get(type);
      if (!validate) {
        if (!(type in types)) throw new Error(`the schema ${name} defines no ${type}`);
        validate = ajv.compile({ $ref: `${name}#/${modern ? '$defs' : 'definitions'}/${type}` });
        validators.set(type, validate);
      }
      if (validate(value)) return [];
      return (validate.errors ?? []).map(
        ({ instancePath, message, params }) =>
          `${type}${instancePath}: ${message} ${JSON.stringify(params)} (official JSON schema of ${name})`,
      );
    },
  };
}
