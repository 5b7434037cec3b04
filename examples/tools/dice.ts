/** The second form: a class that names itself, describes itself, checks its arguments and runs. */
import { randomInt } from 'node:crypto';
import type { Context, JsonObject } from 'troupe';

interface Throw {
  readonly sides: number;
  readonly count: number;
}

export default class Dice {
  getName(): string {
    return 'roll_dice';
  }

  getDefinition() {
    return {
      description: 'Rolls dice',
      inputSchema: {
        type: 'object',
        properties: {
          sides: { type: 'integer', minimum: 2, maximum: 1_000 },
          count: { type: 'integer', minimum: 1, maximum: 100 },
        },
        required: ['sides'],
      },
    };
  }

  /** A check beyond the schema. It runs after the schema. */
  validateArguments({ sides, count = 1 }: JsonObject): Throw {
    if (typeof sides !== 'number' || typeof count !== 'number') throw new TypeError('sides and count are numbers');
    if (sides * count > 10_000)
      throw new RangeError(`${count} dice of ${sides} sides are too many: sides * count is at most 10000`);
    return { sides, count };
  }

  execute({ sides, count }: Throw, ctx: Context): { rolled: number[] } {
    ctx.log.debug({ sides, count });
    return { rolled: Array.from({ length: count }, () => randomInt(1, sides + 1)) };
  }
}
