/** One POST by itself: what it says to the core when its client is slow, or gone. */
import * as assert from 'uvu/assert';
import { PostExchange } from '../../../../src/core/http/exchange.ts';
import type { HttpRequest, HttpResponse } from '../../../../src/core/http/http-message.ts';
import { suite } from '../../../harness/door.ts';
import { RecordingHost } from '../../transports/support.ts';

const test = suite('exchange');

/** An exchange of a client without a session, whose response takes in what `takes` says. */
function make(takes: boolean) {
  const said: string[] = [];
  const host = new RecordingHost();
  host.bus.on('connection.slow', () => void said.push('slow'));
  host.bus.on('connection.drained', () => void said.push('drained'));
  host.bus.on('connection.left', () => void said.push('disconnected'));
  const response: HttpResponse = {
    listener: undefined,
    gone: false,
    send: (status) => void said.push(`answer ${status}`),
    begin: (status) => void said.push(`begin ${status}`),
    write: () => takes,
    get pending() {
      return takes ? 0 : 100;
    },
    end: () => void said.push('end'),
    destroy: () => void said.push('destroy'),
  };
  const request: HttpRequest = {
    method: 'POST',
    url: '/mcp',
    header: () => undefined,
    values: () => [],
    pick: () => ({}),
    auth: undefined,
    repeats: () => false,
    remoteAddress: undefined,
    connection: undefined,
    localAddress: undefined,
    localPort: undefined,
    version: undefined,
    body() {},
    response,
  };
  const exchange = new PostExchange(
    {
      id: 1,
      principal: 'anonymous',
      request,
      accepts: { json: true, sse: true },
      connection: 'c',
      session: undefined,
      text: undefined,
    },
    {
      host,
      options: { response: 'auto' },
      authenticator: undefined,
      answers: { headers: () => undefined },
      over: () => void said.push('over'),
      end: () => void said.push('failed'),
      enterCell: () => undefined,
    },
  );
  return { exchange, said };
}

test('messages held back for a slow client are released when it disconnects, so that nothing waits for ever', () => {
  const { exchange, said } = make(false);
  exchange.receive('{}', undefined);
  exchange.closed();
  assert.equal(said, ['begin 200', 'slow', 'disconnected', 'drained']);
  exchange.unanswered();
  assert.equal(said.slice(4), ['end', 'over']);
});

test('a client that is gone is not found stalled again and again', () => {
  const { exchange, said } = make(false);
  exchange.receive('{}', undefined);
  assert.is(exchange.tend(0, 1_000, 500), true);
  assert.is(exchange.tend(600, 1_000, 500), false);
  exchange.closed();
  assert.is(exchange.tend(1_200, 1_000, 500), true);
  assert.is(said.filter((word) => word === 'destroy').length, 1);
});

test('an answer is one body, and the exchange is over when the response is', () => {
  const { exchange, said } = make(true);
  exchange.receive('{}', 404);
  exchange.receive('{}', 200);
  assert.equal(said, ['answer 404']);
  exchange.closed();
  assert.equal(said, ['answer 404', 'over']);
});
