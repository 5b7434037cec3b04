/** Helpers of the schema tests: what a check reports, as text, and what a registration refuses. */
import * as assert from 'uvu/assert';
import { compileInput, compileOutput } from '../../../src/core/schema/compile-schema.ts';
import { explain } from '../../../src/core/schema/problems.ts';
import type { CompiledSchema } from '../../../src/core/schema/schema.ts';
import { SchemaError } from '../../../src/core/schema/schema-error.ts';

type Source = Parameters<typeof compileOutput>[0];

/** Compiles an input that a test wrote as plain JSON, JSON.parse made, or a library built. */
export function input(source: unknown): CompiledSchema {
  return compileInput(source as Source, 'tool "t": input');
}

export function output(source: unknown): CompiledSchema {
  return compileOutput(source as Source, 'tool "t": output');
}

/** The lines of the report, without its heading; none where the value fits. */
export async function report(compiled: CompiledSchema, value: unknown): Promise<string[]> {
  const checked = await compiled.check(value);
  return checked.ok ? [] : explain(checked.problems, 'arguments').split('\n').slice(1);
}

/** Asserts that a registration is refused, by a SchemaError that tells of each text. */
export function refused(source: unknown, ...texts: readonly string[]): void {
  refusedBy(() => input(source), ...texts);
}

export function refusedBy(register: () => unknown, ...texts: readonly string[]): void {
  try {
    register();
  } catch (error) {
    assert.instance(error, SchemaError);
    const message = error instanceof Error ? error.message : '';
    assert.match(message, /^tool "t": (in|out)put: /);
    for (const text of texts) assert.ok(message.includes(text), `"${message}" does not tell of "${text}"`);
    return;
  }
  assert.unreachable('the schema was registered');
}

/** An object with one property of this schema. */
export function having(property: unknown, more: Record<string, unknown> = {}): Record<string, unknown> {
  return { type: 'object', properties: { a: property }, ...more };
}
