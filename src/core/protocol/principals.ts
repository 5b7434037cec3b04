/** The principals that no authenticator may name. */

/** The principal of unauthenticated clients. They share it, so it has no limit per principal. */
export const ANONYMOUS = 'anonymous';

/**
 * The default principal of a client over stdio or a socket: the user of this process, whom the operating system has
 * authenticated. No limit per principal applies, because all clients on the machine are this user. The name does not
 * contain the user id, so that data stays reachable on another machine; `http.authenticate` may not return it.
 */
export const LOCAL = 'local user';

/** The program itself, as the sender of events to instances of machines. No client can be it. */
export const PROGRAM = 'program';
