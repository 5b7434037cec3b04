/** One keep-alive connection of a load generator: writes prepared bytes, and reads of an answer what it must. */
import { connect, type Socket } from 'node:net';

/** Hears an answer: its status, its body, and its head with the status line. */
type OnAnswer = (status: number, body: string, head: string) => void;

/** The end of a body in chunks, which is how a server says that an answer of unknown length is whole. */
const LAST_CHUNK = '0\r\n\r\n';
const NO_BODY = /^HTTP\/1\.1 204 /;

export class HttpConnection {
  readonly #socket: Socket;
  #rest = '';
  #onAnswer: OnAnswer = () => {};
  #onFailure: (error: Error) => void = () => {};

  private constructor(url: URL, opened: () => void, failed: (error: Error) => void) {
    this.#onFailure = failed;
    // One buffer for all that is read: a generator that makes garbage measures itself.
    const buffer = Buffer.allocUnsafe(64 * 1024);
    const callback = (length: number): boolean => {
      this.#read(buffer.toString('latin1', 0, length));
      return true;
    };
    this.#socket = connect({
      host: url.hostname,
      port: Number(url.port),
      noDelay: true,
      onread: { buffer, callback },
    });
    this.#socket.once('connect', opened);
    this.#socket.on('error', (error) => this.#onFailure(error));
    this.#socket.once('close', () => this.#onFailure(new Error('the server closed a connection that was in use')));
  }

  static open(url: URL): Promise<HttpConnection> {
    return new Promise((resolve, reject) => {
      const connection = new HttpConnection(url, () => resolve(connection), reject);
    });
  }

  /** Who hears what is answered from now on, and what goes wrong. */
  heard(onAnswer: OnAnswer, onFailure: (error: Error) => void): void {
    this.#onAnswer = onAnswer;
    this.#onFailure = onFailure;
  }

  /** Writes one request. The bytes may change again once its answer has come. */
  send(request: Uint8Array): void {
    this.#socket.write(request);
  }

  /** Writes one request, and waits for its answer. @throws {Error} when the connection fails */
  exchange(request: Uint8Array): Promise<{ readonly status: number; readonly body: string; readonly head: string }> {
    return new Promise((resolve, reject) => {
      this.heard((status, body, head) => resolve({ status, body, head }), reject);
      this.send(request);
    });
  }

  close(): void {
    this.heard(
      () => {},
      () => {},
    );
    this.#socket.destroy();
  }

  #read(chunk: string): void {
    const text = this.#rest === '' ? chunk : this.#rest + chunk;
    this.#rest = text;
    const end = text.indexOf('\r\n\r\n');
    if (end < 0) return;
    const head = text.slice(0, end);
    const body = text.slice(end + 4);
    const length = /\r\ncontent-length: *(\d+)/i.exec(head)?.[1];
    const isEnded = body === LAST_CHUNK || body.endsWith(`\r\n${LAST_CHUNK}`);
    if (length === undefined ? !isEnded && !NO_BODY.test(head) : body.length < Number(length)) return;
    if (length !== undefined && body.length > Number(length))
      return this.#onFailure(new Error(`expected one answer at a time, got ${text.slice(0, 1000)}`));
    this.#rest = '';
    this.#onAnswer(Number(head.slice('HTTP/1.1 '.length, 'HTTP/1.1 200'.length)), body, head);
  }
}
