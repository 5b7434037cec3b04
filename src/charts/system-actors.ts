/** The actors of an XState system: what is one, and where it stands below its root. */
import type { AnyActorRef, AnyEventObject } from 'xstate';
import { isObject } from '../protocol/json.ts';

export function isActor(value: unknown): value is AnyActorRef {
  return isObject(value) && 'sessionId' in value && 'system' in value && typeof value.send === 'function';
}

/** The ids that lead to an actor from its root, the root's own left out. */
export function actorPath(actor: AnyActorRef): string {
  const ids: string[] = [];
  for (let at: AnyActorRef | undefined = actor; at?._parent; at = at._parent) ids.unshift(at.id);
  return ids.join('/');
}

/** The actor at a path below this one, if it is there. */
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

/** The actors that an actor has invoked or spawned, and that it has not forgotten. */
export function childrenOf(actor: AnyActorRef): readonly AnyActorRef[] {
  const snapshot: unknown = actor.getSnapshot();
  if (!isObject(snapshot) || !isObject(snapshot.children)) return [];
  return Object.values(snapshot.children).filter(isActor);
}

/** An event that XState sends an actor when it begins or is stopped: no part of its history. */
export function isLifecycle({ type }: AnyEventObject): boolean {
  return type === 'xstate.init' || type === 'xstate.stop';
}
