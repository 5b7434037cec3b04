/** Bug reports of other programs that turn OpenAPI operations into tools, about requests, responses and credentials. */
import * as assert from 'uvu/assert';
import { suite } from '../../harness/door.ts';
import { jsonResponse, type RawRequest, rawServer, response } from '../../harness/raw-server.ts';
import { textOf } from '../../harness/results.ts';
import { type ApiStageOptions, apiStage, parameterOf } from './api-stage.ts';

const test = suite('bug reports of others about APIs as tools');

const JSON_TYPE = { 'content-type': 'application/json' };
const TWO = {
  One: { type: 'apiKey', in: 'header', name: 'X-One' },
  Two: { type: 'apiKey', in: 'header', name: 'X-Two' },
} as const;
const LIST = parameterOf('ids', 'query', { style: 'pipeDelimited', explode: false });

interface Report {
  readonly of: string;
  readonly holds: string;
  readonly options: ApiStageOptions;
  readonly args?: Readonly<Record<string, never>> | object;
  readonly answer?: Buffer;
  check(text: string, isError: boolean | undefined, request: RawRequest | undefined, told: readonly string[]): void;
}

const JSON_BODY = { required: true, type: 'application/json', kind: 'json', encoding: {}, files: [] } as const;

const REPORTS: readonly Report[] = [
  {
    of: 'PrefectHQ/fastmcp#4924',
    holds: 'a null in a body is sent, and a member that is absent is not',
    options: { request: { method: 'PATCH', path: '/x', body: JSON_BODY } },
    args: { body: { due: null, note: 'x' } },
    check: (_, __, request) => assert.is(String(request?.body), '{"due":null,"note":"x"}'),
  },
  {
    of: 'Azure/MCP#38',
    holds: 'a path, a query and a body of one call are all sent',
    options: {
      request: {
        ...{ method: 'POST', path: '/carts/{cartId}', body: JSON_BODY },
        parameters: [parameterOf('cartId', 'path'), parameterOf('api-version', 'query')],
      },
    },
    args: { cartId: 'a b', 'api-version': '1', body: { qty: 2 } },
    check: (_, __, request) =>
      assert.equal([request?.path, String(request?.body)], ['/v1/carts/a%20b?api-version=1', '{"qty":2}']),
  },
  {
    of: 'PrefectHQ/fastmcp#5060',
    holds: 'a list with a delimiter is one parameter',
    options: { request: { path: '/x', parameters: [LIST] } },
    args: { ids: ['a', 'b'] },
    check: (_, __, request) => assert.is(request?.path, '/v1/x?ids=a%7Cb'),
  },
  {
    of: 'PrefectHQ/fastmcp#3097',
    holds: 'a body has the type of the document, and no header of the connection of the client',
    options: {
      request: {
        ...{ method: 'POST', path: '/x' },
        body: { required: true, type: 'application/vnd.api+json', kind: 'json', encoding: {}, files: [] },
      },
    },
    args: { body: { a: 1 } },
    check: (_, __, request) => {
      assert.is(request?.headers['content-type'], 'application/vnd.api+json');
      assert.equal(
        Object.keys(request?.headers ?? {}).filter((name) => name.startsWith('mcp-')),
        [],
      );
    },
  },
  {
    of: 'mcp-use/mcp-use#1816',
    holds: 'an empty response is a success, also with the type of JSON',
    options: { request: { method: 'DELETE', path: '/x' } },
    answer: response(200, JSON_TYPE),
    check: (text, isError) => assert.equal([text, isError], ['200 OK', undefined]),
  },
  {
    of: 'naftiko/ikanos#685',
    holds: 'a 204 is a success',
    options: { request: { method: 'POST', path: '/x' } },
    answer: response(204),
    check: (text, isError) => assert.equal([text, isError], ['204 No Content', undefined]),
  },
  {
    of: 'agentgateway/agentgateway#2304',
    holds: 'a body of bytes is sent',
    options: {
      request: {
        ...{ method: 'POST', path: '/x' },
        body: { required: true, type: 'application/octet-stream', kind: 'binary', encoding: {}, files: [] },
      },
    },
    args: { body: { data: Buffer.from('bytes').toString('base64') } },
    check: (_, __, request) =>
      assert.equal([request?.headers['content-type'], request?.body], ['application/octet-stream', 'bytes']),
  },
  {
    of: 'dotCMS/core#36241',
    holds: 'bytes of an image arrive unchanged',
    options: { request: { path: '/x' } },
    answer: response(200, { 'content-type': 'image/x-icon' }, Buffer.from([0, 255, 254, 13])),
    check: (text) => assert.match(text, `"data":"${Buffer.from([0, 255, 254, 13]).toString('base64')}"`),
  },
  {
    of: 'stdapi-ai/stdapi.ai#183',
    holds: 'a video is named, and breaks nothing',
    options: { request: { path: '/x' } },
    answer: response(200, { 'content-type': 'video/mp4' }, Buffer.from([0, 0, 0, 32, 102, 116, 121, 112])),
    check: (text, isError) =>
      assert.equal(
        [text, isError],
        ['200 OK. The response is video/mp4, 8 bytes: no text, image or sound. It is not passed on.', true],
      ),
  },
  {
    of: 'google/adk-python#2228',
    holds: 'the alternative that is configured is sent, although it is not the first one',
    options: {
      schemes: TWO,
      auth: { Two: { token: 'second-key' } },
      request: { path: '/x', security: [[{ scheme: 'One', scopes: [] }], [{ scheme: 'Two', scopes: [] }]] },
    },
    check: (_, __, request) =>
      assert.equal([request?.headers['x-one'], request?.headers['x-two']], [undefined, 'second-key']),
  },
  {
    of: 'suthio/redash-mcp#30',
    holds: 'the log and the error of a failed call have no key',
    options: {
      schemes: TWO,
      auth: { One: { token: 'first-key' } },
      request: { method: 'POST', path: '/x', security: [[{ scheme: 'One', scopes: [] }]] },
    },
    answer: response(500, {}, 'X-One: first-key'),
    check: (text, isError, _, told) => {
      assert.is(isError, true);
      for (const line of [text, ...told]) assert.not.match(line, 'first-key');
    },
  },
  {
    of: 'anomalyco/opencode#36800',
    holds: 'JSON that is not in UTF-8 is not passed on as if it were whole',
    options: { request: { path: '/x' } },
    answer: response(200, JSON_TYPE, Buffer.from([0x22, 0xff, 0x22])),
    check: (text) => assert.match(text, 'The response has bytes that are no text'),
  },
  {
    of: 'accordproject/apap#152',
    holds: 'an error has the status and the words of the API',
    options: { request: { path: '/x' } },
    answer: jsonResponse({ error: 'Template not found' }, 404),
    check: (text, isError) => assert.equal([text, isError], ['404 Not Found: Template not found', true]),
  },
];

for (const { of, holds, options, args = {}, answer = jsonResponse({}), check } of REPORTS)
  test(`${of}: ${holds}`, async () => {
    const api = await rawServer(() => answer);
    const desk = await apiStage(api.url, options);
    const result = await desk.call({ ...args });
    check(textOf(result), result.isError, api.requests[0], desk.told);
    await desk.close();
    await api.close();
  });
