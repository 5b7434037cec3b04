/** Lets Node keep what it compiles, where it can (22.8 and later): what is loaded from then on is compiled once, and not at each start. */
import module from 'node:module';

export function keepCompiled(): void {
  if ('enableCompileCache' in module && typeof module.enableCompileCache === 'function') module.enableCompileCache();
}
