/** The default theme of VitePress with a few rules of our own. */
import DefaultTheme from 'vitepress/theme-without-fonts';
import './troupe.css';

export default DefaultTheme;
