/** Lists what a server offers: for people as signatures, for programs as one JSON document. */
import type { Client } from '../../client/client-interface.ts';
import type { ListOptions } from '../../client/client-options.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { Prompt, Resource, ResourceTemplate, Tool } from '../../core/protocol/types.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import { promptSignatureOf, signatureOf } from '../../gateway/tool-signature.ts';
import { plural } from '../top/format.ts';

/** The document of `troupe inspect --json`. */
export interface ServerListing {
  readonly server: {
    readonly name: string;
    readonly version: string;
    readonly title?: string;
    readonly revision: string;
    readonly era: string;
    readonly instructions?: string;
  };
  readonly capabilities: JsonObject;
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  readonly prompts: readonly Prompt[];
}

export async function listServer(client: Client, options?: ListOptions): Promise<ServerListing> {
  const [tools, resources, templates, prompts] = await Promise.all([
    client.tools(options),
    client.resources(options),
    client.templates(options),
    client.prompts(options),
  ]);
  const { name, version, title, revision, era, instructions, capabilities } = client.server;
  return {
    server: {
      name,
      version,
      ...(title === undefined ? {} : { title }),
      revision,
      era,
      ...(instructions === undefined ? {} : { instructions }),
    },
    capabilities,
    tools,
    resources,
    templates,
    prompts,
  };
}

/** The longest first line of a description, in characters. */
const LONGEST = 160;

/** Formats the offers for a person. */
export function listingText({ server, tools, resources, templates, prompts }: ServerListing): string {
  const lines = [`${visibleLine(server.title ?? server.name)} ${visibleLine(server.version)} (${server.revision})`];
  const section = (title: string, count: number, entries: readonly string[]): void => {
    if (count > 0) lines.push('', plural(count, title), ...entries);
  };
  section(
    'tool',
    tools.length,
    tools.flatMap((tool) => [...indented(signatureOf(tool)), ...about(tool.description)]),
  );
  section(
    'resource',
    resources.length,
    resources.flatMap(({ uri, name, mimeType, description }) => [
      `  ${[uri, name === uri ? undefined : name, mimeType].flatMap((each) => (each === undefined ? [] : [visibleLine(each)])).join('  ')}`,
      ...about(description),
    ]),
  );
  section(
    'resource template',
    templates.length,
    templates.flatMap(({ uriTemplate, name, description }) => [
      `  ${visibleLine(uriTemplate)}  ${visibleLine(name)}`,
      ...about(description),
    ]),
  );
  section(
    'prompt',
    prompts.length,
    prompts.flatMap((prompt) => [...indented(promptSignatureOf(prompt)), ...about(prompt.description)]),
  );
  if (lines.length === 1) lines.push('', 'It offers nothing.');
  return `${lines.join('\n')}\n`;
}

function indented(text: string): string[] {
  return text.split('\n').map((line) => `  ${visibleLine(line)}`);
}

/** The first line of a description. */
function about(description: string | undefined): string[] {
  const [first = ''] = (description ?? '').trim().split('\n');
  if (first === '') return [];
  return [`      ${visibleLine(first.length > LONGEST ? `${first.slice(0, LONGEST)}…` : first)}`];
}
