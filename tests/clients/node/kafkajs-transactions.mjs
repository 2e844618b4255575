// Transactions of kafkajs.

import { Kafka, logLevel } from 'kafkajs'

const kafka = bootstrap => new Kafka({
  clientId: 'harness',
  brokers: bootstrap.split(','),
  logLevel: logLevel.NOTHING,
  retry: { retries: 30, initialRetryTime: 100, maxRetryTime: 2_000 }
})

// A consumer of a group that hands over what it is given.
export class Source {
  constructor (bootstrap, { group, topic, committed }) {
    this.kafka = kafka(bootstrap)
    this.group = group
    this.topic = topic
    this.consumer = this.kafka.consumer({
      groupId: group,
      readUncommitted: !committed,
      sessionTimeout: 6_000,
      heartbeatInterval: 1_000,
      rebalanceTimeout: 6_000,
      maxWaitTimeInMs: 100
    })
    this.waiting = []
    // After a rewind, by partition: the offset that comes next; what comes before it was on its way.
    this.awaited = new Map()
    this.first = new Map()
    // What comes after all that was handed over, by partition.
    this.next = new Map()
  }

  async open () {
    await this.consumer.connect()
    await this.consumer.subscribe({ topics: [this.topic], fromBeginning: true })
    await this.consumer.run({
      autoCommit: false,
      eachMessage: async ({ partition, message }) => this.take({ partition, offset: Number(message.offset), value: message.value })
    })
  }

  // kafkajs joins again when a coordinator moves. It then begins at the committed offset, which an open
  // transaction has not moved: it has no RequireStable (KIP-447).
  take (message) {
    const awaited = this.awaited.get(message.partition)
    const isAgain = message.offset < (this.next.get(message.partition) ?? 0)
    if (awaited === undefined ? isAgain : awaited !== message.offset) {
      return
    }
    this.awaited.delete(message.partition)
    this.next.set(message.partition, message.offset + 1)
    if (!this.first.has(message.partition)) {
      this.first.set(message.partition, message.offset)
    }
    this.waiting.push(message)
  }

  committed (moved) {
    this.first = new Map()
    for (const { partition, offset } of this.waiting) {
      this.first.set(partition, Math.min(offset, this.first.get(partition) ?? offset))
    }
  }

  async rewind () {
    this.waiting.length = 0
    for (const [partition, offset] of this.first) {
      this.awaited.set(partition, offset)
      this.consumer.seek({ topic: this.topic, partition, offset: String(offset) })
    }
    this.first.clear()
  }

  async close () { await this.consumer.disconnect() }
}

export class Session {
  constructor (bootstrap, command) {
    this.producer = kafka(bootstrap).producer({
      transactionalId: command.id, transactionTimeout: command.timeout_ms, maxInFlightRequests: 1, idempotent: true
    })
    this.moved = new Map()
    if (command.group !== undefined) {
      this.source = new Source(bootstrap, { group: command.group, topic: command.source, committed: true })
    }
  }

  // It initialises itself only with a transaction.
  async open () {
    await this.producer.connect()
    await (await this.producer.transaction()).abort()
    await this.source?.open()
  }

  async begin () { this.transaction = await this.producer.transaction() }

  async send (topic, messages) { await this.transaction.send({ topic, messages }) }

  async sendOffsets () {
    const partitions = [...this.moved.values()].map(({ partition, offset }) => ({ partition, offset: String(offset + 1) }))
    const topics = [{ topic: this.source.topic, partitions }]
    await this.transaction.sendOffsets({ consumerGroupId: this.source.group, topics })
  }

  async commit () {
    await this.transaction.commit()
    this.source?.committed()
  }

  async abort () { await this.transaction.abort() }

  async close () {
    await this.source?.close()
    await this.producer.disconnect()
  }
}

export const isFatal = error => /PRODUCER_FENCED|INVALID_PRODUCER_EPOCH|INVALID_TXN_STATE|INVALID_PRODUCER_ID_MAPPING/.test(error.type ?? '') || /transition|inactive/i.test(error.message)
