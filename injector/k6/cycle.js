// SPDX-License-Identifier: Apache-2.0
// Runs a benchmark's script again and again. The injector writes this file and the script into one folder and passes
// the load in the variable OPTIONS. k6's output `cycles` counts the cycles.
import { Counter } from 'k6/metrics';
import * as script from './script.js';

const ALLOWED = [
  'batch',
  'batchPerHost',
  'discardResponseBodies',
  'insecureSkipTLSVerify',
  'maxRedirects',
  'noConnectionReuse',
  'noCookiesReset',
  'noVUConnectionReuse',
  'setupTimeout',
  'throw',
  'userAgent',
];

if (typeof script.default !== 'function') {
  throw new Error('the script has no cycle: write export default function () { … }');
}
for (const name of ['teardown', 'handleSummary']) {
  if (script[name] !== undefined) {
    throw new Error(`the script exports ${name}, which would not run: leave it out`);
  }
}
for (const name of Object.keys(script.options || {})) {
  if (!ALLOWED.includes(name)) {
    throw new Error(
      `the script's options set ${name}, which is the benchmark's to say (spec.load): leave it out; ` +
        `a script may set ${ALLOWED.join(', ')}`,
    );
  }
}

// Without the tags that have one value per requested URL: k6's memory would grow with each.
const systemTags = ['check', 'expected_response', 'scenario', 'status', 'vu'];
export const options = Object.assign({}, script.options, JSON.parse(__ENV.OPTIONS), { systemTags });

const begun = new Counter('frugality_begun_cycles');
const failed = new Counter('frugality_failed_cycles');
// Number of errors that this agent threw. Only the first two carry their text, because k6 keeps every text.
let told = 0;

function fail(thrown) {
  const words = told < 2 ? { failure: String((thrown && thrown.message) || thrown).slice(0, 200) } : {};
  told += 1;
  failed.add(1, words);
}

export function setup() {
  return script.setup ? script.setup() : undefined;
}

export default function (data) {
  begun.add(1);
  try {
    const outcome = script.default(data);
    return outcome instanceof Promise ? outcome.catch(fail) : outcome;
  } catch (thrown) {
    fail(thrown);
  }
}
