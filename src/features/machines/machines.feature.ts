/** Machines: statecharts of the program, as tools and behind handles that outlive their clients. */
import type { Context } from '../../core/execution/context.ts';
import { Lazy } from '../../core/kernel/lazy.ts';
import { isObject } from '../../core/protocol/json.ts';
import * as option from '../../core/protocol/option-rows.ts';
import { ANONYMOUS } from '../../core/protocol/principals.ts';
import type { AnyTool } from '../../core/registry/define.ts';
import { DefinitionError } from '../../core/registry/definition-checks.ts';
import { warnOfUntestedXState } from '../../core/registry/xstate-copy.ts';
import type { Feature } from '../../core/server/feature.ts';
import { launcher } from '../../core/server/launcher.ts';
import { apps } from '../apps/apps.feature.ts';
import { ANSWER_DEFINITION } from '../asking/model-fallback.ts';
import { cluster } from '../cluster/cluster.feature.ts';
import { events } from '../events/events.feature.ts';
import { audit } from '../guard/audit/audit.feature.ts';
import { skills } from '../skills/skills.feature.ts';
import { workers } from '../workers/workers.feature.ts';
import { endlessCycle } from './cycles.ts';
import { unaskableForms } from './form-checks.ts';
import { chartUri, handleUri } from './handle-record.ts';
import { Handles } from './handles.ts';
import { missingImplementations } from './machine-references.ts';
import { machineRegistration } from './machine-registration.ts';
import { topicMail } from './messages/topic-mail.ts';
import { PROGRAM_CALLER, programEvent } from './program-events.ts';
import type { MachinesService } from './registered-machines.ts';
import { statechartRunner } from './statechart-call.ts';
import { answerInView } from './tools/answer-in-view.ts';
import type { CompiledTool } from './tools/handle-tools.ts';

export const machines: Feature<MachinesService> = {
  name: 'machines',
  options: {
    machines: option.expected(
      'a list of machines of defineMachine(…)',
      (value) => Array.isArray(value) && value.every(isObject),
    ),
  },
  open(core) {
    const { options, system, store, limits, quotas, changes, elements } = core;
    const handles = new Lazy(() => {
      const created = new Handles({
        ...{ system, store, limits, quotas, errors: options.errors },
        previous: () => launcher()?.previous?.(),
        audit: core.service(audit)?.mailbox,
        calls: core.service(cluster).calls,
      });
      created.target(
        'topic',
        topicMail(() => core.service(events).topics),
      );
      core.bus.on('principal.forgotten', (forgotten) => created.forget(forgotten));
      created.onChange(({ machine, handle, key, principal }) => {
        // A handle without an owner is visible to anyone who knows its id, so its changes are broadcast. Those of a shared
        // instance say only that it has changed: its readers have roles.
        const owner = principal === ANONYMOUS || created.isShared(machine) ? {} : { owner: principal };
        const own = key === undefined ? handle : encodeURIComponent(key);
        for (const uri of [handleUri(machine, own), chartUri(machine, own)])
          changes.send({ type: 'resource updated', uri, ...owner });
      });
      return created;
    });
    // A store of the program may have handles of another process.
    const stored = options.store && handles.value;
    core.service(workers).releases(() => handles.created);
    system.metrics.gauge('troupe.handles', '{handle}', 'Handles that have not expired.', () => quotas.handles.all);
    elements.machineHandler = (name, machine) =>
      statechartRunner({ ...system, limits, durable: store.durable })(name, machine);
    elements.checksTool.push((definition) => {
      if (definition.machine === undefined) return;
      warnOfUntestedXState(system.log);
      checkSettles(definition);
    });
    let answers = false;
    // A registration of its own: this tool is not the program's, whose tools may be copied to another server.
    const offerAnswers = (): void => {
      if (answers) return;
      answers = true;
      const handler = (args: never, ctx: Context) => answerInView(args, ctx, handles.value, core.service(apps).keys);
      const forViews = { description: ANSWER_IN_VIEW, visibleTo: ['app'] } as const;
      elements.tools().register({ ...ANSWER_DEFINITION, ...(options.askThroughModel ? {} : forViews), handler });
    };
    if (options.askThroughModel) offerAnswers();
    // Registrations of their own, too: another server receives the machine and generates its own tools.
    const registration = new Lazy(
      (): MachinesService => ({
        ...machineRegistration({
          views: { server: options.name, clock: system.clock, keys: core.service(apps).keys },
          handles: handles.value,
          skills: core.service(skills),
          tools: elements.compiledTools<CompiledTool>(),
          resources: elements.resources(({ listed }) => {
            if (listed === 'views') offerAnswers();
          }),
        }),
        sendTo: (...sent) => handles.value.sendTo(...sent),
        again: (letter) => handles.value.again(letter),
        send: (machine, key, event, options) =>
          handles.value.sendTo(machine, key, programEvent(event), PROGRAM_CALLER, options),
      }),
    );
    return {
      get service() {
        return registration.value;
      },
      ...(stored && { restore: () => stored.restore(), holds: stored }),
      facts: () => handles.created?.facts() ?? {},
      stop: () => handles.created?.stop(),
    };
  },
};

/** The description of the answer tool for views alone. */
const ANSWER_IN_VIEW =
  'For the views of this server: answers the questions of an instance. The id is the uri of the instance. Only the user answers.';

/**
 * @throws {DefinitionError} if a machine loops without end as soon as it starts, which no timer could interrupt
 *   or names an implementation that it does not have, or asks a form that no client can show
 */
function checkSettles({ name, machine }: AnyTool): void {
  // If it is not a machine, the check of the definition rejects it by name.
  if (typeof machine?.transition !== 'function') return;
  const missing = [...missingImplementations(machine), ...unaskableForms(machine)];
  if (missing.length > 0) throw new DefinitionError(`tool "${name}": machine: ${missing.join('\n- ')}`);
  const cycle = endlessCycle(machine);
  if (!cycle) return;
  throw new DefinitionError(
    `tool "${name}": machine: the eventless transitions of ${cycle.join(', ')} form an endless loop: add a guard to one of them`,
  );
}
