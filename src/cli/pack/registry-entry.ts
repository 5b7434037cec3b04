/** The entry of a packed server in the MCP Registry: `server.json` (schema 2025-12-11). */
import type { JsonObject } from '../../core/protocol/json.ts';
import { type AskedVariable, isSensitive } from './bundle-manifest.ts';
import { PackError } from './packed-project.ts';

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';
/** A name of the registry: a domain backwards, and one slash. */
const NAME = /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/;
const LONGEST_NAME = 200;
const LONGEST_DESCRIPTION = 100;
/** The registry accepts archives from releases of these. */
const RELEASES = /^https:\/\/(?:github\.com|gitlab\.com)\//;

export interface RegistryParts {
  /** The package.json of the project. */
  readonly project: JsonObject;
  /** The address of the archive. */
  readonly release: string;
  /** SHA-256 of the archive, in hexadecimal digits. */
  readonly hash: string;
  readonly title: string | undefined;
  readonly variables: readonly AskedVariable[];
}

/** @throws {PackError} for what the registry would reject */
export function registryEntry({ project, release, hash, title, variables }: RegistryParts): JsonObject {
  const { mcpName, description, version, homepage } = project;
  if (typeof mcpName !== 'string' || !NAME.test(mcpName) || mcpName.length > LONGEST_NAME)
    throw new PackError(
      `package.json: mcpName: expected the name in the registry, such as "io.github.ada/shop", got ${typeof mcpName === 'string' ? JSON.stringify(mcpName) : 'none'}`,
    );
  if (typeof description !== 'string' || description.length > LONGEST_DESCRIPTION)
    throw new PackError(
      `package.json: description: expected at most ${LONGEST_DESCRIPTION} characters, as the registry does, got ${String(description).length}`,
    );
  if (!RELEASES.test(release))
    throw new PackError(
      `--release: expected the address of a release at github.com or gitlab.com, which the registry accepts, got ${release}`,
    );
  const repository = typeof project.repository === 'string' ? project.repository : Object(project.repository).url;
  const source =
    typeof repository === 'string' ? /(github|gitlab)\.com[/:]([\w.-]+\/[\w.-]+?)(?:\.git)?$/.exec(repository) : null;
  return {
    $schema: SCHEMA,
    name: mcpName,
    ...(title !== undefined && title.length <= LONGEST_DESCRIPTION && { title }),
    description,
    ...(source && { repository: { url: `https://${source[1]}.com/${source[2]}`, source: source[1] } }),
    version: String(version),
    ...(typeof homepage === 'string' && URL.canParse(homepage) && { websiteUrl: homepage }),
    packages: [
      {
        registryType: 'mcpb',
        identifier: release,
        fileSha256: hash,
        transport: { type: 'stdio' },
        ...(variables.length > 0 && {
          environmentVariables: variables.map(({ name, usual, description: words }) => ({
            name,
            ...(words !== undefined && { description: words }),
            isRequired: usual === undefined,
            isSecret: isSensitive(name),
            ...(usual !== undefined && { default: usual }),
          })),
        }),
      },
    ],
  };
}
