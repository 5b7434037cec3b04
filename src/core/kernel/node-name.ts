/** The name of this process in logs, audit records and the inspector: the host, which is the name of a pod, and the node of `troupe serve --nodes`. */
import { hostname } from 'node:os';
import { processWide } from './global-registry.ts';

const current = processWide('troupe.node.name', (): { name?: string } => ({}));

/** @returns the name of the host unless {@link nameNode} was called */
export function nodeName(): string {
  return current.name ?? hostname();
}

/** @returns undefined unless {@link nameNode} was called: the process is the only one that serves its program here */
export function nameOfNode(): string | undefined {
  return current.name;
}

/** Names this process, before it creates a server. */
export function nameNode(name: string): void {
  current.name = name;
}
