/** Enables Node's compile cache (22.8 and later): modules loaded from then on are compiled once and not at each start. */
import module from 'node:module';

export function enableCompileCache(): void {
  if ('enableCompileCache' in module && typeof module.enableCompileCache === 'function') module.enableCompileCache();
}
