/** The server of a connected client as a source of a catalogue: what its lists return, read again on request. */
import type { ConnectedClient } from '../../client/connected-client.ts';
import type { JsonObject } from '../../core/protocol/json.ts';
import type { Prompt, Resource, ResourceTemplate, Tool } from '../../core/protocol/types.ts';
import { parseTemplate } from '../../core/protocol/uri-template.ts';
import type { CatalogueEntry, CatalogueSource, CompletedElement, ElementSource } from './server-catalogue.ts';

interface Listed {
  readonly tools: readonly Tool[];
  readonly resources: readonly Resource[];
  readonly templates: readonly ResourceTemplate[];
  readonly prompts: readonly Prompt[];
}

/** The source of the elements. */
const SOURCE = 'the server';

export class ClientListing implements CatalogueSource {
  readonly #client: ConnectedClient;
  #listed: Listed = { tools: [], resources: [], templates: [], prompts: [] };
  #version = 0;

  readonly tools = this.#source(({ tools }) => tools.map((tool) => entry(tool.name, tool)));
  readonly resources = {
    ...this.#source(({ resources, templates }) => [
      ...resources.map((resource) => entry(resource.uri, resource)),
      ...templates.map((template) => entry(template.uriTemplate, template)),
    ]),
    definitions: (): readonly CompletedElement[] =>
      this.#completed(({ templates }) =>
        templates.map(({ uriTemplate }) => ({ uri: uriTemplate, complete: flags(variablesOf(uriTemplate)) })),
      ),
  };
  readonly prompts = {
    ...this.#source(({ prompts }) => prompts.map((prompt) => entry(prompt.name, prompt))),
    definitions: (): readonly CompletedElement[] =>
      this.#completed(({ prompts }) =>
        prompts.map(({ name, arguments: listed = [] }) => ({ name, complete: flags(listed.map((each) => each.name)) })),
      ),
  };
  /** A protocol of MCP lists no machines: each is tools and resources to its clients. */
  readonly machines = { definitions: () => [] };

  constructor(client: ConnectedClient) {
    this.#client = client;
  }

  /** Asks the server for all lists. @throws {ClientError} */
  async refresh(): Promise<void> {
    const fresh = { fresh: true };
    const [tools, resources, templates, prompts] = await Promise.all([
      this.#client.tools(fresh),
      this.#client.resources(fresh),
      this.#client.templates(fresh),
      this.#client.prompts(fresh),
    ]);
    this.#listed = { tools, resources, templates, prompts };
    this.#version += 1;
  }

  /** The server as it introduced itself. */
  introduction(): {
    readonly info: object;
    readonly capabilities: JsonObject;
    readonly instructions: string | undefined;
  } {
    const { revision: _, era: __, capabilities, instructions, ...info } = this.#client.server;
    return { info, capabilities, instructions };
  }

  #source(read: (listed: Listed) => readonly CatalogueEntry[]): ElementSource {
    const version = (): number => this.#version;
    return {
      catalogue: {
        get version() {
          return version();
        },
        all: () => read(this.#listed),
      },
    };
  }

  /** A server does not list which arguments it completes, only that it completes some. */
  #completed(read: (listed: Listed) => readonly CompletedElement[]): readonly CompletedElement[] {
    return this.#client.server.capabilities.completions === undefined ? [] : read(this.#listed);
  }
}

function entry(key: string, definition: object): CatalogueEntry {
  return { key, definition, source: SOURCE, enabled: true };
}

function flags(names: readonly string[]): object {
  return Object.fromEntries(names.map((name) => [name, true]));
}

/** @returns an empty list for a template that cannot be parsed: the server may still read it */
function variablesOf(template: string): readonly string[] {
  try {
    return parseTemplate(template).variables;
  } catch {
    return [];
  }
}
