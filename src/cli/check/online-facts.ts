/** Looks up at npm and at the domain of a server whether it can be listed: its version, and the challenge of OpenAI. */
import { isObject, type JsonObject } from '../../core/protocol/json.ts';

/** Each member is undefined if it was not looked up. */
export interface OnlineFacts {
  /** The version of package.json at npm: whether it is there, or the reason why that is unknown. */
  readonly published?: 'yes' | 'no' | { readonly unknown: string };
  /** The token that the domain serves for OpenAI. */
  readonly challenge?: 'yes' | 'no' | { readonly unknown: string };
}

const NPM = 'https://registry.npmjs.org/';
const CHALLENGE_PATH = '/.well-known/openai-apps-challenge';
/** Milliseconds for each look. */
const LOOK_MS = 10_000;
/** The longest document of a version, and the longest token. */
const MAX_BYTES = 4 * 1024 ** 2;
const MAX_TOKEN = 1_024;

/**
 * @param project the package.json, if there is one
 * @param url the address of the server, if it has one
 * @param registry the registry of npm; default: the public one
 */
export async function onlineFacts(
  project: JsonObject | undefined,
  url: URL | undefined,
  registry: string = NPM,
): Promise<OnlineFacts> {
  const { name, version } = project ?? {};
  const isNamed = typeof name === 'string' && typeof version === 'string' && project?.private !== true;
  const [published, challenge] = await Promise.all([
    isNamed
      ? look(new URL(`${encodeURIComponent(name)}/${encodeURIComponent(version)}`, withSlash(registry)), isVersion)
      : undefined,
    url ? look(new URL(CHALLENGE_PATH, url), isToken) : undefined,
  ]);
  return { ...(published && { published }), ...(challenge && { challenge }) };
}

async function look(url: URL, fits: (text: string) => boolean): Promise<'yes' | 'no' | { readonly unknown: string }> {
  try {
    const response = await fetch(url, { signal: AbortSignal.timeout(LOOK_MS), redirect: 'error' });
    if (response.status === 404) return 'no';
    if (!response.ok) return { unknown: `${url.href} answered ${response.status}` };
    return fits(await textOf(response)) ? 'yes' : 'no';
  } catch {
    return { unknown: `${url.href} could not be read` };
  }
}

/** @throws {Error} for a longer text */
async function textOf({ body }: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of body ?? []) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Error('too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function isVersion(text: string): boolean {
  try {
    const document: unknown = JSON.parse(text);
    return isObject(document) && typeof document.version === 'string';
  } catch {
    return false;
  }
}

function isToken(text: string): boolean {
  const token = text.trim();
  return token !== '' && token.length <= MAX_TOKEN && !/[\s<]/.test(token);
}

function withSlash(url: string): string {
  return url.endsWith('/') ? url : `${url}/`;
}
