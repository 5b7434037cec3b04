/** A person who signs in and consents: follows redirects, fills in forms, keeps cookies, by plain HTTP without a browser. */

/** Where clients receive the code. Nothing listens there: {@link Person.consent} stops at it. */
export const REDIRECT = 'http://127.0.0.1:7777/callback';

const MAX_PAGES = 20;

export class Person {
  /** The scopes that clients asked for, one text for each consent. */
  readonly asked: string[] = [];
  readonly #answers: Readonly<Record<string, string>>;
  readonly #cookies = new Map<string, string>();

  /** @param name the value of each field of a form that has none */
  constructor(name: string) {
    this.#answers = { login: name, password: 'any', person: name };
  }

  /**
   * Opens the page at which a client wants to be authorized.
   *
   * @param url the address that the client shows
   * @param back the address that the browser is sent to at the end
   * @returns that address, with the code
   */
  readonly consent = async (url: URL, back: string = REDIRECT): Promise<URL> => {
    this.asked.push(url.searchParams.get('scope') ?? '');
    let response = await this.#open(url);
    let at = url;
    for (let pages = 0; pages < MAX_PAGES; pages += 1) {
      const location = response.headers.get('location');
      if (location !== null) {
        at = new URL(location, at);
        if (at.href.startsWith(back)) return at;
        response = await this.#open(at);
        continue;
      }
      const page = await response.text();
      const action = /<form[^>]*action="([^"]+)"/.exec(page)?.[1];
      if (!response.ok || action === undefined) throw new Error(`${at.href}: expected a form, got ${page}`);
      at = new URL(action, at);
      response = await this.#open(at, this.#fields(page));
    }
    throw new Error(`${url.origin}: expected a redirect to ${back} within ${MAX_PAGES} pages`);
  };

  #fields(page: string): URLSearchParams {
    const fields = new URLSearchParams();
    for (const [tag] of page.matchAll(/<(?:input|button)\b[^>]*>/g)) {
      const name = / name="([^"]*)"/.exec(tag)?.[1];
      const value = / value="([^"]*)"/.exec(tag)?.[1];
      if (name === undefined) continue;
      const text = this.#answers[name] ?? (value ?? '').replace(/&#(\d+);/g, (_, code) => String.fromCharCode(code));
      fields.set(name, text);
    }
    return fields;
  }

  async #open(url: URL, form?: URLSearchParams): Promise<Response> {
    const response = await fetch(url, {
      redirect: 'manual',
      headers: { cookie: [...this.#cookies].map(([name, value]) => `${name}=${value}`).join('; ') },
      ...(form ? { method: 'POST', body: form } : {}),
    });
    for (const cookie of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
      if (value === '') this.#cookies.delete(name);
      else this.#cookies.set(name, value);
    }
    return response;
  }
}
