/** `troupe call`, `inspect` and `types` of an OpenAPI document: a file, an address, and what cannot be read. */
import * as assert from 'uvu/assert';
import { Tree } from '../features/discovery/tree.ts';
import { apiServer, petsDocument } from '../gateway/openapi/api-server.ts';
import { suite } from '../harness/door.ts';
import { troupe } from './in-process.ts';

const test = suite('commands of an OpenAPI document');

const api = await apiServer();
const tree = new Tree({
  'pets.json': JSON.stringify(petsDocument({ servers: [{ url: api.url }] })),
  'relative.yaml': JSON.stringify(petsDocument()),
  'plain.json': '{ "name": "package" }',
});
test.after(() => api.close());

const run = (...args: readonly string[]) => troupe(args, { cwd: tree.path });

test('call lists the operations of a file, and calls them', async () => {
  const { code, out } = await run('call', 'pets.json');
  assert.is(code, 0);
  assert.match(out, 'listPets(limit?: number)');
  assert.match(out, 'createPet(body: { name: string })');
  const called = await run('call', 'pets.json', 'listPets', 'limit=5', '--header', 'X-Tenant: acme');
  assert.equal(JSON.parse(called.out), { did: 'GET /pets?limit=5' });
  assert.is(api.headers['x-tenant'], 'acme');
});

test('call takes an address, and the address of the API for a document that names none', async () => {
  const fetched = await run('call', `${api.url}/openapi.json`, 'deletePet', 'petId=a/b');
  assert.equal(JSON.parse(fetched.out), { did: 'DELETE /pets/a%2Fb' });
  const based = await run('call', 'relative.yaml', 'listPets', '--base-url', `${api.url}/v1`);
  assert.equal(JSON.parse(based.out), { did: 'GET /v1/pets' });
});

test('inspect --json and types describe the operations', async () => {
  const { out } = await run('inspect', 'pets.json', '--json');
  assert.equal(
    JSON.parse(out).tools.map(({ name }: { readonly name: string }) => name),
    ['createPet', 'deletePet', 'listPets'],
  );
  const types = await run('types', 'pets.json');
  assert.match(types.out, 'export interface Pets');
  assert.match(types.out, 'readonly limit?: number');
});

test('wrong arguments are explained, and reach no server', async () => {
  const before = api.requests.length;
  const { code, err } = await run('call', 'pets.json', 'listPets', 'limit=500');
  assert.is(code, 1);
  assert.match(err, 'limit');
  assert.is(api.requests.length, before);
});

for (const [args, code, expected] of [
  [['lost.json'], 2, 'expected an OpenAPI document, got lost.json: no such file'],
  [['plain.json'], 3, 'expected an OpenAPI document with the member openapi or swagger'],
  [['relative.yaml'], 3, 'Set baseUrl'],
  [['pets.json', '--base-url', 'api'], 2, '--base-url: expected a URL, got api'],
  [['pets.json', '--principal', 'ann'], 2, '--principal and --scopes need FILE or DIR'],
  [['server.ts', '--base-url', 'https://a.example'], 2, 'need an OpenAPI document as TARGET'],
] as const)
  test(`troupe call ${args.join(' ')} ends with code ${code}`, async () => {
    const ran = await run('call', ...args);
    assert.is(ran.code, code);
    assert.match(ran.err, expected);
  });
