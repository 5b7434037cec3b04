/** Server-sent events as text. Every function returns one complete block and rejects text that would start another. */

/** A comment, which clients skip: it keeps proxies from closing a quiet stream (2026-07-28 streamable-http, "Receiving Messages"). */
export const KEEP_ALIVE = ': keep-alive\n\n';

/** Characters that a header may carry: an event id returns as `Last-Event-ID`. */
const VISIBLE = /^[!-~]+$/;

/**
 * One message.
 *
 * @param data one line: JSON as `JSON.stringify` writes it
 * @param id visible ASCII; a client that lost the stream sends it back as `Last-Event-ID`
 * @throws {TypeError} for a line end in `data`, or an id of anything but visible ASCII
 * @example eventText('{"jsonrpc":"2.0"}', 'a_1') === 'id: a_1\ndata: {"jsonrpc":"2.0"}\n\n'
 * @see WHATWG HTML, "Interpreting an event stream"
 */
export function eventText(data: string, id?: string): string {
  checkLine(data);
  if (id === undefined) return `data: ${data}\n\n`;
  checkName('id', id);
  return `id: ${id}\ndata: ${data}\n\n`;
}

/**
 * A message of a stream whose events have ids. What they all begin with is checked once, by {@link idPrefix}.
 *
 * @param prefix as {@link idPrefix} gives it
 * @param seq the number of the event, whole
 * @param data one line
 * @throws {TypeError} for a line end in `data`
 * @example numberedText(idPrefix('a'), 1, '{}') === 'id: a_1\ndata: {}\n\n'
 */
export function numberedText(prefix: string, seq: number, data: string): string {
  checkLine(data);
  return `${prefix}${seq}\ndata: ${data}\n\n`;
}

/**
 * The prefix of the events of one stream: their id without the number.
 *
 * @param stream the id of the stream
 * @throws {TypeError} for an id of anything but visible ASCII
 */
export function idPrefix(stream: string): string {
  checkName('id', stream);
  return `id: ${stream}_`;
}

/**
 * The first event of a stream, so that a client that loses the stream at once has an id to resume from (2025-11-25
 * basic/transports, "Sending Messages to the Server"). Its data is empty.
 *
 * @param retryMs whole milliseconds from 0 before the client reconnects; `undefined` leaves that to the client
 * @throws {TypeError} for an id of anything but visible ASCII
 * @throws {RangeError} for milliseconds that are not whole or are below 0
 */
export function primingText(id: string, retryMs: number | undefined): string {
  checkName('id', id);
  return `id: ${id}\n${retryMs === undefined ? '' : retryField(retryMs)}data: \n\n`;
}

/**
 * Sets the time before a client reconnects, without an event.
 *
 * @param retryMs whole milliseconds from 0
 * @throws {RangeError} for milliseconds that are not whole or are below 0
 */
export function retryText(retryMs: number): string {
  return `${retryField(retryMs)}\n`;
}

/**
 * An event of another type than `message`: the `endpoint` event of 2024-11-05.
 *
 * @param event its type, visible ASCII
 * @param data one line
 * @throws {TypeError} for a line end in `data`, or a type of anything but visible ASCII
 */
export function namedEventText(event: string, data: string): string {
  checkName('event', event);
  checkLine(data);
  return `event: ${event}\ndata: ${data}\n\n`;
}

/** Longest event whose message is read, in characters: a longer one is skipped. */
const MAX_EVENT = 256 * 1024;

/** Reads the messages of a stream that the functions above have written, from pieces of its text. */
export class EventMessages {
  #rest = '';
  /** The piece ends within an event that is too long. */
  #skips = false;

  /** The messages that are complete with this piece. */
  add(piece: string): readonly string[] {
    const events = (this.#rest + piece).split('\n\n');
    const rest = events.pop() ?? '';
    if (this.#skips && events.length > 0) {
      this.#skips = false;
      events.shift();
    }
    if (rest.length > MAX_EVENT) this.#skips = true;
    // The last character may be the first one of the end of an event.
    this.#rest = this.#skips ? rest.slice(-1) : rest;
    return events.flatMap((event) => (event.length > MAX_EVENT ? [] : (/^data: (.+)$/m.exec(event)?.[1] ?? [])));
  }
}

function retryField(ms: number): string {
  if (!Number.isSafeInteger(ms) || ms < 0)
    throw new RangeError(`retryMs: expected whole milliseconds of at least 0, got ${String(ms)}`);
  return `retry: ${ms}\n`;
}

function checkLine(data: string): void {
  if (data.includes('\n') || data.includes('\r'))
    throw new TypeError(
      `data: expected one line of JSON, got ${data.length} characters with a line end among them, which would start another field. Write JSON without indentation`,
    );
}

function checkName(field: 'id' | 'event', text: string): void {
  if (!VISIBLE.test(text))
    throw new TypeError(
      `${field}: expected visible ASCII characters (! to ~), at least one, got ${text.length} characters with others among them`,
    );
}
