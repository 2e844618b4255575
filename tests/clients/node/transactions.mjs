// Transactions, done as they are told: node transactions.mjs CLIENT BOOTSTRAP.
// One JSON command a line, one JSON answer; tests/clients/transactions/driver.py tells what each is.

import { createInterface } from 'node:readline'
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

const POLL_MS = 1_000
const LOOK_MS = 20

const [client, bootstrap] = process.argv.slice(2)
const { Session, Source, isFatal } = await import(`./${client}-transactions.mjs`)

const sessions = new Map()

// Waits for a first message, then takes what is there.
async function poll (source, count, milliseconds) {
  const late = Date.now() + milliseconds
  while (source.waiting.length === 0 && Date.now() < late) {
    await sleep(LOOK_MS)
  }
  return source.waiting.splice(0, count)
}

const told = messages => messages.map(({ partition, offset, value }) => [partition, Number(offset), value.toString()])

async function read (command) {
  const source = new Source(bootstrap, {
    group: `reading-${process.pid}-${Date.now()}-${Math.random()}`,
    topic: command.topic,
    committed: command.isolation === 'read_committed'
  })
  await source.open()
  const found = []
  const late = Date.now() + command.seconds * 1000
  while (found.length < command.count && Date.now() < late) {
    found.push(...await poll(source, Infinity, 100))
  }
  const quiet = Date.now() + command.quiet_ms
  while (Date.now() < quiet) {
    found.push(...await poll(source, Infinity, 100))
  }
  await source.close()
  return told(found)
}

async function open (command) {
  await sessions.get(command.producer)?.close()
  sessions.delete(command.producer)
  const session = new Session(bootstrap, command)
  await session.open()
  sessions.set(command.producer, session)
}

async function obey (command) {
  const session = sessions.get(command.producer)
  switch (command.do) {
    case 'read': return read(command)
    case 'open': await open(command); break
    case 'begin': await session.begin(); break
    case 'send': {
      const messages = command.records.map(([partition, value]) => ({ partition, value: Buffer.from(value) }))
      await session.send(command.topic, messages)
      break
    }
    case 'poll': {
      const taken = await poll(session.source, command.max, POLL_MS)
      taken.forEach(message => session.moved.set(message.partition, message))
      return told(taken)
    }
    case 'commit':
      if (session.moved.size > 0) {
        await session.sendOffsets()
      }
      await session.commit()
      session.moved.clear()
      break
    case 'abort':
      if (session.moved.size > 0 && command.offsets) {
        await session.sendOffsets()
      }
      await session.abort()
      session.moved.clear()
      await session.source?.rewind()
      break
    case 'close': await session.close(); break
    default: throw new Error(`no such command: ${command.do}`)
  }
  return []
}

// A rejection that a client leaves to nobody is no reason to end: the command that it belongs to says so.
process.on('unhandledRejection', error => process.stderr.write(`${inspect(error, { depth: 4 })}\n`))

for await (const line of createInterface({ input: process.stdin })) {
  let answer
  try {
    answer = { records: await obey(JSON.parse(line)) }
  } catch (error) {
    const causes = [error, error.cause, ...(error.errors ?? [])].filter(Boolean)
    answer = { error: causes.map(each => each.message).join('; ').slice(0, 400), fatal: isFatal(error) }
    process.stderr.write(`${inspect(error, { depth: 4 })}\n`)
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
process.exit(0)
