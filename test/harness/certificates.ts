/** Certificates of tests: an authority that issues them for any name and any time (X.509 v3, ECDSA with P-256), made in memory. */
import { generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';

/** A certificate and its key, in PEM. */
export interface Certificate {
  readonly cert: string;
  readonly key: string;
}

export interface CertificateOptions {
  /** The DNS name that it is for. */
  readonly name: string;
  /** Default: an hour ago, and in an hour. */
  readonly from?: Date;
  readonly to?: Date;
}

const HOUR_MS = 3_600_000;
/** Object identifiers, encoded. */
const ECDSA_WITH_SHA256 = '2a8648ce3d040302';
const COMMON_NAME = '550403';
const BASIC_CONSTRAINTS = '551d13';
const SUBJECT_ALT_NAME = '551d11';

/** An authority with a key of its own, which nothing trusts until its certificate is given. */
export class CertificateAuthority {
  readonly #name: string;
  readonly #key: KeyObject;
  /** Its certificate in PEM, as `NODE_EXTRA_CA_CERTS` takes it. */
  readonly cert: string;

  constructor(name: string) {
    this.#name = name;
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#key = privateKey;
    const isAuthority = extension(BASIC_CONSTRAINTS, der(0x30, der(0x01, Buffer.from([0xff]))));
    this.cert = this.#certify(name, publicKey, isAuthority, {});
  }

  /** Issues a certificate for a server. */
  issue({ name, ...validity }: CertificateOptions): Certificate {
    const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const names = extension(SUBJECT_ALT_NAME, der(0x30, der(0x82, Buffer.from(name))));
    const cert = this.#certify(name, publicKey, names, validity);
    return { cert, key: privateKey.export({ type: 'pkcs8', format: 'pem' }).toString() };
  }

  #certify(
    name: string,
    key: KeyObject,
    more: Buffer,
    { from = new Date(Date.now() - HOUR_MS), to = new Date(Date.now() + HOUR_MS) }: Omit<CertificateOptions, 'name'>,
  ): string {
    const algorithm = der(0x30, oid(ECDSA_WITH_SHA256));
    const version = der(0xa0, der(0x02, Buffer.from([2])));
    const serial = der(0x02, Buffer.concat([Buffer.from([1]), randomBytes(8)]));
    const validity = der(0x30, time(from), time(to));
    const spki = key.export({ type: 'spki', format: 'der' });
    const extensions = der(0xa3, der(0x30, more));
    const body = der(
      0x30,
      ...[version, serial, algorithm, nameOf(this.#name), validity, nameOf(name), spki, extensions],
    );
    const signature = der(0x03, Buffer.concat([Buffer.from([0]), sign('sha256', body, this.#key)]));
    const text = der(0x30, body, algorithm, signature).toString('base64');
    return `-----BEGIN CERTIFICATE-----\n${text.replace(/.{64}/g, '$&\n')}\n-----END CERTIFICATE-----\n`;
  }
}

/** A value of ASN.1 in DER. */
function der(tag: number, ...parts: readonly Buffer[]): Buffer {
  const content = Buffer.concat(parts);
  const { length } = content;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), content]);
}

function oid(hex: string): Buffer {
  return der(0x06, Buffer.from(hex, 'hex'));
}

function nameOf(name: string): Buffer {
  return der(0x30, der(0x31, der(0x30, oid(COMMON_NAME), der(0x0c, Buffer.from(name)))));
}

function time(date: Date): Buffer {
  return der(0x18, Buffer.from(`${date.toISOString().replace(/[-:T]|\.\d+/g, '')}`));
}

function extension(id: string, value: Buffer): Buffer {
  return der(0x30, oid(id), der(0x01, Buffer.from([0xff])), der(0x04, value));
}
