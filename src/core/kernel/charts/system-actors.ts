/** The actors of an XState system: recognizes an actor, and finds it by its path below the root. */
import type { AnyActorRef, AnyEventObject } from 'xstate';
import { isObject } from '../../protocol/json.ts';
import { parentOf } from '../xstate-internals.ts';

export function isActor(value: unknown): value is AnyActorRef {
  return isObject(value) && 'sessionId' in value && 'system' in value && typeof value.send === 'function';
}

/** The ids on the path from the root to an actor, without the root's own. */
export function actorPath(actor: AnyActorRef): string {
  const ids: string[] = [];
  for (let at = actor, above = parentOf(at); above; at = above, above = parentOf(at)) ids.unshift(at.id);
  return ids.join('/');
}

/** The actor at a path below this one, if it exists. */
export function actorAt(root: AnyActorRef, path: string): AnyActorRef | undefined {
  let at: AnyActorRef = root;
  for (const id of path === '' ? [] : path.split('/')) {
    const snapshot: unknown = at.getSnapshot();
    const child: unknown = isObject(snapshot) && isObject(snapshot.children) ? snapshot.children[id] : undefined;
    if (!isActor(child)) return undefined;
    at = child;
  }
  return at;
}

/** The current invoked and spawned children of an actor. */
export function childrenOf(actor: AnyActorRef): readonly AnyActorRef[] {
  const snapshot: unknown = actor.getSnapshot();
  if (!isObject(snapshot) || !isObject(snapshot.children)) return [];
  return Object.values(snapshot.children).filter(isActor);
}

/** XState's events for the start and stop of an actor, which are not part of its history. */
export function isLifecycle({ type }: AnyEventObject): boolean {
  return type === 'xstate.init' || type === 'xstate.stop';
}
