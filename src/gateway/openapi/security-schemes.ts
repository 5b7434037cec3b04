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
      if (scheme.type === 'other')
        parts.warn(`securitySchemes.${name}: a scheme of an unknown kind. No credential fits it`);
      return [name, scheme];
    }),
  );
}

function schemeOf(given: JsonObject): SecurityScheme {
  const { type, in: where, name, scheme, flows, openIdConnectUrl } = given;
  switch (type) {
    case 'apiKey':
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
