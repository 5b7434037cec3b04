/** The timeline strip at the bottom of the page. */
import { TimelineView } from './views.tsx';

export function Strip() {
  return <TimelineView form="strip" />;
}
