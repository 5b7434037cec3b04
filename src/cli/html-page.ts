/** Makes a page that is one file: its script and style are in it, and its policy allows these two by their hashes, and no request. */
import { sha256 } from '../core/kernel/sha256.ts';

interface PageParts {
  readonly title: string;
  readonly script: string;
  readonly style: string;
  /** Sources of images in the policy, such as `data:`. Undefined: no policy, because the server adds it. */
  readonly images: string | undefined;
  /** Lines for the head, without scripts and styles. */
  readonly head?: string;
  /** The markup of the body before the scripts. */
  readonly body: string;
  /** A data block, which the policy does not govern. */
  readonly data?: {
    readonly id: string;
    /** JSON with `\u003c` instead of `<`, or a placeholder for it. */
    readonly json: string;
  };
}

/** The page never makes markup of text: Trusted Types without a policy reject it (W3C Trusted Types, "require-trusted-types-for"). */
export function htmlPage({ title, images, head = '', body, data, ...parts }: PageParts): string {
  const script = parts.script.replaceAll('</script', '<\\/script').replaceAll('<!--', '<\\!--');
  const style = parts.style.replaceAll('</style', '<\\/style');
  const policy = [
    "default-src 'none'",
    `script-src '${hashOf(script)}'`,
    `style-src '${hashOf(style)}'`,
    `img-src ${images}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join('; ');
  const guarded = images === undefined ? '' : `<meta http-equiv="Content-Security-Policy" content="${policy}">\n`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
${guarded}<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
${head}<style>${style}</style>
</head>
<body>
${body}
${data ? `<script type="application/json" id="${data.id}">${data.json}</script>\n` : ''}<script type="module">${script}</script>
</body>
</html>
`;
}

function hashOf(text: string): string {
  return `sha256-${sha256(text, 'base64')}`;
}
