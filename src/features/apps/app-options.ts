/** The options of an app, and their checks: a host opens what an app declares, so that each origin is checked once. */
import { describe, isObject, type JsonObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import type { Icon } from '../../core/protocol/types.ts';
import { DefinitionError, icons } from '../../core/registry/definition-checks.ts';

/** The origins that a page may use besides its own text. Without them, the page makes no request. */
export interface AppOrigins {
  /** For `fetch`, `EventSource` and `WebSocket`. */
  readonly connectDomains?: readonly string[] | undefined;
  /** For scripts, styles, images, fonts and media. */
  readonly resourceDomains?: readonly string[] | undefined;
  /** For frames. Few hosts permit any. */
  readonly frameDomains?: readonly string[] | undefined;
  /** For `<base>`. */
  readonly baseUriDomains?: readonly string[] | undefined;
}

/** A permission that the host asks the user's browser for. */
export type AppPermission = 'camera' | 'microphone' | 'geolocation' | 'clipboardWrite';

/** An app: a page that hosts show beside the results of tools. See docs/apps.md. */
export type AppOptions = AppLooks & (WrittenPage | BundledPage);

interface WrittenPage {
  /**
   * The page: its text, the URL of its file, or a function that returns its text. It is read once, at the registration: a
   * page is the same for every user. Data reaches it by the results of tools.
   */
  readonly html: string | URL | (() => string);
  readonly entry?: undefined;
}

interface BundledPage {
  /**
   * The script of the page: a URL, or a path relative to the working directory. `troupe build` bundles it and all that it
   * imports into one file beside it, and `troupe dev` bundles it again when it changes. Both need the package vite.
   */
  readonly entry: string | URL;
  readonly html?: undefined;
}

interface AppLooks {
  /** The names of tools whose results open the page, besides those with `app: 'name'`. */
  readonly tools?: readonly string[] | undefined;
  /** Origins such as `https://api.example.com`. Neither paths nor `*` are allowed. */
  readonly csp?: AppOrigins | undefined;
  readonly permissions?: readonly AppPermission[] | undefined;
  /** True (default) if the host draws a border around the page. */
  readonly prefersBorder?: boolean | undefined;
  readonly title?: string | undefined;
  readonly description?: string | undefined;
  readonly icons?: readonly Icon[] | undefined;
}

export type AppDefinition = AppOptions & { readonly name: string };

const ORIGINS = ['connectDomains', 'resourceDomains', 'frameDomains', 'baseUriDomains'] as const;
const PERMISSIONS: readonly string[] = ['camera', 'microphone', 'geolocation', 'clipboardWrite'];

/** `*.` may stand for the first labels of a host. Nothing that ends a directive of a policy can match. */
const ORIGIN = /^(https|wss|http|ws):\/\/((?:\*\.)?[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|\[::1\])(?::\d{1,5})?$/i;
const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/i;

const ROWS: option.Rows<AppLooks & { name: unknown; html: unknown; entry: unknown }> = {
  name: option.anything,
  html: option.expected(
    'the text of a page, the URL of its file, or a function',
    (html) => typeof html === 'string' || typeof html === 'function' || isFileUrl(html),
  ),
  entry: option.expected(
    'the path or the file: URL of a script',
    (entry) => typeof entry === 'string' || isFileUrl(entry),
  ),
  tools: option.expected('a list of the names of tools', option.areStrings),
  csp: problemOfOrigins,
  permissions(given) {
    if (!Array.isArray(given)) return `expected a list of ${PERMISSIONS.join(', ')}, got ${describe(given)}`;
    const wrong = given.findIndex((permission) => !PERMISSIONS.includes(permission));
    return wrong === -1 ? undefined : `expected ${PERMISSIONS.join(', ')}, got ${describe(given[wrong])}`;
  },
  prefersBorder: option.flag,
  title: option.anyText,
  description: option.anyText,
  icons,
};

/** @throws {DefinitionError} if an option is invalid, with its fix */
export function checkApp(definition: AppDefinition): void {
  const { name, html, entry } = definition;
  if (typeof name !== 'string' || !/^[A-Za-z0-9_-]{1,64}$/.test(name))
    throw new DefinitionError(
      `app ${typeof name === 'string' ? `"${name}"` : describe(name)}: expected a name of 1 to 64 letters, digits, "_" or "-"; use "title" for a display name`,
    );
  if (html !== undefined && entry !== undefined)
    throw new DefinitionError(`app "${name}": expected "html" or "entry", got both`);
  const rows = entry === undefined ? { ...ROWS, html: option.needed(ROWS.html) } : ROWS;
  option.check(`app "${name}": `, definition, rows, DefinitionError);
}

function isFileUrl(value: unknown): boolean {
  return value instanceof URL && value.protocol === 'file:';
}

/** Finds what is wrong with the origins of a page. */
function problemOfOrigins(csp: unknown): string | undefined {
  if (!isObject(csp)) return `expected an object such as { connectDomains: [] }, got ${describe(csp)}`;
  for (const [member, origins] of Object.entries(csp)) {
    if (!ORIGINS.some((known) => known === member))
      return `.${member}: no such option; there are ${ORIGINS.join(', ')}`;
    if (origins === undefined) continue;
    if (!Array.isArray(origins)) return `.${member}: expected a list of origins, got ${describe(origins)}`;
    for (const origin of origins) {
      const problem = problemOfOrigin(origin);
      if (problem !== undefined) return `.${member}: ${describe(origin)}: ${problem}`;
    }
  }
  return undefined;
}

/** The reason for which a page may not use an origin; undefined if it may. */
function problemOfOrigin(origin: unknown): string | undefined {
  const [, scheme = '', host = ''] = (typeof origin === 'string' && ORIGIN.exec(origin)) || [];
  if (scheme === '')
    return 'expected an origin such as "https://api.example.com" or "https://*.example.com", without a path; "*" would permit every server';
  if (/^(http|ws)$/i.test(scheme) && !LOOPBACK.test(host))
    return 'expected https or wss: anyone between the user and that server could change what the page receives';
  // `*.com` would permit every server of a registry.
  if (host.startsWith('*.') && !host.slice(2).includes('.'))
    return 'expected a host below the wildcard, such as *.example.com';
  return undefined;
}

/** The `_meta.ui` of an app's page. Hosts read it in lists and in the page itself, so that both have the same. */
export function uiOfPage({ csp, permissions = [], prefersBorder = true }: AppLooks): JsonObject {
  const origins = ORIGINS.flatMap((member) => {
    const given = csp?.[member];
    return given && given.length > 0 ? [[member, [...given]] as const] : [];
  });
  return {
    // An empty one says that the page loads nothing from elsewhere.
    ...(csp === undefined ? {} : { csp: Object.fromEntries(origins) }),
    ...(permissions.length > 0 ? { permissions: Object.fromEntries(permissions.map((name) => [name, {}])) } : {}),
    prefersBorder,
  };
}
