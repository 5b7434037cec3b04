/** Failures of calls to an upstream: the answer that the caller gets, and what a model reads. */
import * as assert from 'uvu/assert';
import { type CallFailure, ClientError, ErrorResponse } from '../../../src/client/client-errors.ts';
import { ErrorCode, ProtocolError } from '../../../src/core/protocol/errors.ts';
import type { JsonObject } from '../../../src/core/protocol/json.ts';
import { META } from '../../../src/core/protocol/meta.ts';
import { answerFailure } from '../../../src/gateway/mounts/upstream-error.ts';
import { suite } from '../../harness/door.ts';

const test = suite('failures of an upstream');

const SECRET = '/home/ada/server --token s3cret';
const failure = (over: Partial<CallFailure>): ClientError =>
  new ClientError(SECRET, { reason: 'closed', message: `stderr: ${SECRET}`, carriedOut: 'unknown', ...over });

function toolResult(error: Error): { text: string; data: unknown; meta: unknown } {
  const result = answerFailure({ mount: 'gh', method: 'tools/call', about: 'gh_create_issue' }, error);
  assert.is(result.isError, true);
  const { content, _meta: meta } = result as JsonObject & { content: { text: string }[]; _meta: JsonObject };
  return { text: content[0]?.text ?? '', data: meta[META.upstreamFailure], meta };
}

function thrown(method: string, error: Error): ProtocolError {
  try {
    answerFailure({ mount: 'gh', method, about: 'notes://1' }, error);
  } catch (reason) {
    if (reason instanceof ProtocolError) return reason;
    throw reason;
  }
  throw new Error('expected a ProtocolError');
}

test('a model reads the mount, the reason, whether the tool was carried out, and what to do', () => {
  const unknown = toolResult(failure({}));
  assert.is(
    unknown.text,
    'gh: the connection to the server ended before the response. It is not known whether "gh_create_issue" was carried out. Find that out before you call it again.',
  );
  assert.equal(unknown.data, { upstream: 'gh', reason: 'closed', carriedOut: 'unknown', retry: false });
  assert.is(
    toolResult(failure({ reason: 'unreachable', carriedOut: 'no' })).text,
    'gh: the server cannot be reached. "gh_create_issue" was not carried out. Try again later.',
  );
  assert.is(
    toolResult(failure({ reason: 'refused', carriedOut: 'no' })).text,
    'gh: the server cannot be started, or rejects the connection. "gh_create_issue" was not carried out. The operator of this gateway must act.',
  );
  assert.is(
    toolResult(failure({ reason: 'too long', carriedOut: 'yes' })).text,
    'gh: a message of this call is longer than this gateway accepts (the option is maxMessageBytes). "gh_create_issue" was carried out, but its result is lost. Ask for less.',
  );
});

test('Retry-After of an upstream reaches the model and the program', () => {
  const { text, data, meta } = toolResult(failure({ reason: 'overloaded', carriedOut: 'no', retryAfterMs: 4_200 }));
  assert.match(text, 'was not carried out. Try again in 5 s.');
  const expected = { upstream: 'gh', reason: 'overloaded', carriedOut: 'no', retry: true, retryAfterMs: 4_200 };
  assert.equal(data, expected);
  assert.equal(meta, { [META.upstreamFailure]: expected, [META.retryAfterMs]: 4_200 });
});

test('no address, command or output of an upstream reaches a client', () => {
  const reasons: readonly CallFailure['reason'][] = ['unreachable', 'refused', 'closed', 'timed out', 'malformed'];
  for (const reason of reasons)
    for (const carriedOut of ['no', 'yes', 'unknown'] as const) {
      const error = failure({ reason, carriedOut });
      assert.not.match(JSON.stringify(toolResult(error)), SECRET);
      const { message, data } = thrown('resources/read', error);
      assert.not.match(message + JSON.stringify(data), SECRET);
    }
});

test('a read that was not carried out fails with -31005, and one that may have been with -32603', () => {
  const no = thrown('resources/read', failure({ reason: 'unreachable', carriedOut: 'no' }));
  assert.is(no.code, ErrorCode.UpstreamUnavailable);
  assert.equal(no.data, { upstream: 'gh', reason: 'unreachable', carriedOut: 'no', retry: true });
  assert.is(thrown('prompts/get', failure({ reason: 'timed out' })).code, ErrorCode.InternalError);
});

test('an error response passes with its code, message and data, unless it describes the hop', () => {
  const own = thrown('tools/call', new ErrorResponse(SECRET, -32_050, 'no such branch', { branch: 'x' }));
  assert.equal([own.code, own.message, own.data], [-32_050, 'no such branch', { branch: 'x' }]);
  for (const code of [ErrorCode.HeaderMismatch, ErrorCode.MissingRequiredClientCapability, 0]) {
    const { text, data } = toolResult(new ErrorResponse(SECRET, code, 'not like this', undefined));
    assert.match(text, 'gh: the server rejected the call: not like this. ');
    const carriedOut = code === 0 ? 'unknown' : 'no';
    assert.equal(data, { upstream: 'gh', reason: 'error response', carriedOut, retry: false });
  }
});

test('an error of another kind is thrown as it is', () => {
  const error = new TypeError('a defect');
  assert.throws(
    () => answerFailure({ mount: 'gh', method: 'tools/call', about: undefined }, error),
    (reason: unknown) => reason === error,
  );
});

test('a modern client gets the demand of a capability that it has not declared', () => {
  const demand = new ErrorResponse('gh', ErrorCode.MissingRequiredClientCapability, 'needs sampling', {
    requiredCapabilities: { sampling: { tools: {} } },
  });
  const call = { mount: 'gh', method: 'tools/call', about: 'gh_ask' };
  const codeFor = (capabilities: JsonObject | undefined): unknown => {
    try {
      return answerFailure({ ...call, capabilities }, demand).isError;
    } catch (error) {
      return error instanceof ProtocolError && error.code;
    }
  };
  assert.is(codeFor({}), -32021);
  assert.is(codeFor({ sampling: {} }), -32021);
  assert.is(codeFor({ sampling: { tools: {} } }), true, 'the client has it: the gateway does not');
  assert.is(codeFor(undefined), true, 'earlier revisions have no such error');
});
