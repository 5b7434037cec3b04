/** The view of the chosen tab. */
import { Overview } from '../overview/Overview.tsx';
import { Guarded } from '../parts/Guarded.tsx';
import { later } from '../parts/Later.tsx';
import { tab } from '../store/state.ts';
import { ChartView, MessagesView, TimelineView } from './views.tsx';

const Wire = later('This view', async () => (await import('../wire/Wire.tsx')).Wire);
const Server = later('This view', async () => (await import('../server/ServerView.tsx')).ServerView);
const Traffic = later('This view', async () => (await import('../traffic/Traffic.tsx')).Traffic);
const Script = later('This view', async () => (await import('../script/Script.tsx')).Script);
const Coverage = later('This view', async () => (await import('../coverage/Coverage.tsx')).Coverage);

export function Middle() {
  return (
    <div class={`view view-${tab.value}`} id="view" role="tabpanel" aria-labelledby={`tab-${tab.value}`}>
      <Guarded what="This view" key={tab.value}>
        <View />
      </Guarded>
    </div>
  );
}

function View() {
  switch (tab.value) {
    case 'overview':
      return <Overview />;
    case 'chart':
      return <ChartView />;
    case 'messages':
      return <MessagesView />;
    case 'wire':
      return <Wire />;
    case 'timeline':
      return <TimelineView />;
    case 'coverage':
      return <Coverage />;
    case 'server':
      return <Server />;
    case 'events':
      return <Traffic />;
    case 'script':
      return <Script />;
  }
}
