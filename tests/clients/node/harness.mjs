// The scenarios with @platformatic/kafka: node harness.mjs BOOTSTRAP PREFIX SCENARIO...
// One JSON line per scenario: {"scenario", "status", "detail", "seconds"}.

import * as zlib from 'node:zlib'
import { scenarios } from './scenarios.mjs'
import { Client } from './client.mjs'

const SCENARIO_MS = 85_000

function late (name) {
  return new Promise((resolve, reject) => {
    setTimeout(() => reject(new Error(`${name} took too long`)), SCENARIO_MS).unref()
  })
}

// zstd needs a newer Node.js than the client itself does.
function unable (error) {
  return zlib.zstdCompressSync === undefined && /zstd is not supported/.test(String(error.errors?.[0] ?? error))
}

// What an error says, and what the errors say that it comes from.
function messages (error) {
  const inner = [...(error.errors ?? []), ...(error.cause ? [error.cause] : [])]
  return [error.message, ...inner.flatMap(messages)]
}

async function run (client, prefix, name) {
  const topic = `${prefix}-${name.replace(/-(before|after)$/, '')}`
  const started = Date.now()
  const line = { scenario: name, status: 'ok', detail: '', seconds: 0 }
  try {
    await Promise.race([scenarios[name](client, topic), late(name)])
  } catch (error) {
    line.status = unable(error) ? 'not applicable' : 'fail'
    const causes = [...new Set(messages(error))].join('; ')
    const place = (error.stack ?? '').split('\n').find(frame => frame.includes('scenarios.mjs')) ?? ''
    line.detail = `${causes} ${place.trim()}`.slice(0, 600)
  }
  line.seconds = (Date.now() - started) / 1000
  process.stdout.write(JSON.stringify(line) + '\n')
}

const [bootstrap, prefix, ...names] = process.argv.slice(2)
const client = new Client(bootstrap)
for (const name of names) {
  await run(client, prefix, name)
}
process.exit(0)
