/** A server with a feature of its own: a budget of calls, with a limit, a gate, a method, a metric and a line in the inspector. */
import { createServer, defineMethod, type Feature, ProtocolError, stdio } from 'troupe';

declare module 'troupe' {
  interface Limits {
    /** Number of calls that may spend. */
    readonly maxSpent: number;
  }
}

interface Budget {
  readonly left: number;
}

const budget: Feature<Budget> = {
  name: 'budget',
  limits: { maxSpent: { default: 100, unit: 'calls', max: 1_000 } },
  open({ capabilities, limits, stages, system }) {
    const { maxSpent } = limits;
    let left = maxSpent;
    let rejected = 0;
    // A gate around each call of a tool: docs/features.md lists the stages.
    stages.fill('limit', ({ call }, next) => {
      if (call.tool.annotations?.readOnlyHint) return next();
      if (left === 0) {
        rejected += 1;
        throw new ProtocolError(-31001, `the budget of ${maxSpent} calls is used up: ask the operator for more`);
      }
      left -= 1;
      return next();
    });
    system.metrics.gauge('budget.rejected', '{call}', 'Calls beyond the budget.', () => rejected);
    capabilities.extend('com.example/budget');
    return {
      service: {
        get left() {
          return left;
        },
      },
      // A method of the protocol. Its clients know it by the extension that the server announces.
      methods: {
        'com.example.budget/left': defineMethod({
          extension: 'com.example/budget',
          read: () => ({}),
          answer: () => ({ left }),
        }),
      },
      // A line of the server's actor in the inspector.
      facts: () => ({ 'calls left': left }),
      stop: () => system.log('info', `${left} of ${maxSpent} calls are left`, { event: 'program' }),
    };
  },
};

const server = createServer({ name: 'budgeted', version: '1.0.0', features: [budget], limits: { maxSpent: 2 } });
server.tool('spend', () => 'spent');
server.tool('look', { annotations: { readOnlyHint: true } }, () => 'nothing is spent');

await server.listen(stdio());
