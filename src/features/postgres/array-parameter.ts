/** Texts and numbers as an array in PostgreSQL's binary format: neither side escapes or parses them. */
import { toColumnText } from './column-text.ts';

/** Type of a column, as PostgreSQL names it. */
export type ColumnType = 'text' | 'smallint' | 'int' | 'bigint' | 'float8';

/** The ids of the types, which no version of PostgreSQL changes. */
const IDS: Readonly<Record<ColumnType, number>> = { text: 25, smallint: 21, int: 23, bigint: 20, float8: 701 };

/** Number of dimensions, whether there are NULLs, type, length, and the index of the first element: 4 bytes each. */
const HEAD = 20;
/** The length of an element; that of NULL is -1. */
const LENGTH = 4;
/** The longest number. */
const NUMBER = 8;
/** Maximum number of bytes of a UTF-16 unit in UTF-8. */
const UTF8 = 3;
const SMALLEST = 256;

/** A growing array of one dimension, which `unnest` turns into rows. */
export class ArrayParameter {
  readonly #type: ColumnType;
  #bytes = Buffer.allocUnsafe(SMALLEST);
  #end = HEAD;
  #size = 0;
  #hasNull = false;

  constructor(type: ColumnType) {
    this.#type = type;
  }

  /** Adds a text to an array of texts, a number to one of numbers, or NULL. */
  add(value: string | number | undefined): void {
    this.#size += 1;
    if (value === undefined) this.#addNull();
    else if (typeof value === 'string') this.#addText(toColumnText(value));
    else this.#addNumber(value);
  }

  /** The bytes of the parameter; nothing is added afterwards. */
  toBuffer(): Buffer {
    const bytes = this.#bytes;
    bytes.writeInt32BE(this.#size === 0 ? 0 : 1, 0);
    bytes.writeInt32BE(this.#hasNull ? 1 : 0, 4);
    bytes.writeInt32BE(IDS[this.#type], 8);
    bytes.writeInt32BE(this.#size, 12);
    bytes.writeInt32BE(1, 16);
    // An empty array has no dimension.
    return bytes.subarray(0, this.#size === 0 ? 12 : this.#end);
  }

  #addNull(): void {
    this.#hasNull = true;
    this.#reserve(LENGTH);
    this.#end = this.#bytes.writeInt32BE(-1, this.#end);
  }

  #addText(text: string): void {
    this.#reserve(LENGTH + text.length * UTF8);
    const start = this.#end + LENGTH;
    const length = this.#bytes.write(text, start);
    this.#bytes.writeInt32BE(length, this.#end);
    this.#end = start + length;
  }

  /** @throws {RangeError} for a number that the type does not have */
  #addNumber(value: number): void {
    this.#reserve(LENGTH + NUMBER);
    const start = this.#end + LENGTH;
    const end = this.#writeNumber(value, start);
    this.#bytes.writeInt32BE(end - start, this.#end);
    this.#end = end;
  }

  /** @returns the offset behind the number */
  #writeNumber(value: number, at: number): number {
    switch (this.#type) {
      case 'smallint':
        return this.#bytes.writeInt16BE(value, at);
      case 'int':
        return this.#bytes.writeInt32BE(value, at);
      case 'bigint':
        return this.#bytes.writeBigInt64BE(BigInt(value), at);
      case 'float8':
        return this.#bytes.writeDoubleBE(value, at);
      case 'text':
        return this.#bytes.write(String(value), at);
    }
  }

  #reserve(length: number): void {
    if (this.#end + length <= this.#bytes.length) return;
    const bytes = Buffer.allocUnsafe(Math.max(2 * this.#bytes.length, this.#end + length));
    this.#bytes.copy(bytes, 0, 0, this.#end);
    this.#bytes = bytes;
  }
}
