/** The checks of the members of a machine's definition, except its name. */
import { describe, isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { problemOfScopes } from '../../core/protocol/scopes.ts';
import { type Checks, DESCRIBED, statechart } from '../../core/registry/definition-checks.ts';
import { isCallLimit, problemOfLimits } from '../guard/limits/call-limits.ts';
import { KEY_MEMBERS } from './key-options.ts';

const eventScopes: option.Check = (value) => {
  if (!isObject(value)) return `expected an object: the scopes of each event, got ${describe(value)}`;
  for (const [event, each] of Object.entries(value)) {
    const problem = problemOfScopes(each);
    if (problem !== undefined) return `${event}: ${problem}`;
  }
  return undefined;
};

const limits: option.Check = (value) => {
  if (!isObject(value)) return `expected an object such as { create: { perMinute: 10 } }, got ${describe(value)}`;
  for (const [name, own] of Object.entries(value)) {
    if (isCallLimit(name) && typeof own !== 'object')
      return `${name}: expected the limits of each tool of the machine, such as { create: { ${name}: … } }, got ${describe(own)}`;
    const problem = own === undefined ? undefined : problemOfLimits(own);
    if (problem !== undefined) return `${name}: ${problem}`;
  }
  return undefined;
};

export const MACHINE_MEMBERS: Checks = {
  ...DESCRIBED,
  emits: option.object,
  machine: statechart,
  events: option.expected('an object: the schema of each event that clients may send, or true', isObject),
  view: option.functional,
  schemas: (value) => {
    if (!isObject(value)) return `expected an object such as { view: z.object({ … }) }, got ${describe(value)}`;
    const other = Object.keys(value).find((member) => member !== 'view' && member !== 'output');
    return other === undefined ? undefined : `${other}: expected "view" or "output"`;
  },
  migrate: option.functional,
  version: option.filled,
  previous: option.object,
  app: option.expected('true, false or options', (value) => typeof value === 'boolean' || isObject(value)),
  ttlMs: option.lifetime,
  idleMs: option.lifetime,
  single: option.flag,
  skill: option.flag,
  annotations: option.object,
  eventScopes,
  schedules: option.expected('an object: the schedules of each instance, by their names', isObject),
  timeoutMs: option.duration,
  limits,
  ...KEY_MEMBERS,
};
