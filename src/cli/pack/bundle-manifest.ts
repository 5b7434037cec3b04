/** The manifest of an archive for desktop hosts (MCPB manifest 0.3). */
import { isJsonObject, isObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { suggestion } from '../../core/protocol/near-miss.ts';
import type { Prompt, Tool } from '../../core/protocol/types.ts';
import { PackError } from './packed-project.ts';

/** The members that an author may write as `mcpb` in package.json. Hosts reject a manifest with any other. */
const AUTHORED = [
  ...['display_name', 'long_description', 'icon', 'icons', 'screenshots', 'localization', 'documentation'],
  ...['privacy_policies', 'compatibility', 'user_config', '_meta'],
];
const SENSITIVE = /key|token|secret|password|passwd|credential|auth/i;
/** The longest description of a tool in a manifest, which hosts show in a list. */
const LONGEST = 200;

/** A variable that the host asks its user for. */
export interface AskedVariable {
  readonly name: string;
  /** The value if the user enters none; undefined if they must enter one. */
  readonly usual: string | undefined;
  readonly description: string | undefined;
}

export interface ManifestParts {
  /** The package.json of the project. */
  readonly project: JsonObject;
  /** The program in the archive. */
  readonly entry: string;
  readonly tools: readonly Tool[];
  readonly prompts: readonly Prompt[];
  readonly title: string | undefined;
  readonly variables: readonly AskedVariable[];
  /** The user chooses a folder for durable state. */
  readonly data: boolean;
  /** The node versions that the package supports. */
  readonly node: string;
  /** The only platform on which the archive runs; undefined for all. */
  readonly platform: string | undefined;
  /** The arguments of the program. */
  readonly args: readonly string[];
}

/** The command in the archive. */
export const COMMAND = 'node_modules/troupe/dist/lib/cli/main.js';

/** @throws {PackError} for a package.json that lacks what a host shows, or has what no host accepts */
export function bundleManifest(parts: ManifestParts): JsonObject {
  const { project, entry, tools, prompts, title, variables, data, node, platform, args } = parts;
  const [name, version, description] = textsOf(project);
  const written = authored(project);
  const asked = variables.map(({ name: variable, usual, description: words }) => [
    keyOf(variable),
    {
      type: 'string',
      title: variable,
      description: words ?? `The variable ${variable} of the server`,
      ...(usual === undefined ? { required: true } : { required: false, default: usual }),
      ...(isSensitive(variable) && { sensitive: true }),
    },
  ]);
  const folder = {
    type: 'directory',
    title: 'Folder for data',
    description: 'The server keeps its state in this folder',
    required: true,
  };
  const config = {
    ...Object.fromEntries(asked),
    ...(data && { data: folder }),
    ...(isJsonObject(written.user_config) ? written.user_config : {}),
  };
  const env = Object.fromEntries(variables.map((each) => [each.name, `\${user_config.${keyOf(each.name)}}`]));
  const more = args.length === 0 ? [] : ['--', ...args];
  return {
    manifest_version: '0.3',
    name,
    ...(title !== undefined && { display_name: title }),
    version,
    description,
    author: authorOf(project),
    ...linksOf(project),
    ...written,
    server: {
      type: 'node',
      entry_point: entry,
      mcp_config: {
        command: 'node',
        args: [
          ...[`\${__dirname}/${COMMAND}`, 'run', `\${__dirname}/${entry}`],
          ...(data ? ['--data', `\${user_config.data}`] : []),
          ...more,
        ],
        ...(variables.length > 0 && { env }),
      },
    },
    ...(tools.length > 0 && {
      tools: tools.map((tool) => ({
        name: tool.name,
        ...(tool.description && { description: firstLine(tool.description) }),
      })),
    }),
    // A manifest would repeat the texts of prompts, which the server makes from their arguments.
    ...(prompts.length > 0 && { prompts_generated: true }),
    ...(typeof project.license === 'string' && { license: project.license }),
    ...(Array.isArray(project.keywords) && { keywords: project.keywords.filter((each) => typeof each === 'string') }),
    compatibility: {
      ...(isJsonObject(written.compatibility) ? written.compatibility : {}),
      ...(platform !== undefined && { platforms: [platform] }),
      runtimes: { node },
    },
    ...(Object.keys(config).length > 0 && { user_config: config }),
  };
}

/** The icons and screenshots that the manifest names. */
export function picturesOf(manifest: JsonObject): readonly string[] {
  const icons = Array.isArray(manifest.icons) ? manifest.icons.map((each) => Object(each).src) : [];
  const shots = Array.isArray(manifest.screenshots) ? manifest.screenshots : [];
  return [manifest.icon, ...icons, ...shots].filter((each) => typeof each === 'string');
}

/** The members of package.json that each host shows, and what they must have. */
const SHOWN = {
  name: 'the name of the server, such as "shop"',
  version: 'its version, such as "1.0.0"',
  description: 'one sentence that says what the server does',
  author: 'the name of a person or a company',
} as const;

/** @throws {PackError} that names all that is missing */
function textsOf(project: JsonObject): readonly [name: string, version: string, description: string] {
  const missing = Object.entries(SHOWN).filter(([member]) =>
    member === 'author' ? authorOf(project) === undefined : textIn(project[member]) === '',
  );
  if (missing.length > 0)
    throw new PackError(
      `package.json: hosts show ${Object.keys(SHOWN).join(', ')}. Add ${missing.map(([member, what]) => `"${member}", ${what}`).join('; ')}`,
    );
  return [textIn(project.name), textIn(project.version), textIn(project.description)];
}

function textIn(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value.trim() : '';
}

/** A person as npm writes it: an object, or `Name <mail> (address)`; undefined without a name. */
function authorOf({ author }: JsonObject): JsonObject | undefined {
  const [, named = '', email, url] =
    typeof author === 'string' ? (/^([^<(]*)(?:<([^>]*)>)?\s*(?:\(([^)]*)\))?\s*$/.exec(author) ?? []) : [];
  const read = isObject(author) ? author : { name: named.trim(), email, url };
  if (typeof read.name !== 'string' || read.name.trim() === '') return undefined;
  return {
    name: read.name.trim(),
    ...(typeof read.email === 'string' && { email: read.email }),
    ...(isAddress(read.url) && { url: read.url }),
  };
}

function linksOf({ repository, homepage, bugs }: JsonObject): JsonObject {
  const given = typeof repository === 'string' ? repository : Object(repository).url;
  const short = typeof given === 'string' ? /^(?:github:)?([\w.-]+\/[\w.-]+)$/.exec(given)?.[1] : undefined;
  const url =
    short === undefined
      ? typeof given === 'string'
        ? given.replace(/^git\+/, '')
        : ''
      : `https://github.com/${short}`;
  const support = typeof bugs === 'string' ? bugs : Object(bugs).url;
  return {
    ...(isAddress(url) && { repository: { type: 'git', url } }),
    ...(isAddress(homepage) && { homepage }),
    ...(isAddress(support) && { support }),
  };
}

function isAddress(value: unknown): value is string {
  return typeof value === 'string' && /^https?:\/\//.test(value) && URL.canParse(value);
}

function authored({ mcpb }: JsonObject): Readonly<Record<string, JsonValue | undefined>> {
  if (mcpb === undefined) return {};
  if (!isJsonObject(mcpb)) throw new PackError('package.json: mcpb: expected an object with members of a manifest');
  const unknown = Object.keys(mcpb).find((member) => !AUTHORED.includes(member));
  if (unknown !== undefined)
    throw new PackError(
      `package.json: mcpb: expected ${AUTHORED.join(', ')}, got ${unknown}${suggestion(unknown, AUTHORED)}. Everything else comes from package.json and from the server`,
    );
  return mcpb;
}

/** True for the name of a variable whose value hosts must hide. */
export function isSensitive(variable: string): boolean {
  return SENSITIVE.test(variable);
}

function keyOf(variable: string): string {
  return variable.toLowerCase().replace(/[^a-z0-9_]/g, '_');
}

function firstLine(description: string): string {
  const [line = ''] = description.trim().split('\n');
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST - 1)}…`;
}
