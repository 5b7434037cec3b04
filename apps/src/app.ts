/** The library of a page that runs in a host: `troupe/app`. */
import { connect } from './view/connection.ts';
import { ViewError } from './view/host-link.ts';
import { parentWindow } from './view/parent-window.ts';
import { browserWindow } from './view/surroundings.ts';
import { type ToolTypes, View, type ViewOptions } from './view/view.ts';

export type { ViewEvents } from './view/connection.ts';
export type { DisplayMode, Host, HostCapabilities, HostContext } from './view/host-context.ts';
export type { CallOptions, ContentBlock, ResourceContents, ToolResult } from './view/server-proxy.ts';
export type { ToolTypes, ViewOptions } from './view/view.ts';
export type { WatchOptions } from './view/watch.ts';
export { type View, ViewError };

/**
 * Connects a page to the host whose frame shows it. Afterwards the document has the theme, the language and the style variables of
 * the host, and the host knows the size of the document.
 *
 * @param Tools the arguments and results of the tools that the page calls, by their names
 * @throws {ViewError} if the page is not in a frame, or the host does not answer within 30 seconds
 * @example
 * const view = await connectView();
 * view.on('result', ({ structuredContent }) => draw(structuredContent));
 * await view.call('board_move', { card: 7, to: 'done' });
 */
export async function connectView<Tools extends ToolTypes = ToolTypes>({
  name = 'view',
  version = '1',
  displayModes = ['inline', 'fullscreen'],
}: ViewOptions = {}): Promise<View<Tools>> {
  return new View<Tools>(await connect(parentWindow(), browserWindow(), { name, version, displayModes }));
}
