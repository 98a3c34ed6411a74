// Runs a benchmark's script over and over. The injector puts both beside each other, says by OPTIONS which
// load to put on, and k6's output `cycles` counts what comes of it.
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

// Without the tags of k6 that grow with every address asked, and so would its memory.
const systemTags = ['check', 'expected_response', 'scenario', 'status', 'vu'];
export const options = Object.assign({}, script.options, JSON.parse(__ENV.OPTIONS), { systemTags });

const begun = new Counter('frugality_begun_cycles');
const failed = new Counter('frugality_failed_cycles');
// What an agent threw, for people; not each time, for k6 keeps every text.
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
