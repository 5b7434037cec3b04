/** The resource server of OAuth 2.1 (`troupe/oauth`): authenticates HTTP requests by access tokens. Needs the package `jose`. */

export { oauth } from './oauth/resource-server.ts';
export type {
  IntrospectionOptions,
  IssuerOptions,
  ResourceServerOptions,
  TokenAlgorithm,
} from './oauth/resource-server-options.ts';
export type { Authentication, AuthenticationRequest, HttpAuthenticator } from './transports/http/http-authenticator.ts';
