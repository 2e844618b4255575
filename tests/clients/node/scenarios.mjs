// The scenarios, each a few promises of Kafka as this client shows them.

import { deepStrictEqual, ok } from 'node:assert'
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { LEADERS_MOVE } from './client.mjs'

const FILLER = ' kafka wire'.repeat(10)
const BASE_TIMESTAMP_MS = 1_700_000_000_000
const LARGE_BYTES = 1_000_000
// A member that rejoins has another id; its former id stays in the group until its session of 45 s ends.
const HELD_MS = LEADERS_MOVE ? 120_000 : 60_000
const RESTART_TOTAL = 100
const RESTART_FIRST = 40

function numbered (start, count) {
  return Array.from({ length: count }, (_, n) => ({
    partition: 0, value: Buffer.from(`record ${String(start + n).padStart(6, '0')}${FILLER}`)
  }))
}

const text = buffer => (buffer === null || buffer === undefined ? null : buffer.toString())
const values = records => records.map(record => text(record.value))

async function waitUntil (what, condition, milliseconds = 60_000) {
  const deadline = Date.now() + milliseconds
  while (!(await condition())) {
    ok(Date.now() < deadline, `not in time: ${what}`)
    await sleep(50)
  }
}

async function create (client, topic, partitions, configs) {
  await client.createTopic(topic, partitions, configs)
  await waitUntil(`${partitions} partitions`, async () => (await client.partitions(topic)) === partitions)
}

async function through (client, topic, partitions, sent, options) {
  await create(client, topic, partitions)
  await client.produce(topic, sent, options)
  return client.consume(topic, sent.length)
}

async function connect (client) {
  ok((await client.brokers()).length > 0, 'no broker')
}

async function metadata (client, topic) {
  await create(client, topic, 3)
  const all = client.bootstrap.split(',')
  const found = await client.brokers()
  ok(found.every(broker => all.includes(broker)), `strange brokers: ${found}`)
  ok(found.length === all.length || (LEADERS_MOVE && found.length === all.length - 1), `too few brokers: ${found}`)
}

const codec = name => async (client, topic) => {
  const sent = numbered(0, 300)
  deepStrictEqual(values(await through(client, topic, 1, sent, { codec: name })), values(sent))
}

async function keys (client, topic) {
  const sent = Array.from({ length: 170 }, (_, n) => ({
    key: Buffer.from(`key-${n % 17}`), value: Buffer.from(`key-${n % 17}=${n}`)
  }))
  const places = new Map()
  const got = await through(client, topic, 4, sent)
  for (const record of got) {
    ok(text(record.value).startsWith(`${text(record.key)}=`), 'key and value belong together')
    const known = places.get(text(record.key)) ?? record.partition
    deepStrictEqual(record.partition, known, 'one key, one partition')
    places.set(text(record.key), known)
  }
  deepStrictEqual(values(got).sort(), values(sent).sort())
}

// The client keeps headers in a map, so names are different here.
async function headers (client, topic) {
  const given = new Map([
    [Buffer.from('a'), Buffer.from('1')], [Buffer.from('b'), Buffer.alloc(0)], [Buffer.from('ü'), Buffer.from([1, 255])]
  ])
  const sent = [{ partition: 0, value: Buffer.from('with'), headers: given }, { partition: 0, value: Buffer.from('without') }]
  const got = await through(client, topic, 1, sent)
  const pairs = map => [...map].map(([name, value]) => [text(name), value.toString('hex')])
  deepStrictEqual(pairs(got[0].headers), pairs(given))
  deepStrictEqual(got[1].headers.size, 0)
}

async function nulls (client, topic) {
  const sent = [
    { partition: 0, key: Buffer.from('deleted') },
    { partition: 0, key: Buffer.from('empty'), value: Buffer.alloc(0) },
    { partition: 0, value: Buffer.from('no key') }
  ]
  const got = await through(client, topic, 1, sent)
  deepStrictEqual(values(got), [null, '', 'no key'])
  deepStrictEqual(got.map(record => text(record.key)), ['deleted', 'empty', null])
}

async function large (client, topic) {
  const sent = Array.from({ length: 5 }, () => ({ partition: 0, value: randomBytes(LARGE_BYTES) }))
  await create(client, topic, 1)
  for (const record of sent) {
    await client.produce(topic, [record])
  }
  const digest = record => createHash('sha256').update(record.value).digest('hex')
  deepStrictEqual((await client.consume(topic, sent.length)).map(digest), sent.map(digest))
}

async function idempotent (client, topic) {
  const sent = Array.from({ length: 1000 }, (_, n) => ({ partition: n % 2, value: Buffer.from(String(n)) }))
  const got = await through(client, topic, 2, sent, { idempotent: true })
  for (const partition of [0, 1]) {
    const of = records => values(records.filter(record => record.partition === partition))
    deepStrictEqual(of(got), of(sent))
  }
}

async function group (client, topic) {
  await create(client, topic, 6)
  const members = []
  for (let n = 0; n < 3; n++) {
    members.push(await client.join(topic, topic))
  }
  await waitUntil('3 members hold 2 partitions each', () => members.every(member => member.held() === 2), HELD_MS)
  await members.shift().leave()
  await waitUntil('2 members hold 3 partitions each', () => members.every(member => member.held() === 3), HELD_MS)
  const sent = Array.from({ length: 60 }, (_, n) => ({ partition: n % 6, value: Buffer.from(String(n)) }))
  await client.produce(topic, sent)
  // Nothing is committed, so a member that rejoins reads again: each record arrives at least once.
  const arrived = () => [...new Set(members.flatMap(member => values(member.received)))]
  await waitUntil('all 60 records arrived', () => arrived().length >= sent.length)
  deepStrictEqual(arrived().sort(), values(sent).sort())
  await Promise.all(members.map(member => member.leave()))
}

async function timestamps (client, topic) {
  await create(client, topic, 1)
  const stamp = n => BigInt(BASE_TIMESTAMP_MS + 1000 * n)
  await client.produce(topic, numbered(0, 20).map((record, n) => ({ ...record, timestamp: stamp(n) })))
  for (const [after, offset] of [[0, 0], [5000, 5], [5001, 6], [19000, 19]]) {
    deepStrictEqual(await client.offsetAt(topic, BASE_TIMESTAMP_MS + after), offset)
  }
  ok([-1, 20].includes(await client.offsetAt(topic, BASE_TIMESTAMP_MS + 60_000)), 'after the last')
}

async function seek (client, topic) {
  await create(client, topic, 1)
  await client.produce(topic, numbered(0, 30))
  const end = BigInt(await client.offsetAt(topic, -1))
  deepStrictEqual(end, 30n)
  await client.produce(topic, numbered(30, 1))
  const at = offset => ({ mode: 'manual', offsets: [{ topic, partition: 0, offset }] })
  const [last] = await client.consume(topic, 1, at(end))
  deepStrictEqual(last.offset, 30n)
  const [first] = await client.consume(topic, 1, at(BigInt(await client.offsetAt(topic, -2))))
  deepStrictEqual(first.offset, 0n)
}

async function topics (client, topic) {
  const retention = wanted => async () => (await client.describeConfig(topic, 'retention.ms')) === wanted
  await create(client, topic, 3, { 'retention.ms': '3600000' })
  await waitUntil('retention.ms is 3600000', retention('3600000'))
  await client.addPartitions(topic, 5)
  await waitUntil('5 partitions', async () => (await client.partitions(topic)) === 5)
  await client.alterConfig(topic, 'retention.ms', '7200000')
  await waitUntil('retention.ms is 7200000', retention('7200000'))
  await client.deleteTopic(topic)
  await waitUntil('the topic is gone', async () => (await client.partitions(topic)) === 0)
}

async function autoCreate (client, topic) {
  await client.produce(topic, [{ value: Buffer.from('first') }])
  deepStrictEqual(values(await client.consume(topic, 1)), ['first'])
}

async function partitions200 (client, topic) {
  const sent = Array.from({ length: 200 }, (_, n) => ({ partition: n, value: Buffer.from(String(n)) }))
  const got = await through(client, topic, 200, sent)
  deepStrictEqual(new Set(got.map(record => record.partition)).size, 200)
}

async function restartBefore (client, topic) {
  await create(client, topic, 1)
  await client.produce(topic, numbered(0, RESTART_TOTAL))
  const got = await client.consumeInGroup(topic, topic, RESTART_FIRST)
  deepStrictEqual(values(got), values(numbered(0, RESTART_FIRST)))
}

async function restartAfter (client, topic) {
  const rest = RESTART_TOTAL - RESTART_FIRST
  const got = await client.consumeInGroup(topic, topic, rest)
  deepStrictEqual(values(got), values(numbered(RESTART_FIRST, rest)))
}

export const scenarios = {
  connect,
  metadata,
  'codec-none': codec('none'),
  'codec-gzip': codec('gzip'),
  'codec-snappy': codec('snappy'),
  'codec-lz4': codec('lz4'),
  'codec-zstd': codec('zstd'),
  keys,
  headers,
  nulls,
  large,
  idempotent,
  group,
  timestamps,
  seek,
  topics,
  'auto-create': autoCreate,
  'partitions-200': partitions200,
  'restart-before': restartBefore,
  'restart-after': restartAfter
}
