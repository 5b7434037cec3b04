/** The page of an approval for the user of this machine: on a loopback port, at an address that only their client gets. */
import { authOf } from '../../core/messages/auth.ts';
import { LOCAL } from '../../core/protocol/principals.ts';
import type { StateKeys } from '../../core/store/state-keys.ts';
import type { PersonPage } from '../../core/transports/transport.ts';
import type { Approvals } from './approval-interface.ts';
import { ApprovalPages, noPage } from './approval-pages.ts';

/** A port that is open. */
interface OpenPort {
  readonly redirectUrl: string;
  close(): void;
}

const SCOPE = ['approval of the local user'];
/** The name says to logs and inspectors that its value is a secret. */
const TOKEN = 'approval_token';

export class LocalPages {
  readonly #pages: ApprovalPages;
  readonly #keys: StateKeys;
  #port: Promise<OpenPort> | undefined;

  constructor(approvals: Approvals, keys: StateKeys) {
    this.#pages = new ApprovalPages(approvals, keys, false);
    this.#keys = keys;
  }

  /** The address of a page. It is a secret: who has it decides. The model of the client never gets it. */
  async address(id: string): Promise<string> {
    this.#port ??= import('../../client/oauth/browser-sign-in.ts').then(({ loopbackRedirects }) =>
      loopbackRedirects((url, form) => this.#page(url, form)),
    );
    const url = new URL((await this.#port).redirectUrl);
    url.searchParams.set(TOKEN, this.#keys.ring.seal(id, SCOPE));
    return url.href;
  }

  close(): void {
    void this.#port?.then(
      (port) => port.close(),
      () => {},
    );
  }

  /** Other programs and pages can send requests to the port, and know no sealed id. */
  async #page(url: URL, form: string | undefined): Promise<PersonPage> {
    const opened = this.#keys.ring.open(url.searchParams.get(TOKEN) ?? '', SCOPE);
    if (!opened.ok || typeof opened.payload !== 'string') return noPage();
    const request = { rest: `/${encodeURIComponent(opened.payload)}`, query: '', person: authOf(LOCAL) };
    const page = await this.#pages.page({ ...request, form });
    // A redirect of the other pages leads to a path that is not here.
    return page.status === 303 ? this.#pages.page({ ...request, form: undefined }) : page;
  }
}
