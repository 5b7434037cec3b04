/** The door to ajv: loads it at first need, and makes validators that share nothing with each other. */
import type { ErrorObject, Options, ValidateFunction } from 'ajv';
import type { JsonObject } from '../protocol/json.ts';
import type { SchemaDialect } from './keywords.ts';

/** Makes a validator for a guarded schema: `first` stops at the first error, `all` lists every one. */
export type MakeValidator = (json: JsonObject, dialect: SchemaDialect, errors: 'first' | 'all') => Validator;

/** True where the value fits; if not, `errors` has what ajv found. */
export type Validator = ValidateFunction;
export type ValidatorError = ErrorObject;

const OPTIONS: Options = {
  // Our own guard has checked the schema, with messages that help: ajv's strict mode would refuse annotations, and log.
  strict: false,
  logger: false,
  meta: false,
  validateSchema: false,
  // The wire carries own properties only, and no NaN.
  ownProperties: true,
  strictNumbers: true,
  // 19.99 is a multiple of 0.01, although 19.99 / 0.01 is 1998.9999999999998.
  multipleOfPrecision: 10,
  // In Ajv2020 the optimiser removes variables that `not` beside `allOf` still uses ("props0 is not defined"). Without it compiling
  // takes a third less, and checks are no slower: V8 optimises too.
  code: { optimize: false },
  // Errors carry the value and the schema that they are about; the texts are ours (./expected.ts).
  verbose: true,
  messages: false,
};

let loading: Promise<void> | undefined;
let ready: MakeValidator | undefined;

/** The maker of validators, or `undefined` until `loadAjv` has finished. */
export function validatorMaker(): MakeValidator | undefined {
  return ready;
}

/**
 * Loads ajv. It takes 60 ms of a start that is 40 ms otherwise, and a server whose schemas are all of a library never needs it:
 * so nothing loads it before the first check by a plain JSON Schema. Call it when the process is idle to have it ready.
 */
export function loadAjv(): Promise<void> {
  loading ??= load().then((maker) => {
    ready = maker;
  });
  return loading;
}

async function load(): Promise<MakeValidator> {
  const [{ Ajv }, { Ajv2020 }, formats] = await Promise.all([
    import('ajv'),
    import('ajv/dist/2020.js'),
    import('ajv-formats'),
  ]);
  const addFormats = formats.default.default;
  return (json, dialect, errors) => {
    // A new instance each time (0.15 ms): one that is shared keeps every schema it ever saw, and lets `$id`s of one tool
    // answer the references of another.
    const options = { ...OPTIONS, allErrors: errors === 'all' };
    const ajv = dialect === 'draft-07' ? new Ajv({ ...options, ignoreKeywordsWithRef: true }) : new Ajv2020(options);
    addFormats(ajv);
    // Without this, "format": "isPrototypeOf" would find and call the method of every object.
    Object.setPrototypeOf(ajv.formats, null);
    return ajv.compile(json);
  };
}
