/** Imports that the page's bundler supports and TypeScript does not. */
declare module '*.css';
