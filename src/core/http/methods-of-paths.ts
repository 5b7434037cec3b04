/** The methods that the paths of an endpoint serve. */

export const HTTP_METHODS = 'GET, POST, DELETE, OPTIONS';
/** The methods of a path that serves only HTTP+SSE of 2024-11-05. */
export const SSE_METHODS = 'GET, POST, OPTIONS';

/** The query parameter of a POST that names its stream of 2024-11-05. */
export const STREAM = /(?:^|&)sse=([^&]*)/;

/** True if a POST is for a stream of 2024-11-05. */
export function namesStream(query: string): boolean {
  return STREAM.test(query);
}
