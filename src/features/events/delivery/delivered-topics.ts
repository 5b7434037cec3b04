/** The parts of topics that delivery to callbacks uses. Types only. */
import type { JsonObject } from '../../../core/protocol/json.ts';
import type { EventSubscriber } from '../event-definition.ts';
import type { EventMatcher } from '../event-topics.ts';
import type { TopicPage } from '../topic.ts';

export type { TopicPage } from '../topic.ts';
export type { TopicEvent } from '../topic-document.ts';

export interface DeliveredTopics {
  read(name: string, by: string, after: number, limit: number): Promise<TopicPage>;
  onNews(name: string, by: string, listener: () => void): () => void;
  matcher(name: string, args: JsonObject, who: EventSubscriber): EventMatcher;
}
