/** The address of a request: the path of an operation with the values of its arguments, below its base and nowhere else. */
import { ToolError } from '../../core/protocol/errors.ts';
import { describe, isJsonObject, type JsonObject } from '../../core/protocol/json.ts';
import { type EncodedPair, inlineText, isJsonList, percentEncoded, queryPairs } from './argument-text.ts';
import type { OperationParameter, OperationRequest } from './operation.ts';

/** Longest address, in characters: what servers and proxies accept. */
const MAX_ADDRESS = 16_384;
/** Times that a value is decoded in search of dots: by a proxy, and by the server behind it. */
const MAX_DECODINGS = 4;

/** A value that no path of a request may have. The message says why. */
function problemOfPathText(text: string): string | undefined {
  if (text === '') return 'it is empty, so that the path would be another one';
  let decoded = text;
  for (let time = 0; time < MAX_DECODINGS; time += 1) {
    // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it finds
    if (/[\u0000-\u001f\u007f]/.test(decoded)) return 'it has a control character';
    if (decoded.split(/[/\\]/).some(isDots))
      return 'it has "." or ".." between slashes, which would lead to another path';
    const next = decodedOnce(decoded);
    if (next === decoded) return undefined;
    decoded = next;
  }
  return 'it is percent-encoded several times';
}

/** Servers of Java remove the parameters of a segment, such as `..;a=b`. */
function isDots(segment: string): boolean {
  const [name] = segment.split(';');
  return name === '.' || name === '..';
}

/** The text with each valid escape decoded. Never throws. */
function decodedOnce(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (found) => Buffer.from(found.replaceAll('%', ''), 'hex').toString());
}

/** The texts in a value: those that a server reads as a part of a path. */
function pathTexts(value: unknown): readonly string[] {
  if (isJsonList(value as never)) return Object.values(value as object).flatMap(pathTexts);
  if (isJsonObject(value)) return Object.entries(value).flatMap(([key, member]) => [key, ...pathTexts(member)]);
  return value === null || value === undefined ? [''] : [String(value)];
}

/**
 * Builds the address of a request.
 *
 * @param mount its name, for errors
 * @throws {ToolError} for a value that the path may not have, and for an address that is not below the base
 * @example requestAddress('shop', { base: 'https://api.example.com/v1', path: '/pets/{id}', … }, { id: 'a/b' }).href ===
 * 'https://api.example.com/v1/pets/a%2Fb'
 */
export function requestAddress(mount: string, request: OperationRequest, args: JsonObject): URL {
  const { base, path, parameters } = request;
  const values = new Map(
    parameters
      .filter((each) => each.in === 'path')
      .map((parameter) => [parameter.name, pathValue(mount, parameter, args)] as const),
  );
  const below = path.replace(/\{([^{}]*)\}/g, (found, name: string) => values.get(name) ?? percentEncoded(found));
  const query = parameters
    .filter((each) => each.in === 'query')
    .flatMap((parameter) => queryPairs(parameter.name, parameter, args, parameter.argument));
  const fixed = below.indexOf('?');
  const plain = fixed === -1 ? below : below.slice(0, fixed);
  const own = fixed === -1 ? [] : [below.slice(fixed + 1)];
  const text = [...own, ...query.map(joined)].join('&');
  return checkedAddress(mount, base, `${plain.startsWith('/') ? '' : '/'}${plain}`, text);
}

function joined([name, value]: EncodedPair): string {
  return `${name}=${value}`;
}

function pathValue(mount: string, parameter: OperationParameter, args: JsonObject): string {
  const { argument, name } = parameter;
  const value = args[argument];
  const refuse = (why: string): ToolError =>
    new ToolError(
      `${mount}: the argument "${argument}" cannot be a part of the path: ${why}. Nothing was sent. Pass another value`,
    );
  if (value === undefined || value === null) throw refuse(`expected a value, got ${describe(value)}`);
  const problem = pathTexts(value)
    .map(problemOfPathText)
    .find((each) => each !== undefined);
  if (problem !== undefined) throw refuse(problem);
  const text = inlineText(name, parameter, args, argument, percentEncoded);
  if (text === '') throw refuse('it is empty, so that the path would be another one');
  return text;
}

/**
 * The address of a path, if URL parsers leave it where it is: below the base.
 *
 * @throws {ToolError}
 */
function checkedAddress(mount: string, base: string, path: string, query: string): URL {
  const outside = (): ToolError =>
    new ToolError(
      `${mount}: the path of this call is not below the address of the API. Nothing was sent. Pass other values`,
    );
  const root = new URL(base);
  const prefix = root.pathname === '/' ? '' : root.pathname;
  const whole = `${root.origin}${prefix}${path}${query === '' ? '' : `?${query}`}`;
  if (whole.length > MAX_ADDRESS)
    throw new ToolError(
      `${mount}: expected arguments that make an address of at most ${MAX_ADDRESS} characters, got ${whole.length}. Nothing was sent. Pass less`,
    );
  if (!URL.canParse(whole)) throw outside();
  const url = new URL(whole);
  const same =
    url.origin === root.origin &&
    url.username === '' &&
    url.password === '' &&
    url.hash === '' &&
    url.pathname === `${prefix}${path}`;
  // Between the parameters of one segment, two values may make dots.
  if (!same || url.pathname.split('/').some((segment) => isDots(decodedOnce(segment)))) throw outside();
  return url;
}
