/** The inputs of a configuration of VS Code: values that a person is asked for (`${input:ID}`). */
import { isJsonObject, type JsonObject, type JsonValue } from '../core/protocol/json.ts';

export interface ConfiguredInput {
  readonly id: string;
  /** The question; undefined if the file has none. */
  readonly description: string | undefined;
  /** True for a secret. */
  readonly password: boolean;
  readonly fallback: string | undefined;
  /** The values to choose from. Empty: any text. */
  readonly options: readonly string[];
}

/** Reads the inputs of a file: beside its servers, or in `mcp` of a settings.json. Other members have no effect. */
export function inputsIn(root: JsonObject): ReadonlyMap<string, ConfiguredInput> {
  const lists = [root.inputs, isJsonObject(root.mcp) ? root.mcp.inputs : undefined];
  return new Map(
    lists.flatMap((list) => {
      if (Array.isArray(list)) return list.flatMap(inputOf);
      // Some files have them by their ids.
      const byId = isJsonObject(list) ? Object.entries(list) : [];
      return byId.flatMap(([id, input]) => (isJsonObject(input) ? inputOf({ ...input, id }) : []));
    }),
  );
}

/** An input that the file does not describe: some files leave that to a person. */
export function undescribed(id: string): ConfiguredInput {
  return { id, description: undefined, password: true, fallback: undefined, options: [] };
}

function inputOf(value: JsonValue): readonly (readonly [string, ConfiguredInput])[] {
  if (!isJsonObject(value) || typeof value.id !== 'string') return [];
  const { id, description, password, default: fallback, options } = value;
  const input: ConfiguredInput = {
    id,
    description: typeof description === 'string' ? description : undefined,
    password: password === true,
    fallback: typeof fallback === 'string' ? fallback : undefined,
    options: Array.isArray(options) ? options.flatMap(optionOf) : [],
  };
  return [[id, input]];
}

/** An option is a text, or an object with a label and a value. */
function optionOf(option: JsonValue): readonly string[] {
  const value = isJsonObject(option) ? (option.value ?? option.label) : option;
  return typeof value === 'string' ? [value] : [];
}
