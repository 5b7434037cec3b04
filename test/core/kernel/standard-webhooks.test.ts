/** Signatures of Standard Webhooks: which secrets and deliveries are genuine. */
import * as assert from 'uvu/assert';
import {
  isWebhookId,
  readWebhookSecret,
  signWebhook,
  verifyWebhook,
} from '../../../src/core/kernel/standard-webhooks.ts';
import { suite } from '../../harness/door.ts';

const test = suite('standard webhooks');

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const key = readWebhookSecret(SECRET) ?? Buffer.alloc(0);
const other = Buffer.alloc(32, 1);
const NOW = 1_614_265_330_000;

test('the signature is that of the reference implementation', () => {
  assert.is(
    signWebhook([key], 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1_614_265_330, '{"test": 2432232314}'),
    'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  );
});

test('a secret is whsec_ and 24 to 64 bytes in base64', () => {
  const accepted = [24, 32, 64].map((bytes) => `whsec_${Buffer.alloc(bytes, 3).toString('base64')}`);
  for (const secret of [SECRET, ...accepted]) assert.ok(readWebhookSecret(secret), secret);
  const rejected = [
    ...['', 'whsec_', 'whsec_short', SECRET.slice(6), `${SECRET} `, `WHSEC_${SECRET.slice(6)}`],
    ...[`whsec_${Buffer.alloc(23).toString('base64')}`, `whsec_${Buffer.alloc(65).toString('base64')}`],
    ...[`whsec_${'-_'.repeat(20)}`, `whsec_${'A'.repeat(10_000)}`, 'whsec_===='],
  ];
  assert.equal(
    rejected.filter((secret) => readWebhookSecret(secret)),
    [],
  );
});

test('a delivery is genuine under any of its secrets and signatures, for five minutes', () => {
  const body = Buffer.from('{"a":1}');
  const sign = (secrets: readonly Buffer[], seconds = NOW / 1_000): string => signWebhook(secrets, 'e1', seconds, body);
  const verify = (given: object, secrets = [key]): string => {
    const headers = { id: 'e1', timestamp: String(NOW / 1_000), signature: sign([key]), ...given };
    const verified = verifyWebhook(secrets, headers, body, NOW);
    return verified.ok ? verified.id : verified.why;
  };
  assert.is(verify({}), 'e1');
  assert.is(verify({ signature: sign([other, key]) }), 'e1');
  assert.is(verify({}, [other, key]), 'e1');
  assert.is(verify({ signature: `v1a,AAAA v2,x ${sign([key])}` }), 'e1');
  const late = NOW / 1_000 - 301;
  const table: readonly (readonly [object, string])[] = [
    [{ signature: sign([other]) }, 'signature'],
    [{ signature: sign([key]).replace('v1,', 'v2,') }, 'signature'],
    [{ signature: 'v1,' }, 'signature'],
    [{ signature: `${'v1,AAAA '.repeat(8)}${sign([key])}` }, 'signature'],
    [{ signature: '' }, 'headers'],
    [{ signature: undefined }, 'headers'],
    [{ id: null }, 'headers'],
    [{ id: 'e 1' }, 'headers'],
    [{ id: 'x' }, 'signature'],
    [{ timestamp: '1e9' }, 'headers'],
    [{ timestamp: '-5' }, 'headers'],
    [{ timestamp: String(late), signature: sign([key], late) }, 'time'],
    [{ timestamp: String(late + 602), signature: sign([key], late + 602) }, 'time'],
  ];
  for (const [given, why] of table) assert.is(verify(given), why, JSON.stringify(given));
});

test('an id is visible ASCII of at most 256 characters', () => {
  for (const id of ['e1', 'msg_gap_x', '!~', 'a'.repeat(256)]) assert.ok(isWebhookId(id));
  for (const id of ['', 'a b', 'a\r\nx: y', 'é', 'a'.repeat(257), '\u0000']) assert.not(isWebhookId(id), id);
});
