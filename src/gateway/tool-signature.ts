/** Formats tools and prompts as TypeScript signatures, from their JSON Schemas. */
import type { Prompt, Tool } from '../core/protocol/types.ts';
import { memberTypes, typeOf } from '../core/schema/written-types.ts';

/** The longest signature on one line, in characters. */
const LINE = 100;

/** @example signatureOf(tool) // search(q: string, limit?: number): { hits: string[] } */
export function signatureOf({
  name,
  inputSchema,
  outputSchema,
}: Pick<Tool, 'name' | 'inputSchema' | 'outputSchema'>): string {
  const result = outputSchema === undefined ? '' : `: ${typeOf(outputSchema)}`;
  return callOf(name, memberTypes(inputSchema), result);
}

/** @example promptSignatureOf(prompt) // review(code: string, style?: string) */
export function promptSignatureOf({ name, arguments: list = [] }: Pick<Prompt, 'name' | 'arguments'>): string {
  return callOf(
    name,
    list.map((argument) => `${argument.name}${argument.required === true ? '' : '?'}: string`),
    '',
  );
}

function callOf(name: string, parameters: readonly string[], result: string): string {
  const line = `${name}(${parameters.join(', ')})${result}`;
  if (line.length <= LINE || parameters.length < 2) return line;
  return `${name}(\n${parameters.map((parameter) => `  ${parameter},\n`).join('')})${result}`;
}
