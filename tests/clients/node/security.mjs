// Protocol, login and certificates, as the file that SECURITY names says; options of @platformatic/kafka.

import { readFileSync } from 'node:fs'

export function security () {
  const path = process.env.SECURITY
  if (!path) {
    return {}
  }
  const wanted = JSON.parse(readFileSync(path, 'utf8'))
  const options = {}
  if (wanted.protocol.endsWith('SSL')) {
    options.tls = { ca: readFileSync(wanted.authority) }
    if (wanted.certificate) {
      options.tls.cert = readFileSync(wanted.certificate)
      options.tls.key = readFileSync(wanted.key)
    }
  }
  if (wanted.mechanism) {
    const { mechanism, username, password, token } = wanted
    options.sasl = mechanism === 'OAUTHBEARER' ? { mechanism, token } : { mechanism, username, password }
  }
  return options
}
