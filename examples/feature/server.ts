/** A server with a feature of its own: a budget of calls, which rejects calls beyond it, counts them, and shows itself to the inspector. */
import { createServer, type Feature, ProtocolError, stdio } from 'troupe';

interface Budget {
  readonly left: number;
}

/** @param calls from 1 to 1,000 */
function budget({ calls }: { readonly calls: number }): Feature<Budget> {
  if (!Number.isInteger(calls) || calls < 1 || calls > 1_000)
    throw new RangeError(`budget: calls: expected a whole number from 1 to 1000, got ${calls}`);
  return {
    name: 'budget',
    open({ stages, system }) {
      let left = calls;
      let rejected = 0;
      // A gate around each call of a tool: docs/features.md lists the stages.
      stages.fill('limit', ({ call }, next) => {
        if (call.tool.annotations?.readOnlyHint) return next();
        if (left === 0) {
          rejected += 1;
          throw new ProtocolError(-31001, `the budget of ${calls} calls is used up: ask the operator for more`);
        }
        left -= 1;
        return next();
      });
      system.metrics.gauge('budget.rejected', '{call}', 'Calls beyond the budget.', () => rejected);
      return {
        service: {
          get left() {
            return left;
          },
        },
        // A line of the server's actor in the inspector.
        facts: () => ({ 'calls left': left }),
        stop: () => system.log('info', `${left} of ${calls} calls are left`, { event: 'program' }),
      };
    },
  };
}

const server = createServer({ name: 'budgeted', version: '1.0.0', features: [budget({ calls: 2 })] });
server.tool('spend', () => 'spent');
server.tool('look', { annotations: { readOnlyHint: true } }, () => 'nothing is spent');

await server.listen(stdio());
