// Reads calls from the standard input, and writes the type of each one that the library verifies, null for the others.
const { Webhook } = require('standardwebhooks')

const calls = JSON.parse(require('node:fs').readFileSync(0, 'utf8'))
console.log(JSON.stringify(calls.map(({ body, headers, secret }) => {
  try {
    return new Webhook(secret).verify(body, headers).type
  } catch {
    return null
  }
})))
