/** Reads the security schemes of a document. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import type { DocumentParts } from './document-parts.ts';
import type { OAuthFlow, OAuthFlowName, SecurityRequirement, SecurityScheme } from './operation.ts';

const FLOWS: readonly OAuthFlowName[] = [
  'authorizationCode',
  'clientCredentials',
  'implicit',
  'password',
  'deviceAuthorization',
];

/** The schemes by their names. One of an unknown form is of the type `other`. */
export function securitySchemesIn(
  value: JsonValue | undefined,
  parts: DocumentParts,
): Readonly<Record<string, SecurityScheme>> {
  if (!isJsonObject(value)) return {};
  return Object.fromEntries(
    Object.entries(value).map(([name, given]) => {
      const place = { file: '', key: '', shown: `securitySchemes.${name}` };
      const scheme = schemeOf(parts.object(given, place)?.value ?? {});
      const what = unsupportedKind(scheme);
      if (what !== undefined)
        parts.warn(
          `securitySchemes.${name}: ${what} is not supported, and operations that need it are not called. ${BY_PROXY}`,
        );
      return [name, scheme];
    }),
  );
}

/** The way out for credentials that only other software makes. */
export const BY_PROXY = 'If a proxy in front of the API adds them, set baseUrl to its address, and auth to false';

/** Schemes of HTTP that answer a challenge or sign the request, so that no stored credential is enough. */
const NEGOTIATED: ReadonlySet<string> = new Set([
  ...['digest', 'hoba', 'mutual', 'negotiate', 'ntlm', 'scram-sha-1', 'scram-sha-256', 'hmac', 'signature', 'vapid'],
]);

/** Names what a scheme wants that no request of this package has; undefined for one that is supported. */
export function unsupportedKind(scheme: SecurityScheme | undefined): string | undefined {
  if (scheme?.type === 'mutualTLS') return 'mutual TLS (a certificate of the client)';
  if (scheme?.type === 'other') return scheme.what ?? 'a scheme of an unknown kind';
  if (scheme?.type === 'http' && NEGOTIATED.has(scheme.scheme)) return `HTTP ${scheme.scheme} authentication`;
  return undefined;
}

/** Documents write the signatures of AWS as a key in the header `Authorization`, which it is not. */
function isAwsSignature({ 'x-amazon-apigateway-authtype': kind, name, description }: JsonObject): boolean {
  if (typeof kind === 'string') return /sigv4/i.test(kind);
  return (
    typeof name === 'string' &&
    /^authorization$/i.test(name) &&
    typeof description === 'string' &&
    /sigv4|amazon signature|aws signature/i.test(description)
  );
}

function schemeOf(given: JsonObject): SecurityScheme {
  const { type, in: where, name, scheme, flows, openIdConnectUrl } = given;
  switch (type) {
    case 'apiKey':
      if (isAwsSignature(given)) return { type: 'other', what: 'AWS Signature Version 4' };
      if ((where === 'header' || where === 'query' || where === 'cookie') && typeof name === 'string')
        return { type, in: where, name };
      return { type: 'other' };
    case 'http':
      return typeof scheme === 'string' ? { type, scheme: scheme.toLowerCase() } : { type: 'other' };
    case 'oauth2': {
      const found = FLOWS.flatMap((flow) => {
        const one = isJsonObject(flows) ? flows[flow] : undefined;
        return isJsonObject(one) ? [[flow, flowOf(one)] as const] : [];
      });
      return { type, flows: Object.fromEntries(found) };
    }
    case 'openIdConnect':
      return typeof openIdConnectUrl === 'string' ? { type, url: openIdConnectUrl } : { type: 'other' };
    case 'mutualTLS':
      return { type };
    default:
      return { type: 'other' };
  }
}

function flowOf({ authorizationUrl, tokenUrl, refreshUrl, scopes }: JsonObject): OAuthFlow {
  return {
    ...(typeof authorizationUrl === 'string' && { authorizationUrl }),
    ...(typeof tokenUrl === 'string' && { tokenUrl }),
    ...(typeof refreshUrl === 'string' && { refreshUrl }),
    scopes: isJsonObject(scopes) ? Object.keys(scopes) : [],
  };
}

/** The alternatives of an operation. Requirements that name no scheme of the document cannot be met, and are left out. */
export function requirementsOf(
  value: JsonValue | undefined,
  schemes: Readonly<Record<string, SecurityScheme>>,
): readonly (readonly SecurityRequirement[])[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isJsonObject).flatMap((combination: JsonObject) => {
    const all = Object.entries(combination).map(([scheme, scopes]) => ({
      scheme,
      scopes: Array.isArray(scopes) ? scopes.filter((scope) => typeof scope === 'string') : [],
    }));
    return all.every(({ scheme }) => Object.hasOwn(schemes, scheme)) ? [all] : [];
  });
}
