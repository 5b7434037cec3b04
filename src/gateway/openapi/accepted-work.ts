/** Work that an API has accepted and continues after its response: where its state is, and when it has ended. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { type ApiResponse, redirectOf } from './api-connection.ts';
import { responseData } from './api-result.ts';

/** The place of the state of work. It is recorded, so that another process can continue to poll. */
export interface AcceptedWork {
  readonly url: string;
  /** The response that the place ends with has the result of the work. Otherwise its body describes the work. */
  readonly by: 'location' | 'operation';
}

/** The finding of a poll. */
export type WorkState =
  | { readonly state: 'running'; readonly status: string }
  /** The response is the result. */
  | { readonly state: 'ended' }
  /** The result is at another address. */
  | { readonly state: 'moved'; readonly to: URL };

const OPERATION_HEADERS = ['operation-location', 'azure-asyncoperation'];
const RUNNING =
  /^(?:accepted|created|in[ _-]?progress|not[ _-]?started|pending|processing|provisioning|queued|running|scheduled|started|submitted|updating|waiting|working)$/i;
const FAILED = /^(?:abort(?:ed)?|cancell?ed|error|errored|expired|fail(?:ed|ure)?|rejected|timed[ _-]?out)$/i;
const STATUS_MEMBERS = ['status', 'state', 'phase'];

/**
 * The place at which the state of accepted work can be read, if it has the origin of the API (RFC 9110 section 15.3.3).
 *
 * @param base of the API
 */
export function acceptedWork(response: ApiResponse, base: URL): AcceptedWork | undefined {
  const { headers, status } = response;
  if (status !== 202 && status !== 201 && status !== 200) return undefined;
  const operation = OPERATION_HEADERS.map((name) => headers.get(name)).find((each) => each !== null);
  const place = operation ?? (status === 202 ? headers.get('location') : null);
  if (place === null || place === undefined || !URL.canParse(place, response.url.href)) return undefined;
  const url = new URL(place, response.url);
  if (url.origin !== base.origin || url.username !== '' || url.password !== '') return undefined;
  return { url: url.href, by: operation === undefined ? 'location' : 'operation' };
}

/** Reads the response of a poll. */
export function workState({ by }: AcceptedWork, response: ApiResponse): WorkState {
  const { status, url } = response;
  const moved = redirectOf(response);
  if (moved && moved.origin === url.origin) return { state: 'moved', to: moved };
  const data = responseData(response);
  const said = statusIn(data);
  if (status === 202) return { state: 'running', status: said ?? 'accepted' };
  if (status >= 300 || said === undefined || !RUNNING.test(said)) {
    const result = by === 'operation' && status === 200 ? resultIn(data, url) : undefined;
    return result ? { state: 'moved', to: result } : { state: 'ended' };
  }
  return { state: 'running', status: said };
}

/** True if the work itself has failed, although its state could be read. */
export function hasFailed(response: ApiResponse): boolean {
  return FAILED.test(statusIn(responseData(response)) ?? '');
}

function statusIn(data: JsonValue | undefined): string | undefined {
  if (!isJsonObject(data)) return undefined;
  const { properties } = data;
  for (const place of [data, ...(isJsonObject(properties) ? [properties] : [])])
    for (const name of STATUS_MEMBERS) {
      const value = place[name];
      if (typeof value === 'string') return value.slice(0, 100);
    }
  return undefined;
}

/** Azure: the address of the result, in the description of the work. */
function resultIn(data: JsonValue | undefined, from: URL): URL | undefined {
  const place = isJsonObject(data) ? placeIn(data) : undefined;
  if (place === undefined || !URL.canParse(place, from.href)) return undefined;
  const url = new URL(place, from);
  return url.origin === from.origin && url.href !== from.href ? url : undefined;
}

function placeIn({ resourceLocation }: JsonObject): string | undefined {
  return typeof resourceLocation === 'string' ? resourceLocation : undefined;
}
