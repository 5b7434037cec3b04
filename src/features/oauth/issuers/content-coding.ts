/** Decodes the content codings of responses (RFC 9110 section 8.4). */
import type { IncomingMessage } from 'node:http';
import { finished, PassThrough, pipeline, type Readable, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate, createInflateRaw } from 'node:zlib';

/** Codings of one response. More than one is rare, and each costs memory. */
const MAX_CODINGS = 2;

/** The first byte of a gzip stream (RFC 1952 section 2.3.1). */
const GZIP = 0x1f;
/** The compression method of a zlib stream (RFC 1950 section 2.2), in the low bits of its first byte. */
const ZLIB_METHOD = 8;
/** First bytes of JSON. A deflate stream of a message does not begin with one of them. */
const JSON_BEGINS: readonly number[] = [0x7b, 0x5b];

/**
 * The decoded body of a response. Its reader bounds the decoded bytes. A body that ends early, or that is damaged, is
 * destroyed with an error.
 *
 * @param misnamed reports a body that is not encoded although its header says so: it is read as it is
 * @throws {TypeError} for a coding that is not known
 */
export function decodedBody(response: IncomingMessage, misnamed: () => void = () => {}): Readable {
  const header = response.headers['content-encoding'];
  if (header === undefined) return response;
  const codings = header
    .split(',')
    .map((coding) => coding.trim().toLowerCase())
    .filter((coding) => coding !== '' && coding !== 'identity');
  if (codings.length > MAX_CODINGS) throw unknown(header);
  let body: Readable = response;
  // The codings are listed in the order in which they were applied.
  for (const coding of codings.reverse()) body = decode(body, coding, header, misnamed);
  return body;
}

function decode(body: Readable, coding: string, header: string, misnamed: () => void): Readable {
  // A stream of events is flushed event by event, and a server may omit the end of its coding.
  const lenient = { flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH };
  const { BROTLI_OPERATION_FLUSH } = constants;
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return begun(body, misnamed, (first) => (first === GZIP ? createGunzip(lenient) : undefined));
    case 'br':
      return begun(body, misnamed, () =>
        createBrotliDecompress({ flush: BROTLI_OPERATION_FLUSH, finishFlush: BROTLI_OPERATION_FLUSH }),
      );
    case 'deflate':
      // "deflate" is a zlib stream; some servers send one without its header (RFC 9110 section 8.4.1.2).
      return begun(body, misnamed, (first) => {
        if (JSON_BEGINS.includes(first)) return undefined;
        return (first & 0x0f) === ZLIB_METHOD ? createInflate(lenient) : createInflateRaw(lenient);
      });
    default:
      throw unknown(header);
  }
}

/** Decodes a body with the decoder for its first byte; without one, the body is not encoded. */
function begun(body: Readable, misnamed: () => void, decoderFor: (first: number) => Transform | undefined): Readable {
  const decoded = new PassThrough();
  let began = false;
  body.once('readable', () => {
    const first: unknown = body.read();
    if (!(first instanceof Buffer) || first[0] === undefined) return;
    began = true;
    body.unshift(first);
    const decoder = decoderFor(first[0]);
    if (!decoder) misnamed();
    pipeline(decoder ? [body, decoder, decoded] : [body, decoded], ignore);
  });
  // Without a byte there is nothing to decode.
  finished(body, (error) => {
    if (began) return;
    if (error) decoded.destroy(error);
    else decoded.end();
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
