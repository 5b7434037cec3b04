/** A bare node:http server that rejects each request with the answer that Troupe has for a bad token. */
import { createServer } from 'node:http';
import { served } from './telling.mjs';

const body =
  '{"jsonrpc":"2.0","error":{"code":-32600,"message":"authentication failed: the signature of the token is not valid"}}';
const metadata = 'https://mcp.example.com/.well-known/oauth-protected-resource/mcp';
const headers = [
  ...['content-type', 'application/json', 'content-length', String(body.length)],
  ...['www-authenticate', `Bearer error="invalid_token", resource_metadata="${metadata}"`],
  ...['www-authenticate', 'DPoP algs="ES256 EdDSA PS256 RS256"'],
];
const server = createServer((_request, response) => response.writeHead(401, headers).end(body));
server.listen(0, '127.0.0.1', () => served(`http://127.0.0.1:${server.address().port}/mcp`, () => process.exit()));
