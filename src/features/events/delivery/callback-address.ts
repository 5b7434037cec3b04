/** The addresses of callbacks: which URLs a client may name, and which IP addresses a connection to them may have. */
import { BlockList, isIP } from 'node:net';

/** The origins that the program allows besides public https addresses, such as `http://127.0.0.1:8080`. */
export type AllowedOrigins = ReadonlySet<string>;

/** Longest URL of a callback, in characters. */
const MAX_LENGTH = 2_048;

/** IPv4 addresses that are not globally reachable (IANA IPv4 Special-Purpose Address Registry), and multicast. */
const SPECIAL_IPV4 = [
  ['0.0.0.0', 8],
  ['10.0.0.0', 8],
  ['100.64.0.0', 10],
  ['127.0.0.0', 8],
  ['169.254.0.0', 16],
  ['172.16.0.0', 12],
  ['192.0.0.0', 24],
  ['192.0.2.0', 24],
  ['192.31.196.0', 24],
  ['192.52.193.0', 24],
  ['192.88.99.0', 24],
  ['192.168.0.0', 16],
  ['192.175.48.0', 24],
  ['198.18.0.0', 15],
  ['198.51.100.0', 24],
  ['203.0.113.0', 24],
  ['224.0.0.0', 4],
  ['240.0.0.0', 4],
] as const;

/** The parts of 2000::/3, the only range of global unicast addresses, that are for documentation, tunnels and other special uses. */
const SPECIAL_IPV6 = [
  ['2001::', 23],
  ['2001:db8::', 32],
  ['2002::', 16],
  ['2620:4f:8000::', 48],
  ['3fff::', 20],
] as const;

const SPECIAL = new BlockList();
for (const [network, prefix] of SPECIAL_IPV4) SPECIAL.addSubnet(network, prefix, 'ipv4');
for (const [network, prefix] of SPECIAL_IPV6) SPECIAL.addSubnet(network, prefix, 'ipv6');
const GLOBAL_IPV6 = new BlockList();
GLOBAL_IPV6.addSubnet('2000::', 3, 'ipv6');

/** True for an IP address that the whole internet can reach. Addresses of IPv4 in a form of IPv6 are none. */
export function isGlobalAddress(address: string): boolean {
  switch (isIP(address)) {
    case 4:
      return !SPECIAL.check(address, 'ipv4');
    case 6:
      return GLOBAL_IPV6.check(address, 'ipv6') && !SPECIAL.check(address, 'ipv6');
    default:
      return false;
  }
}

/** A URL that may be a callback; or what is expected instead, without its text. */
export type ReadCallback = { readonly url: URL } | { readonly expected: string };

/**
 * Reads the URL of a callback.
 *
 * @returns `expected` for a URL that no client may name: malformed, longer than 2,048 characters, with credentials or a fragment, or
 *   not https, unless its origin is allowed
 */
export function readCallback(text: string, allowed: AllowedOrigins): ReadCallback {
  if (text.length > MAX_LENGTH) return { expected: `a URL of at most ${MAX_LENGTH} characters` };
  if (!URL.canParse(text)) return { expected: 'an https URL' };
  const url = new URL(text);
  const isAllowed = allowed.has(url.origin) && (url.protocol === 'https:' || url.protocol === 'http:');
  if (url.protocol !== 'https:' && !isAllowed) return { expected: 'an https URL' };
  if (url.username !== '' || url.password !== '') return { expected: 'a URL without credentials' };
  if (url.hash !== '' || text.includes('#')) return { expected: 'a URL without a fragment' };
  return { url };
}

/** The host of a URL as a resolver takes it: an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
  return hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
}
