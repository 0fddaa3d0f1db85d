// The conformance suite of MCP imports a function of `fs` that Node.js 20 does not have, and does not call it for
// clients. With `node --import` of this file it starts on Node.js 20 too.

import { register } from 'node:module';

const fs = `export * from 'node:fs'; import * as fs from 'node:fs'; export const globSync = fs['globSync'];`;
const hooks = `
const shim = 'data:text/javascript,' + encodeURIComponent(${JSON.stringify(fs)});
export async function resolve(specifier, context, next) {
  const isOfSuite = context.parentURL?.includes('/@modelcontextprotocol/conformance/');
  return specifier === 'fs' && isOfSuite ? { url: shim, shortCircuit: true } : next(specifier, context);
}`;
register('data:text/javascript,' + encodeURIComponent(hooks));
