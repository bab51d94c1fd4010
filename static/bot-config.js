// The Bot configuration page: fills its form from the JSON API, shows the fields of the chosen transport, saves, and sends a
// test message. Secrets are only in the API's answers and the fields.
(() => {
  const form = () => document.getElementById('bot-config')
  const groups = () => form().querySelectorAll('fieldset[data-transport]')

  let stored = {} // the gateway's configuration

  const labelsOf = (fields) => [...fields].map((field) => field.labels[0].textContent).join(', ').replace(/, (?=[^,]*$)/, ' and ')

  // Saving keeps only the chosen transport's fields: warn about those that it will erase.
  const showGroup = () => {
    const transport = form().elements.transport.value
    const erased = []
    for (const group of groups()) {
      group.hidden = group.dataset.transport !== transport
      if (group.hidden) erased.push(...[...group.querySelectorAll('input')].filter((field) => stored[field.name]))
    }
    const warning = document.getElementById('bot-erases')
    warning.hidden = erased.length === 0
    warning.querySelector('span').textContent = 'Saving erases what is stored for the other transport: ' + labelsOf(erased) + '.'
  }

  const fill = (config) => {
    for (const [name, value] of Object.entries(config)) {
      const field = form().elements.namedItem(name)
      if (field) field.value = value ?? ''
    }
    showGroup()
  }

  const say = (id, signal, text) => {
    const status = document.getElementById(id)
    status.className = 'signal signal-' + signal
    status.textContent = text
  }
  const sayNothing = (id) => {
    const status = document.getElementById(id)
    status.className = ''
    status.textContent = ''
  }

  // ask calls the API and returns its answer; failures have the form {ok: false, error}.
  const ask = async (path, options) => {
    try {
      const response = await fetch(path, { headers: { 'Content-Type': 'application/json' }, ...options })
      const text = await response.text()
      try {
        return JSON.parse(text)
      } catch {
        return { ok: false, error: text || 'status ' + response.status }
      }
    } catch {
      return { ok: false, error: 'The gateway does not answer.' }
    }
  }

  // once ignores further clicks on a button until it is done. The button is not disabled: that would lose the focus.
  const once = async (button, work) => {
    if (button.ariaBusy === 'true') return
    button.ariaBusy = 'true'
    try {
      await work()
    } finally {
      button.ariaBusy = 'false'
      htmx.trigger(document.getElementById('bot-state'), 'refresh')
    }
  }

  const load = async () => {
    const config = await ask(form().dataset.api)
    if (config.ok === false) say('bot-saved', 'stop', config.error)
    else fill((stored = config))
  }

  const save = async () => {
    const transport = form().elements.transport.value
    const config = { transport }
    for (const field of form().querySelectorAll(`fieldset[data-transport="${transport}"] input`)) {
      config[field.name] = field.value === '' ? null : field.value
    }
    const missing = [...form().querySelectorAll(`fieldset[data-transport="${transport}"] input`)].filter((field) => field.value === '')
    sayNothing('bot-saved')
    const answer = await ask(form().dataset.api, { method: 'POST', body: JSON.stringify(config) })
    if (!answer.ok) return say('bot-saved', 'stop', answer.error)
    stored = config
    showGroup()
    if (missing.length === 0) return say('bot-saved', 'clear', 'Saved. The bot was restarted.')
    say('bot-saved', 'caution', `Saved, but the bot is off until it has ${labelsOf(missing)}.`)
    missing[0].focus()
  }

  const test = async () => {
    sayNothing('bot-tested')
    const answer = await ask('/api/gateway/bot/test', { method: 'POST' })
    if (answer.ok) say('bot-tested', 'clear', 'Sent.')
    else say('bot-tested', 'stop', answer.error)
  }

  document.addEventListener('DOMContentLoaded', load)
  document.addEventListener('change', (event) => {
    if (event.target.form === form()) sayNothing('bot-saved') // it is no longer what is shown
    if (event.target.id === 'transport') showGroup()
  })
  document.addEventListener('submit', (event) => {
    if (event.target !== form()) return
    event.preventDefault()
    once(form().querySelector('button'), save)
  })
  document.addEventListener('click', (event) => {
    if (event.target.id === 'bot-test') once(event.target, test)
  })

  // A form in the header replaces the page with empty fields: restore what was typed.
  let typed = null
  document.addEventListener('htmx:beforeSwap', (event) => {
    if (event.detail.target === document.body && form()) typed = Object.fromEntries(new FormData(form()))
  })
  document.addEventListener('htmx:afterSettle', () => {
    if (typed && form()) fill(typed)
    typed = null
  })
})()
