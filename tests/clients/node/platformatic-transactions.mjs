// Transactions of @platformatic/kafka.

import { Consumer, Producer } from '@platformatic/kafka'

const RETRIES = 100
const common = bootstrap => ({
  clientId: 'harness', bootstrapBrokers: bootstrap.split(','), retries: RETRIES, retryDelay: 200
})

// A consumer of a group that hands over what it is given.
export class Source {
  constructor (bootstrap, { group, topic, committed }) {
    this.topic = topic
    this.consumer = new Consumer({
      ...common(bootstrap),
      groupId: group,
      maxWaitTime: 100,
      autocommit: false,
      isolationLevel: committed ? 1 : 0,
      sessionTimeout: 6_000,
      heartbeatInterval: 1_000,
      rebalanceTimeout: 6_000
    })
    this.waiting = []
  }

  async open () {
    const stream = await this.consumer.consume({ topics: [this.topic], mode: 'committed', fallbackMode: 'earliest' })
    this.stream = stream
    stream.on('error', () => {})
    stream.on('data', message => {
      if (stream === this.stream) {
        this.waiting.push(message)
      }
    })
  }

  async rewind () {
    const stream = this.stream
    this.stream = undefined
    this.waiting.length = 0
    await stream.close()
    await this.open()
  }

  async close () { await this.consumer.close(true) }
}

export class Session {
  constructor (bootstrap, command) {
    // What it calls its timeout is the transaction's too.
    this.producer = new Producer({
      ...common(bootstrap), transactionalId: command.id, timeout: command.timeout_ms, idempotent: true, acks: -1
    })
    this.moved = new Map()
    if (command.group !== undefined) {
      this.source = new Source(bootstrap, { group: command.group, topic: command.source, committed: true })
    }
  }

  // It initialises itself only with a transaction.
  async open () {
    await (await this.producer.beginTransaction()).cancel()
    await this.source?.open()
  }

  async begin () { this.transaction = await this.producer.beginTransaction() }

  async send (topic, messages) {
    await this.transaction.send({ messages: messages.map(message => ({ topic, ...message })) })
  }

  async sendOffsets () {
    await this.transaction.addConsumer(this.source.consumer)
    for (const message of this.moved.values()) {
      await this.transaction.addOffset(message)
    }
  }

  async commit () {
    await this.transaction.commit()
  }

  async abort () { await this.transaction.abort() }

  async close () {
    await this.source?.close()
    await this.producer.close(true)
  }
}

// It does not say which of its errors a producer outlives.
export const isFatal = () => true
