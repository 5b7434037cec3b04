/** The resource server of OAuth 2.1 (`troupe/oauth`): authenticates HTTP requests by access tokens. Needs the package `jose`. */

export type { Authentication, AuthenticationRequest, HttpAuthenticator } from '../../core/http/http-authenticator.ts';
export { oauth } from './resource-server.ts';
export type {
  IntrospectionOptions,
  IssuerOptions,
  ResourceServerOptions,
  TokenAlgorithm,
} from './resource-server-options.ts';
