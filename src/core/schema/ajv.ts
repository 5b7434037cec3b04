/** Access to ajv: loads it on first use, and makes validators that share no state. */
import type { ErrorObject, Options, ValidateFunction } from 'ajv';
import type { JsonObject } from '../protocol/json.ts';
import type { SchemaDialect } from './keywords.ts';

/** Makes a validator for a guarded schema. `first` stops at the first error; `all` collects every error. */
export type MakeValidator = (json: JsonObject, dialect: SchemaDialect, errors: 'first' | 'all') => Validator;

/** True if the value fits; otherwise `errors` contains ajv's errors. */
export type Validator = ValidateFunction;
export type ValidatorError = ErrorObject;

const OPTIONS: Options = {
  // Our guard has already checked the schema, with better messages. ajv's strict mode would reject annotations, and
  // log.
  strict: false,
  logger: false,
  meta: false,
  validateSchema: false,
  // The wire carries only own properties, and no NaN.
  ownProperties: true,
  strictNumbers: true,
  // 19.99 is a multiple of 0.01, although 19.99 / 0.01 is 1998.9999999999998.
  multipleOfPrecision: 10,
  // In Ajv2020 the optimiser removes variables that `not` beside `allOf` still uses ("props0 is not defined"). Without
  // the optimiser, compiling takes a third less time and checks are as fast, because V8 optimises too.
  code: { optimize: false },
  // Errors then include their value and schema; ./expected.ts writes the messages.
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
 * Loads ajv. Loading takes 60 ms, where a start takes 40 ms without it, and a server whose schemas come from libraries or
 * are simple needs it only to say why a value does not fit. So nothing loads it before the server is idle, or the first
 * check that needs it.
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
    // A new instance each time (0.15 ms): a shared instance keeps every schema, and resolves references of one tool to
    // `$id`s of another.
    const options = { ...OPTIONS, allErrors: errors === 'all' };
    const ajv = dialect === 'draft-07' ? new Ajv({ ...options, ignoreKeywordsWithRef: true }) : new Ajv2020(options);
    addFormats(ajv);
    // Otherwise "format": "isPrototypeOf" would find and call the method that every object inherits.
    Object.setPrototypeOf(ajv.formats, null);
    return ajv.compile(json);
  };
}
