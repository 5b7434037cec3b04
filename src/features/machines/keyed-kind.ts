/** Reads the options of a machine whose instances have keys, and rejects those that do not fit together. */
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import type { AnyMachine } from './define-machine.ts';
import type { KeyedKind } from './machine-definition.ts';
import type { Role, Roles } from './role-types.ts';

/**
 * Reads the options of keys of a definition, whose members are checked.
 *
 * @throws {DefinitionError} for options that do not fit together
 */
export function keyedOf(definition: AnyMachine, label: string): KeyedKind | undefined {
  const { create = 'event', keep = false, input, ttlMs } = definition;
  const refuse = (why: string): never => {
    throw new DefinitionError(`${label}: ${why}`);
  };
  if (definition.key === undefined) {
    const alone = ['create', 'roles', 'tenant', 'keep'].find((name) => Object.hasOwn(definition, name));
    if (alone !== undefined) refuse(`${alone}: expected the option key, too, such as key: 'principal'`);
    return undefined;
  }
  const kind = typeof definition.key === 'string' ? definition.key : 'argument';
  const argument = typeof definition.key === 'string' ? undefined : definition.key.argument;
  const { tenant } = definition;
  if (kind === 'tenant' && !tenant)
    refuse('key: "tenant" needs the option tenant, such as tenant: (auth) => auth.claims.org');
  if (kind === 'argument' && !definition.roles)
    refuse(
      "roles: expected them, because a name is not a permission: whoever knows a key could use its instance. For everybody: roles: { of: () => 'anyone', anyone: { events: '*' } }",
    );
  if (input !== undefined && create !== 'create')
    refuse(
      "input: an event creates an instance, with the input { key, principal }. Remove it, or set create: 'create'",
    );
  if (keep && ttlMs !== undefined) refuse('ttlMs: an instance with keep: true does not expire. Remove one of them');
  return {
    kind,
    argument,
    ...(tenant ? { tenantOf: (auth) => tenant.call(definition, auth) } : {}),
    create,
    roles: rolesOf(definition, refuse),
    keep,
  };
}

function rolesOf({ roles: given, events }: AnyMachine, refuse: (why: string) => never): Roles | undefined {
  if (!given) return undefined;
  const { of, ...named } = given;
  const byName = new Map<string, Role>();
  for (const [name, each] of Object.entries(named)) {
    if (typeof each === 'function') return refuse(`roles: ${name}: expected { events }, got a function`);
    const { events: allowed, view, answers } = each;
    const unknown =
      allowed === '*' ? undefined : allowed.find((type) => type !== 'end' && !Object.hasOwn(events, type));
    if (unknown !== undefined)
      refuse(`roles: ${name}: events: expected "end" or one of ${Object.keys(events).join(', ')}, got "${unknown}"`);
    // The types of the definition guarantee that a view accepts a snapshot of this machine.
    const own = view && { view: (snapshot: unknown): unknown => Reflect.apply(view, each, [snapshot]) };
    byName.set(name, { events: allowed, answers, ...own });
  }
  return { of: (query) => Reflect.apply(of, given, [query]), byName };
}
