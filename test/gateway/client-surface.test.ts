/** The gateway uses the public API of the client (`troupe/client`), and the internals in this list. */
import { readdirSync, readFileSync } from 'node:fs';
import * as assert from 'uvu/assert';
import { suite } from '../harness/door.ts';

const test = suite('the client as the gateway uses it');

/** What `troupe/client` does not export: sign-ins of people, calls and events of other clients, and servers in the process. */
const INTERNALS = [
  'AskedRequest',
  'CallPosition',
  'ClientHost',
  'ConnectedClient',
  'FINAL_CODES',
  'KnownAuthorizationServer',
  'LoopbackRedirects',
  'NO_SIGN_IN',
  'RelayedRequest',
  'ResourceGrant',
  'ResumedCall',
  'ServerInMemory',
  'SignInOver',
  'UnansweredRequest',
  'checkTarget',
  'createdTask',
  'grantsOf',
  'isChannelTarget',
  'isPrompt',
  'isServerInMemory',
  'isTool',
  'loopbackRedirects',
  'oauthRows',
  'openClient',
  'readCompletion',
  'readEventType',
  'signInPage',
];

/** The names that a text imports or exports from files below a folder. */
function namesIn(text: string, folder: RegExp): string[] {
  return [...text.matchAll(/^(?:import|export) (?:type )?\{([^}]*)\} from '([^']*)';$/gm)].flatMap(
    ([, names = '', from = '']) =>
      folder.test(from) ? names.split(',').flatMap((name) => name.replace('type ', '').trim() || []) : [],
  );
}

test('the gateway imports no internals of the client but those of the list', () => {
  const root = new URL('../../src/', import.meta.url);
  const used = readdirSync(new URL('gateway/', root), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .flatMap((file) => namesIn(readFileSync(new URL(`gateway/${file}`, root), 'utf8'), /^[./]+client\//));
  const isPublic = new Set(namesIn(readFileSync(new URL('client/client.ts', root), 'utf8'), /^\.\//));
  assert.equal([...new Set(used)].filter((name) => !isPublic.has(name)).sort(), INTERNALS);
});
