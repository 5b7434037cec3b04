/** Decodes the content codings of responses (RFC 9110 section 8.4). */
import type { IncomingMessage } from 'node:http';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';

/** Codings of one response. More than one is rare, and each costs memory. */
const MAX_CODINGS = 2;

/** The compression method of a zlib stream (RFC 1950 section 2.2), in the low bits of its first byte. */
const ZLIB_METHOD = 8;

/**
 * The decoded body of a response. Its reader bounds the decoded bytes. A body that ends early, or that is damaged, is
 * destroyed with an error.
 *
 * @throws {TypeError} for a coding that is not known
 */
export function decodedBody(response: IncomingMessage): Readable {
  const header = response.headers['content-encoding'];
  if (header === undefined) return response;
  const codings = header
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > MAX_CODINGS) throw unknown(header);
  let body: Readable = response;
  // The codings are listed in the order in which they were applied.
  for (const coding of codings.reverse()) body = decode(body, coding, header);
  return body;
}

function decode(body: Readable, coding: string, header: string): Readable {
  // A stream of events is flushed event by event, and a server may omit the end of its coding.
  const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return pipeline(body, createGunzip(lenient), ignore);
    case 'br':
      return pipeline(
        body,
        createBrotliDecompress({
          flush: constants.BROTLI_OPERATION_FLUSH,
          finishFlush: constants.BROTLI_OPERATION_FLUSH,
        }),
        ignore,
      );
    case 'deflate':
      return inflate(body, lenient);
    default:
      throw unknown(header);
  }
}

/** "deflate" is a zlib stream; some servers send one without its header (RFC 9110 section 8.4.1.2). */
function inflate(body: Readable, options: { readonly flush: number; readonly finishFlush: number }): Readable {
  const decoded = new PassThrough();
  body.once('readable', () => {
    const first: unknown = body.read();
    if (first instanceof Buffer) body.unshift(first);
    const isZlib = first instanceof Buffer && ((first[0] ?? 0) & 0x0f) === ZLIB_METHOD;
    pipeline(body, isZlib ? createInflate(options) : createInflateRaw(options), decoded, ignore);
  });
  return decoded;
}

function unknown(header: string): TypeError {
  return new TypeError(
    `expected a response in identity, gzip, deflate or br, got the content coding "${header.slice(0, 100)}"`,
  );
}

/** The reader of a body sees its error. */
function ignore(): void {}
