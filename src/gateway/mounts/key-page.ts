/** The page on which a person enters the key of an API, so that it passes neither their client nor a model. */
import { signInPage } from '../../client/oauth/browser-sign-in.ts';
import type { Clock } from '../../core/kernel/clock.ts';
import { isObject } from '../../core/protocol/json.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import type { Vault } from '../../core/store/vault.ts';
import { htmlText, plainPage, UNKNOWN_PERSON } from '../../core/transports/plain-page.ts';
import type { PersonPage } from '../../core/transports/transport.ts';
import { isHeaderValue } from '../../features/oauth/issuers/header-text.ts';

/** A key that a call needs. */
export interface NeededKey {
  readonly mount: string;
  /** The security scheme of the document. */
  readonly scheme: string;
  /** The address of the API, for the person. */
  readonly api: string;
  /** One key, or a name and a password. */
  readonly kind: 'key' | 'password';
}

interface KeyState extends NeededKey {
  readonly principal: string;
  /** Milliseconds since 1970. */
  readonly until: number;
}

interface KeyPagesOptions {
  readonly keys: StateKeys;
  readonly clock: Clock;
  readonly vault: Vault;
  /** Wakes the calls that wait for a key of a person. */
  stored(needed: NeededKey, principal: string): void;
}

/** The parameter of the address. */
const PARAMETER = 'key';
const SCOPE = ['key page'];
const FORM_SCOPE = 'key form';
const MAX_KEY_LENGTH = 8_192;
const OVER = 'This page belongs to no call that waits here, or its time has passed. Repeat the call.';

/** The purpose of a key in the vault. */
export function purposeOf({ mount, scheme, api }: NeededKey): string {
  // An API at another address never gets the key of this one.
  return ['api key', mount, scheme, api].map(encodeURIComponent).join(' ');
}

export class KeyPages {
  readonly #options: KeyPagesOptions;

  constructor(options: KeyPagesOptions) {
    this.#options = options;
  }

  /**
   * The address of the page for one person.
   *
   * @param base the address to which browsers of this person come
   * @param until milliseconds since 1970
   */
  address(base: string, needed: NeededKey, principal: string, until: number): URL {
    const url = new URL(base);
    const state: KeyState = { ...needed, principal, until };
    url.searchParams.set(PARAMETER, this.#options.keys.ring.seal({ ...state }, SCOPE));
    return url;
  }

  /**
   * Shows the form, or stores the key of one that was sent.
   *
   * @param person the principal of the person; undefined if the transport does not know it
   * @param form the body of a POST
   * @returns undefined for the address of another page
   */
  async page(url: URL, person: string | undefined, form: string | undefined): Promise<PersonPage | undefined> {
    const sealed = url.searchParams.get(PARAMETER);
    if (sealed === null) return undefined;
    const { keys, clock } = this.#options;
    const opened = keys.ring.open(sealed, SCOPE);
    const state = opened.ok ? opened.payload : undefined;
    if (!isKeyState(state) || state.until <= clock.date()) return signInPage(400, OVER);
    if (person === undefined) return signInPage(401, UNKNOWN_PERSON);
    if (person !== state.principal)
      return signInPage(
        403,
        'Another person is asked for this key. Nothing was stored. If somebody sent you the link to this page, do not use it.',
      );
    // The form of another page has no such mark, even if that page knows the address.
    const bound = [FORM_SCOPE, sealed, person];
    if (form === undefined) return formPage(200, state, keys.ring.seal(true, bound));
    const fields = new URLSearchParams(form);
    const mark = fields.get('mark') ?? '';
    if (!keys.ring.open(mark, bound).ok) return signInPage(403, OVER);
    const secret = secretIn(fields, state.kind);
    if (secret === undefined)
      return formPage(
        400,
        state,
        mark,
        `Nothing was stored: a key has 1 to ${MAX_KEY_LENGTH} characters, and none that a header cannot carry.`,
      );
    await this.#options.vault.set(person, purposeOf(state), secret);
    this.#options.stored(state, person);
    return signInPage(200, 'Stored. The call continues. You can close this page.');
  }
}

function secretIn(fields: URLSearchParams, kind: NeededKey['kind']): string | undefined {
  const [name, password] = [fields.get('name')?.trim() ?? '', fields.get('secret') ?? ''];
  if (kind === 'password') {
    // RFC 7617 section 2: a colon ends the name.
    const fits = name !== '' && !name.includes(':') && name.length + password.length <= MAX_KEY_LENGTH;
    return fits ? `${name}:${password}` : undefined;
  }
  const key = password.trim();
  return key !== '' && key.length <= MAX_KEY_LENGTH && isHeaderValue(key) ? key : undefined;
}

function formPage(status: number, { mount, scheme, api, kind }: KeyState, mark: string, problem = ''): PersonPage {
  const input = (name: string, label: string, type: string): string =>
    `<p><label>${label}<br><input name="${name}" type="${type}" autocomplete="off" spellcheck="false" required></label></p>`;
  const text =
    `<h1>Credentials for ${htmlText(mount)}</h1>` +
    `<p>A call of the API at <b>${htmlText(api)}</b> needs ${kind === 'key' ? 'your key' : 'your name and password'} (${htmlText(scheme)}). ` +
    'This server seals what you enter here, stores it for you, and sends it to that address only. No model and no client sees it.</p>' +
    (problem === '' ? '' : `<p role="alert">${htmlText(problem)}</p>`) +
    `<form method="post"><input type="hidden" name="mark" value="${htmlText(mark)}">` +
    (kind === 'password' ? input('name', 'Name', 'text') : '') +
    input('secret', kind === 'key' ? 'Key' : 'Password', 'password') +
    '<p><button>Store</button></p></form>';
  return plainPage(status, `Credentials for ${mount}`, text);
}

function isKeyState(value: unknown): value is KeyState {
  return (
    isObject(value) &&
    typeof value.until === 'number' &&
    (value.kind === 'key' || value.kind === 'password') &&
    [value.mount, value.scheme, value.api, value.principal].every((each) => typeof each === 'string')
  );
}
