/** Checks the forms of a machine when it is defined: the call that first asks one could only fail. */
import type { AnyStateMachine } from 'xstate';
import { messageOf } from '../../core/protocol/json.ts';
import { compileForm } from '../asking/form.ts';
import { fixedForms } from './machine-references.ts';

/** Lists the forms that no client could show, each with its place and a correction. */
export function unaskableForms(machine: AnyStateMachine): readonly string[] {
  return fixedForms(machine).flatMap(({ schema, where }) => {
    try {
      compileForm(schema, where);
      return [];
    } catch (error) {
      return [messageOf(error)];
    }
  });
}
