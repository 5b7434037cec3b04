/** Finds the inspector of a running server, and sends it requests, for `troupe top` and `troupe approvals`. */
import { type IncomingMessage, request } from 'node:http';
import { durationOf } from '../../core/kernel/duration.ts';
import { isObject } from '../../core/protocol/json.ts';
import { visibleLine } from '../../core/protocol/visible-text.ts';
import type { Environment } from '../command-io.ts';
import { UsageError } from '../usage.ts';
import { registeredInspectors } from './inspector-registry.ts';

/** The maximum length of a response, in characters. */
export const MAX_LENGTH = 16 * 1024 * 1024;
/** The time limit for the head of a response, in milliseconds. */
const ANSWER_MS = 5_000;
/** The maximum length of a rejection's reason, in characters. */
const MAX_WHY = 500;

/** The inspector rejects the request, and a retry does not help. */
export class Rejected extends Error {
  override readonly name = 'Rejected';
}

/**
 * The address of an inspector.
 *
 * @param argument its URL, or the PID of its process; undefined: the only one
 * @throws {UsageError} if the argument is not an inspector's URL; {Error} if no inspector or several are open
 */
export function findInspector(command: string, argument: string | undefined, env: Environment): URL {
  if (argument !== undefined && !/^\d+$/.test(argument)) return readUrl(command, argument);
  const all = registeredInspectors(env).filter(({ pid }) => argument === undefined || pid === Number(argument));
  const [only, ...more] = all;
  const where = argument === undefined ? '' : ` in process ${argument}`;
  if (!only)
    throw new Error(`no inspected server is running${where}: start one with troupe dev FILE, or with --inspect`);
  if (more.length === 0) return readUrl(command, only.url);
  const list = all.map(
    ({ pid, server, target }) => `  ${String(pid).padStart(8)}  ${visibleLine(server)}  ${visibleLine(target)}`,
  );
  const example = command === 'top' ? 'troupe top ' : '--server ';
  throw new Error(
    `${all.length} inspected servers are running: choose one by its PID, such as ${example}${only.pid}\n${list.join('\n')}`,
  );
}

/** Accepts only loopback URLs: the token must not be sent to another host. */
function readUrl(command: string, argument: string): URL {
  const url = URL.canParse(argument) ? new URL(argument) : undefined;
  if (url?.protocol === 'http:' && url.hostname === '127.0.0.1' && url.hash.length > 1) return url;
  throw new UsageError(
    `troupe ${command}: expected the URL of an inspector with its token, such as http://127.0.0.1:41873/#pZ8…, got ${visibleLine(argument)}`,
  );
}

/**
 * Sends a request to an inspector. @param body JSON for a POST; undefined for a GET
 *
 * @throws {Rejected}; {Error} if a retry may help
 */
export async function askInspector(
  { hostname, port, hash, origin }: URL,
  path: string,
  { body, signal }: { readonly body?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
): Promise<IncomingMessage> {
  const headers = {
    Authorization: `Bearer ${hash.slice(1)}`,
    ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
  };
  const method = body === undefined ? 'GET' : 'POST';
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const asked = request({ hostname, port, path, method, headers, signal }, resolve);
    // The timeout covers only the head of the response: an open stream may be silent for long.
    asked.setTimeout(ANSWER_MS, () => asked.destroy(new Error(`no response within ${durationOf(ANSWER_MS)}`)));
    asked.once('response', () => asked.setTimeout(0));
    asked.on('error', reject);
    asked.end(body);
  });
  answer.setEncoding('utf8');
  const { statusCode = 0 } = answer;
  if (statusCode < 300) return answer;
  const problem = await jsonOfAnswer(answer).catch(() => undefined);
  // Another program may own the port now, so its text is sanitised and truncated.
  const why = visibleLine(isObject(problem) ? String(problem.error) : `status ${statusCode}`).slice(0, MAX_WHY);
  // 503 (too many viewers) and 404 (the viewer is not registered yet) are temporary.
  if (statusCode === 503 || statusCode === 404) throw new Error(why);
  throw new Rejected(`${origin} rejected the request: ${why}`);
}

/** @throws {Error} for a response that is too long, or no JSON */
export async function jsonOfAnswer(answer: IncomingMessage): Promise<unknown> {
  return JSON.parse(await textOfAnswer(answer));
}

/** @throws {Error} for a response that is too long */
export async function textOfAnswer(answer: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of answer) {
    text += String(chunk);
    if (text.length > MAX_LENGTH) throw new Error(`a response is longer than ${MAX_LENGTH} characters`);
  }
  return text;
}
