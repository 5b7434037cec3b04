/** Writes the types of a server, from its lists, as a file that `connect<…>(…)` takes. */
import type { Tool } from '../../core/protocol/types.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { comment, freeName, key, SchemaTypes, typeName } from '../../core/schema/written-types.ts';
import type { ServerListing } from '../call/server-listing.ts';

/** The beginning of each written file, by which the command knows it. */
export const WRITTEN = '/* Written by `troupe types`.';

/** Addresses of resources that are written. A server with more has a list that changes, and each address is accepted. */
const MAX_RESOURCES = 200;

/** The names that a written type must not have. */
const RESERVED = ['Json', 'Record'] as const;

/** Writes the file. The order is that of the names, so that the same server has the same text. @param name of the interface */
export function serverTypesText(
  listing: Pick<ServerListing, 'server' | 'tools' | 'prompts' | 'resources' | 'templates'>,
  name?: string,
): string {
  const { server } = listing;
  const taken = new Set<string>(RESERVED);
  const own = freeName(typeName(name ?? server.name, 'Server'), taken);
  const declarations: string[] = [];
  const typed = (schema: unknown, prefix: string, writer: 'program' | 'server'): string => {
    const types = new SchemaTypes(schema, { prefix, writer, taken });
    const text = types.type(schema, '      ');
    declarations.push(...types.declarations);
    return text;
  };
  const tools = byName(listing.tools).map((tool) => toolText(tool, typed));
  const prompts = byName(listing.prompts).map(({ name: prompt, description, arguments: list = [] }) => {
    const members = firstOfEach(list).map(
      (each) =>
        `${comment(each.description, '        ')}        readonly ${key(each.name)}${each.required === true ? ': string' : '?: string'};\n`,
    );
    const texts = members.length === 0 ? 'Record<string, never>' : `{\n${members.join('')}      }`;
    return `${comment(description, '    ')}    readonly ${key(prompt)}: {\n      readonly arguments: ${texts};\n    };\n`;
  });
  const addresses = [
    ...listing.resources.map(({ uri }) => uri),
    ...listing.templates.map(({ uriTemplate }) => uriTemplate),
  ];
  const resources = [...new Set(addresses)].sort(compare).map((uri) => `    readonly ${key(uri)}: object;\n`);
  const kind = (kindName: string, members: readonly string[]): string =>
    `  readonly ${kindName}: ${members.length === 0 ? 'Record<never, never>' : `{\n${members.join('')}  }`};\n`;
  const body = `${kind('tools', tools)}${kind('prompts', prompts)}${kind('resources', resources.length > MAX_RESOURCES ? [] : resources)}`;
  const text = `${comment(`The types of the server ${visibleLine(server.name)}, for connect<${own}>(…).`, '')}export interface ${own} {\n${body}}\n`;
  const rest = declarations.map((declaration) => `\n${declaration}`).join('');
  const json = /\bJson\b/.test(text + rest) ? `\n${JSON_TYPE}` : '';
  return `${WRITTEN} Do not edit it: run the command again. */\n/* eslint-disable */\n\n${text}${rest}${json}`;
}

const JSON_TYPE = `/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [name: string]: Json | undefined };
`;

function toolText(
  { name, description, inputSchema, outputSchema }: Tool,
  typed: (schema: unknown, prefix: string, writer: 'program' | 'server') => string,
): string {
  const prefix = typeName(name, 'Tool');
  const input = `      readonly input: ${typed(inputSchema, `${prefix}Input`, 'program')};\n`;
  const output =
    outputSchema === undefined ? '' : `      readonly output: ${typed(outputSchema, `${prefix}Output`, 'server')};\n`;
  return `${comment(description, '    ')}    readonly ${key(name)}: {\n${input}${output}    };\n`;
}

/** In the order of names, each once. */
function byName<Element extends { readonly name: string }>(elements: readonly Element[]): readonly Element[] {
  return firstOfEach(elements).sort((one, other) => compare(one.name, other.name));
}

/** The first element of each name. */
function firstOfEach<Element extends { readonly name: string }>(elements: readonly Element[]): Element[] {
  const first = new Map<string, Element>();
  for (const element of elements) if (!first.has(element.name)) first.set(element.name, element);
  return [...first.values()];
}

function compare(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
