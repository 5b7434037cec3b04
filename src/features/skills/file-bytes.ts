/** The bytes of a skill's file: their digest, their type, and their form in a message, from which a client gets the same bytes. */
import { Buffer } from 'node:buffer';
import { webcrypto } from 'node:crypto';
import { extname } from 'node:path';
import { sha256 } from '../../core/kernel/sha256.ts';
import type { ResourceContents } from '../../core/protocol/types.ts';

/** Length in bytes from which a digest is computed by a thread of Node's pool, so that other clients are served meanwhile. */
const LARGE = 65_536;

/** @returns `sha256:` and 64 hexadecimal digits */
export async function digestOf(bytes: Uint8Array<ArrayBuffer>): Promise<string> {
  const digest =
    bytes.length < LARGE
      ? sha256(bytes, 'hex')
      : Buffer.from(await webcrypto.subtle.digest('SHA-256', bytes)).toString('hex');
  return `sha256:${digest}`;
}

const TYPES: Readonly<Record<string, string>> = {
  '.md': 'text/markdown',
  '.txt': 'text/plain',
  '.csv': 'text/csv',
  '.html': 'text/html',
  '.css': 'text/css',
  '.xml': 'application/xml',
  '.json': 'application/json',
  '.yaml': 'application/yaml',
  '.yml': 'application/yaml',
  '.toml': 'application/toml',
  '.js': 'text/javascript',
  '.mjs': 'text/javascript',
  '.py': 'text/x-python',
  '.sh': 'application/x-sh',
  '.mmd': 'text/vnd.mermaid',
  '.svg': 'image/svg+xml',
  '.png': 'image/png',
  '.jpg': 'image/jpeg',
  '.jpeg': 'image/jpeg',
  '.gif': 'image/gif',
  '.webp': 'image/webp',
  '.pdf': 'application/pdf',
  '.zip': 'application/zip',
};

/** The type of a file by its name; else by its bytes. */
export function mediaTypeOf(name: string, bytes: Uint8Array): string {
  return (
    TYPES[extname(name).toLowerCase()] ?? (textOf(bytes) === undefined ? 'application/octet-stream' : 'text/plain')
  );
}

/** Text if that loses no byte, else Base64. */
export function contentsOf(uri: string, mimeType: string, bytes: Buffer): ResourceContents {
  const text = textOf(bytes);
  return text === undefined ? { uri, mimeType, blob: bytes.toString('base64') } : { uri, mimeType, text };
}

/** @returns undefined for bytes that are not UTF-8, or contain a zero, which no text file does */
export function textOf(bytes: Uint8Array): string | undefined {
  if (bytes.includes(0)) return undefined;
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
