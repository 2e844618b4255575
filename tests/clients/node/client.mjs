// What the scenarios need of @platformatic/kafka, in their own words.

import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'
import { Admin, Consumer, Producer } from '@platformatic/kafka'
import { security } from './security.mjs'

const OPERATION_MS = 30_000
const TOPIC_RESOURCE = 2
const SET_CONFIG = 0
const FETCH_BYTES = 20_000_000

// Of every topic. Where there are several, brokers restart meanwhile, and whoever retries then writes
// once and in order only as an idempotent producer.
export const REPLICAS = Number(process.env.REPLICAS ?? 1)
export const LEADERS_MOVE = REPLICAS > 1

// It tries the same broker again and again when that cannot be reached, without asking who leads now:
// its retries have to last longer than a broker's restart.
const RETRIES = LEADERS_MOVE ? 150 : Number(process.env.OPERATION_SECONDS ?? 20)
const GROUP_PROTOCOL = process.env.GROUP_PROTOCOL ?? 'classic'
const GROUP_RETRIES = LEADERS_MOVE ? 75 : 20

export class Client {
  constructor (bootstrap) {
    this.bootstrap = bootstrap
    this.common = {
      clientId: 'harness', bootstrapBrokers: bootstrap.split(','), retries: RETRIES, retryDelay: 200, ...security()
    }
    this.admin = new Admin(this.common)
  }

  async brokers () {
    this.admin.clearMetadata()
    const found = await this.admin.metadata({ topics: [], forceUpdate: true })
    return [...found.brokers.values()].map(broker => `${broker.host}:${broker.port}`)
  }

  async partitions (topic) {
    const names = await this.admin.listTopics()
    if (!names.includes(topic)) {
      return 0
    }
    try {
      const found = await this.admin.metadata({ topics: [topic], forceUpdate: true })
      return found.topics.get(topic).partitionsCount
    } catch (error) {
      // This broker may know already that it is gone, the one before not yet.
      if (error.message.startsWith('Unknown topic')) {
        return 0
      }
      throw error
    }
  }

  async createTopic (topic, partitions, configs = {}) {
    const entries = Object.entries(configs).map(([name, value]) => ({ name, value }))
    const wanted = { topics: [topic], partitions, replicas: REPLICAS, configs: entries }
    await placed(() => this.admin.createTopics(wanted))
  }

  async addPartitions (topic, total) {
    const topics = [{ name: topic, count: total, assignments: null }]
    await placed(() => this.admin.createPartitions({ topics }))
  }

  async alterConfig (topic, name, value) {
    const configs = [{ name, value, configOperation: SET_CONFIG }]
    const resources = [{ resourceType: TOPIC_RESOURCE, resourceName: topic, configs }]
    await this.admin.incrementalAlterConfigs({ resources })
  }

  async describeConfig (topic, name) {
    const resources = [{ resourceType: TOPIC_RESOURCE, resourceName: topic, configurationKeys: [name] }]
    const [found] = await this.admin.describeConfigs({ resources })
    return found.configs.find(config => config.name === name).value
  }

  async deleteTopic (topic) {
    await this.admin.deleteTopics({ topics: [topic] })
  }

  async produce (topic, records, { codec = 'none', idempotent = LEADERS_MOVE } = {}) {
    const producer = new Producer({
      ...this.common, acks: -1, compression: codec, idempotent, autocreateTopics: true
    })
    const messages = records.map(record => ({ topic, ...record }))
    await producer.send({ messages })
    await producer.close()
  }

  consumer (group) {
    return new Consumer({
      groupProtocol: GROUP_PROTOCOL,
      ...this.common, retries: GROUP_RETRIES, groupId: group, maxWaitTime: 250, autocommit: false, maxBytes: FETCH_BYTES,
      maxBytesPerPartition: FETCH_BYTES, sessionTimeout: 10_000, heartbeatInterval: 1000, rebalanceTimeout: 10_000
    })
  }

  // Records from the beginning (or from given offsets), by a group of its own.
  consume (topic, count, options = { mode: 'earliest' }) {
    return begunAnew(() => this.consumer(`${topic}-reading-${Date.now()}`), async consumer => {
      const found = await take(await consumer.consume({ topics: [topic], ...options }), count)
      await consumer.close(true)
      return found
    })
  }

  consumeInGroup (topic, group, count) {
    return begunAnew(() => this.consumer(group), async consumer => {
      const stream = await consumer.consume({ topics: [topic], mode: 'committed', fallbackMode: 'earliest' })
      const found = await take(stream, count)
      const offset = found[count - 1].offset + 1n
      await consumer.commit({ offsets: [{ topic, partition: 0, offset, leaderEpoch: 0 }] })
      await consumer.close(true)
      return found
    })
  }

  async join (topic, group) {
    const member = new Member(() => this.consumer(group), topic)
    await member.begin()
    return member
  }

  async offsetAt (topic, timestamp) {
    const topics = [{ name: topic, partitions: [{ partitionIndex: 0, timestamp: BigInt(timestamp) }] }]
    const [found] = await this.admin.listOffsets({ topics })
    return Number(found.partitions[0].offset)
  }
}

// Makes a change that places replicas; again while a broker is about to stop: Kafka places none on it,
// and refuses what needs all brokers, which no client tries again by itself.
async function placed (change) {
  const deadline = Date.now() + OPERATION_MS
  for (;;) {
    try {
      return await change()
    } catch (error) {
      const said = inspect(error, { depth: 5 })
      if (!LEADERS_MOVE || !said.includes('INVALID_REPLICATION_FACTOR') || Date.now() > deadline) {
        throw error
      }
    }
    await sleep(100)
  }
}

// Works with a consumer; with a new one where that is out of its group. It finds the coordinator of
// its group once and asks that broker for good, also where it answers that another one coordinates
// now, so that its retries are in vain; and where it could not join again, it only says so.
async function begunAnew (newConsumer, work) {
  const deadline = Date.now() + OPERATION_MS
  for (;;) {
    const consumer = newConsumer()
    const lost = new Promise((resolve, reject) => onceLost(consumer, reject))
    try {
      return await Promise.race([work(consumer), lost])
    } catch (error) {
      if (!LEADERS_MOVE || !isOutOfGroup(error) || Date.now() > deadline) {
        throw error
      }
      process.stderr.write(`begun anew after: ${error.message}\n`)
      abandon(consumer)
    }
  }
}

function isOutOfGroup (error) {
  const said = inspect(error, { depth: 5 })
  return isOfMetadata(error) || /NOT_COORDINATOR|UNKNOWN_MEMBER_ID|ILLEGAL_GENERATION/.test(said)
}

// What it throws where the coordinator that it found is not among the brokers of its metadata.
function isOfMetadata (error) {
  return error instanceof TypeError && error.stack.includes('connection-pool.js')
}

async function abandon (consumer) {
  try {
    await consumer.close(true)
  } catch {
    // The end of its session is its leaving.
  }
}

// Calls back with what ends a consumer's membership: it sends no heartbeats from then on. One way out
// is an exception that nobody can catch: whose it is cannot be told, so that all consumers count as lost.
function onceLost (consumer, lost) {
  consumer.once('error', lost)
  consumer.once('consumer:heartbeat:error', ({ error }) => lost(error))
  lostWith.add(lost)
}

const lostWith = new Set()

process.on('uncaughtException', error => {
  if (!LEADERS_MOVE || !isOfMetadata(error)) {
    process.stderr.write(`${error.stack}\n`)
    process.exit(1)
  }
  const lost = [...lostWith]
  lostWith.clear()
  lost.forEach(each => each(error))
})

// A member of a group, which begins anew where its membership ended.
class Member {
  constructor (newConsumer, topic) {
    this.newConsumer = newConsumer
    this.topic = topic
    this.received = []
  }

  async begin () {
    await begunAnew(this.newConsumer, async consumer => {
      this.consumer = consumer
      const stream = await consumer.consume({ topics: [this.topic], mode: 'committed', fallbackMode: 'earliest' })
      stream.on('data', message => this.received.push(message))
      stream.on('error', () => {})
    })
    const consumer = this.consumer
    onceLost(consumer, () => this.again(consumer))
  }

  // One consumer may be said to be lost in several ways, and once more after another took its place.
  again (lost) {
    if (LEADERS_MOVE && !this.isLeaving && lost === this.consumer) {
      abandon(lost)
      this.begin().catch(error => process.stderr.write(`out of its group: ${error.message}\n`))
    }
  }

  held () {
    const mine = (this.consumer.assignments ?? []).filter(assignment => assignment.topic === this.topic)
    return mine.reduce((sum, assignment) => sum + assignment.partitions.length, 0)
  }

  async leave () {
    this.isLeaving = true
    try {
      await this.consumer.close(true)
    } catch (error) {
      // The end of its session is its leaving.
      if (!LEADERS_MOVE || !isOutOfGroup(error)) {
        throw error
      }
    }
  }
}

// Records of a stream, until there are so many that differ in partition and value.
function take (stream, count) {
  return new Promise((resolve, reject) => {
    const found = []
    const known = new Set()
    const timer = setTimeout(() => reject(new Error(`${found.length} of ${count} records in time`)), OPERATION_MS)
    stream.on('error', reject)
    stream.on('data', message => {
      const name = `${message.partition} ${message.value?.toString('latin1')}`
      if (known.has(name) || found.length === count) {
        return
      }
      known.add(name)
      found.push(message)
      if (found.length === count) {
        clearTimeout(timer)
        resolve(found)
      }
    })
  })
}
