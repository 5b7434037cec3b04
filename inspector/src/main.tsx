/** Entry point of the inspector's page: applies the theme, renders the page, and opens the stream. */
import { effect } from '@preact/signals';
import { render } from 'preact';
import './theme.css';
import './page.css';
import './parts/parts.css';
import './shell/header.css';
import './shell/middle.css';
import './shell/help.css';
import { App } from './shell/App.tsx';
import { layOutAhead } from './shell/ahead.ts';
import { begin } from './store/source.ts';
import { version } from './store/state.ts';
import { beginTheme } from './store/theme.ts';

beginTheme();
begin();
const page = document.getElementById('page');
if (page) {
  // The placeholder that was shown before the script ran.
  page.replaceChildren();
  render(<App />, page);
}
effect(() => {
  if (version.value > 0) layOutAhead();
});
