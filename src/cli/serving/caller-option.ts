/** `--principal NAME` and `--scopes LIST`: who the client on stdio or on a socket is, to try the rules of a server. */
import { messageOf } from '../../core/protocol/json.ts';
import { checkCaller } from '../../core/transports/check-caller.ts';
import type { StdioOptions } from '../../core/transports/stdio.ts';
import { UsageError } from '../usage.ts';

/** The options of run and dev, and of call with a FILE. */
export const CALLER_OPTIONS = { principal: 'NAME', scopes: 'LIST' } as const;

/** Their part of the help of these commands. */
export const CALLER_HELP = `  --principal NAME       who the client on stdio or on a socket is, to try the
                         rules of the server ("local user")
  --scopes LIST          the scopes of that client, separated by commas. Without
                         the option, "local user" has every scope, and another
                         NAME none`;

/** The caller that the options name. */
export type LocalCaller = Pick<StdioOptions, 'principal' | 'scopes'>;

/**
 * Reads the options.
 *
 * @param hasHttp the command opens a port, whose clients anybody on this machine, or beyond it, may be
 * @returns undefined without both
 * @throws {UsageError} for a name that owns nothing, for scopes that are none, and together with a port
 */
export function readCaller(
  command: string,
  { principal, scopes: list }: Readonly<Record<string, string | undefined>>,
  hasHttp = false,
): LocalCaller | undefined {
  if (principal === undefined && list === undefined) return undefined;
  if (hasHttp)
    throw new UsageError(
      `troupe ${command}: expected --principal and --scopes, or --http, got both: a client over HTTP is whom http.authenticate of the server names`,
    );
  const scopes = list?.split(',').flatMap((scope) => scope.trim() || []);
  try {
    checkCaller(`troupe ${command}`, principal, scopes);
  } catch (error) {
    throw new UsageError(messageOf(error).replace(/^(troupe \S+: )(principal|scopes): /, '$1--$2: '));
  }
  return { ...(principal === undefined ? {} : { principal }), ...(scopes ? { scopes } : {}) };
}
