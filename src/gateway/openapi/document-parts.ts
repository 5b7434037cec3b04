/** Finds the parts of an OpenAPI document that references name, and gathers warnings about it. */
import { isJsonObject, type JsonObject, type JsonValue } from '../../core/protocol/json.ts';
import { fileOfReference, pathOfReference, type SourceDocument } from './document-source.ts';

/** A place in the document or one of its files. */
export interface DocumentPlace {
  /** The absolute path of a file; empty for the document itself. */
  readonly file: string;
  /** Identifies the target of a reference, such as `#/components/schemas/Pet`. */
  readonly key: string;
  /** The place in the words of a warning, such as `GET /pets`. */
  readonly shown: string;
}

/** A part of the document, at its place. */
export interface Part {
  readonly value: JsonValue | undefined;
  readonly place: DocumentPlace;
}

/** Longest chain of references that lead to references. */
const MAX_STEPS = 32;
/** Maximum number of warnings of one document. */
const MAX_WARNINGS = 200;

export class DocumentParts {
  readonly root: JsonObject;
  /** The major and minor number, such as `3.1`. */
  readonly version: string;
  readonly #source: SourceDocument;
  readonly #warnings = new Set<string>();

  constructor(source: SourceDocument, version: string) {
    this.root = source.root;
    this.version = version;
    this.#source = source;
  }

  /** True from OpenAPI 3.1 on: schemas are JSON Schema, where a reference may have siblings. */
  get isJsonSchema(): boolean {
    return this.version !== '2.0' && this.version !== '3.0';
  }

  get warnings(): readonly string[] {
    const all = [...this.#warnings];
    const more = all.length - MAX_WARNINGS;
    return more > 0 ? [...all.slice(0, MAX_WARNINGS), `${more} more warnings`] : all;
  }

  warn(warning: string): void {
    this.#warnings.add(warning);
  }

  /** The target of a reference. A reference that leads nowhere is a warning. */
  resolve(reference: string, { file, shown }: DocumentPlace): Part | undefined {
    const named = fileOfReference(reference);
    const at = named === undefined ? file : pathOfReference(file || (this.#source.path ?? ''), named);
    const isRoot = at === '' || at === this.#source.path;
    const pointer = reference.includes('#') ? reference.slice(reference.indexOf('#') + 1) : '';
    const document = isRoot ? this.root : this.#source.files.get(at);
    const value = document === undefined ? undefined : pointed(document, pointer);
    if (value === undefined) {
      this.warn(`${shown}: ${reference.slice(0, 120)} leads nowhere. It is left out`);
      return undefined;
    }
    return { value, place: { file: isRoot ? '' : at, key: `${isRoot ? '' : at}#${pointer}`, shown } };
  }

  /** A part, or what the references in its place lead to at last. */
  followed(value: JsonValue | undefined, place: DocumentPlace): Part | undefined {
    let part: Part | undefined = { value, place };
    for (let step = 0; part && isJsonObject(part.value) && typeof part.value.$ref === 'string'; step += 1) {
      if (step >= MAX_STEPS) {
        this.warn(`${place.shown}: ${part.value.$ref.slice(0, 120)} leads to itself. It is left out`);
        return undefined;
      }
      part = this.resolve(part.value.$ref, part.place);
    }
    return part;
  }

  /** The same for an object. */
  object(
    value: JsonValue | undefined,
    place: DocumentPlace,
  ): { readonly value: JsonObject; readonly place: DocumentPlace } | undefined {
    const part = this.followed(value, place);
    return part && isJsonObject(part.value) ? { value: part.value, place: part.place } : undefined;
  }
}

/** The value at a JSON Pointer (RFC 6901), which may be percent-encoded. */
function pointed(document: JsonValue, pointer: string): JsonValue | undefined {
  if (pointer === '' || pointer === '/') return document;
  if (!pointer.startsWith('/')) return undefined;
  let at: JsonValue | undefined = document;
  for (const token of pointer.slice(1).split('/')) {
    const name = decoded(token).replaceAll('~1', '/').replaceAll('~0', '~');
    if (Array.isArray(at)) at = at[Number(name)];
    else if (isJsonObject(at) && Object.hasOwn(at, name)) at = at[name];
    else return undefined;
  }
  return at;
}

function decoded(text: string): string {
  if (!text.includes('%')) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
