/** The inspector's page: begins with its look, shows itself, and then listens. */
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
  // What stood there before any script ran.
  page.replaceChildren();
  render(<App />, page);
}
effect(() => {
  if (version.value > 0) layOutAhead();
});
